import { expect, test } from "vitest";

import { nearestTo, overlap, spanAt } from "./hits";

const VIEW = { range: { from: 0, to: 100 }, gutter: 0, width: 100 };
const span = (from: number, to: number, name = "") => ({ from, to, name });
const any = () => true;

test("a span is hit within a tolerance of its edges", () => {
  const spans = [span(10, 20)];

  expect(spanAt(VIEW, spans, 8, any)).toBe(spans[0]);
  expect(spanAt(VIEW, spans, 22, any)).toBe(spans[0]);
  expect(spanAt(VIEW, spans, 23, any)).toBeUndefined();
});

test("among overlapping spans the last preferred one is hit, else the last", () => {
  const spans = [span(0, 50, "first"), span(10, 50, "preferred"), span(20, 50, "last")];

  expect(spanAt(VIEW, spans, 30, ({ name }) => name === "preferred")?.name).toBe("preferred");
  expect(spanAt(VIEW, spans, 30, () => false)?.name).toBe("last");
});

test("the nearest span contains the value or has the nearest edge", () => {
  const spans = [span(0, 10), span(20, 30)];

  expect([5, 14, 16, 25].map((value) => nearestTo(spans, value))).toEqual([0, 0, 1, 1]);
  expect(nearestTo([], 5)).toBe(-1);
});

test("spans that only touch do not overlap", () => {
  expect(overlap(span(0, 10), span(10, 20))).toBe(false);
  expect(overlap(span(0, 11), span(10, 20))).toBe(true);
});
