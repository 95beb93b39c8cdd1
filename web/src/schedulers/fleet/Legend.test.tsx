// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { draw, texts } from "../../testing/drawing";
import { Legend } from "./Legend";

test("the legend explains trucks, bands, dead ends and turning nodes with separate marks", () => {
  const page = draw(<Legend />);
  const kinds = [...page.querySelectorAll("[data-kind]")].map((mark) => mark.getAttribute("data-kind") ?? "");

  expect(texts(page, ".legend-item").join(";")).toContain("dead end");
  expect(kinds).toEqual(expect.arrayContaining(["drives", "waits", "stopped", "occupied", "section", "zone"]));
});
