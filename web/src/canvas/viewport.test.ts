import { expect, test } from "vitest";

import { tickStep, xOf } from "./viewport";

const VIEW = { range: { from: 100, to: 300 }, gutter: 50, width: 450 };

test("a range spans from the gutter to the right edge", () => {
  expect([100, 200, 300].map((value) => xOf(VIEW, value))).toEqual([50, 250, 450]);
});

test("values outside the range are outside the picture", () => {
  expect(xOf(VIEW, 400)).toBe(650);
  expect(xOf(VIEW, 0)).toBe(-150);
});

test("ticks are as fine as their minimum width allows", () => {
  expect(tickStep(VIEW, [5, 10, 50], 20)).toBe(10);
  expect(tickStep(VIEW, [5, 10, 50], 1000)).toBe(50);
});
