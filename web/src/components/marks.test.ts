import { expect, test } from "vitest";

import { spaceForMarks } from "./marks";

test("marks stand where the snapshots lie, and crowded ones share a mark", () => {
  expect(
    spaceForMarks(
      [
        [35, 1],
        [60, 2],
      ],
      10,
      110,
    ),
  ).toEqual([25, 50]);
  expect(
    spaceForMarks(
      Array.from({ length: 5000 }, (_, n) => [n, n] as const),
      0,
      5000,
    ),
  ).toHaveLength(101);
  expect(spaceForMarks([[0, 0]], 0, 0)).toEqual([]);
});
