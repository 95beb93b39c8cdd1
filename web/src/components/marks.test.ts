import { expect, test } from "vitest";

import { markPositions } from "./marks";

test("marks are at their snapshots, and crowded snapshots share a mark", () => {
  expect(
    markPositions(
      [
        [35, 1],
        [60, 2],
      ],
      10,
      110,
    ),
  ).toEqual([25, 50]);
  expect(
    markPositions(
      Array.from({ length: 5000 }, (_, n) => [n, n] as const),
      0,
      5000,
    ),
  ).toHaveLength(101);
  expect(markPositions([[0, 0]], 0, 0)).toEqual([]);
});
