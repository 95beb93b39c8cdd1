// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { draw, texts } from "../testing/drawing";
import { focusTarget, Nav } from "./Nav";

test("the current scheduler is marked in the navigation", () => {
  const schedulers = ["tally", "fleet"].map((name) => ({
    name,
    title: name,
    sentence: "",
    state: "ready" as const,
    reason: null,
    engines: [],
  }));

  const page = draw(
    <Nav schedulers={schedulers} route={{ page: "scheduler", scheduler: "fleet", engine: null, at: null, on: null }} />,
  );

  expect(texts(page, "[aria-current=page]")).toEqual(["fleet ● ready"]);
  expect([...page.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual([
    "#/",
    "#/schedulers/tally",
    "#/schedulers/fleet",
  ]);
});

test("arrow keys cycle through the links, other keys keep their meaning", () => {
  expect(focusTarget("ArrowDown", 2, 3)).toBe(0);
  expect(focusTarget("ArrowUp", 0, 3)).toBe(2);
  expect(focusTarget("End", 0, 3)).toBe(2);
  expect(focusTarget("Tab", 0, 3)).toBeNull();
});
