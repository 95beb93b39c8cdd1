// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { draw, find } from "../testing/drawing";
import { Curve, extentOf, HEIGHT, partsOf, pathOf, WIDTH } from "./Curve";

const POINTS = [
  { at: 10, value: 0 },
  { at: 20, value: null },
  { at: 30, value: 50 },
  { at: 40, value: 100 },
];

test("a curve has a gap where there is no value", () => {
  expect(partsOf(POINTS).map((part) => part.map(({ at }) => at))).toEqual([[10], [30, 40]]);
});

test("the first point is at the left, the highest value at the top", () => {
  const extent = extentOf(POINTS);

  expect(
    pathOf(
      [
        { at: 10, value: 0 },
        { at: 40, value: 100 },
      ],
      extent,
    ),
  ).toBe(`M0,${HEIGHT - 2}L${WIDTH},2`);
});

test("a given maximum sets the axis, and a single point has an extent", () => {
  expect(extentOf(POINTS, 400)).toEqual({ from: 10, to: 40, max: 400 });
  expect(extentOf([{ at: 7, value: 0 }])).toEqual({ from: 7, to: 8, max: 1 });
});

test("the curve has a text description", () => {
  const page = draw(
    <Curve name="debt" points={POINTS} writeValue={String} writeAt={(at) => `t${at}`} empty="nothing" testId="curve" />,
  );

  expect(find(page, "svg").getAttribute("aria-label")).toBe("debt, t10 to t40: now 100, between 0 and 100");
  expect(find(page, ".curve-value").textContent).toBe("100");
});

test("a curve without values shows its empty text", () => {
  const page = draw(
    <Curve name="debt" points={[]} writeValue={String} writeAt={String} empty="Nothing yet." testId="c" />,
  );

  expect(page.textContent).toContain("Nothing yet.");
  expect(page.querySelector("svg")).toBeNull();
});
