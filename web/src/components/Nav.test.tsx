// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { draw, texts } from "../testing/drawing";
import { focusTarget, Nav } from "./Nav";

test("the current room is marked in the navigation", () => {
  const rooms = ["tally", "fleet"].map((name) => ({
    name,
    title: name,
    sentence: "",
    state: "ready" as const,
    reason: null,
    engines: [],
  }));

  const page = draw(<Nav rooms={rooms} route={{ page: "room", room: "fleet", engine: null, at: null, on: null }} />);

  expect(texts(page, "[aria-current=page]")).toEqual(["fleet ● ready"]);
  expect([...page.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual([
    "#/",
    "#/rooms/tally",
    "#/rooms/fleet",
  ]);
});

test("arrow keys go round the links and other keys mean what they always mean", () => {
  expect(focusTarget("ArrowDown", 2, 3)).toBe(0);
  expect(focusTarget("ArrowUp", 0, 3)).toBe(2);
  expect(focusTarget("End", 0, 3)).toBe(2);
  expect(focusTarget("Tab", 0, 3)).toBeNull();
});
