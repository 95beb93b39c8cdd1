// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { draw, texts } from "../../testing/drawing";
import { Legend } from "./Legend";

test("the legend has trucks, bands, dead ends and turning nodes, each with a mark of its own", () => {
  const page = draw(<Legend />);
  const kinds = [...page.querySelectorAll("[data-kind]")].map((mark) => mark.getAttribute("data-kind") ?? "");

  expect(texts(page, ".legend-item").join(";")).toContain("dead end");
  expect(kinds).toEqual(expect.arrayContaining(["drives", "waits", "stopped", "occupied", "section", "zone"]));
});
