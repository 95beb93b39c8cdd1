import { expect, test } from "vitest";

import { engineTime, timeSpan } from "./wording";

test("a duration is written in its two largest units", () => {
  expect([0, 45_000, 125_000, 8_280_000, 7_200_000, 4_406_400_000].map(timeSpan)).toEqual([
    "0 s",
    "45 s",
    "2 min 5 s",
    "2 h 18 min",
    "2 h",
    "51 d",
  ]);
});

test("engine time is written in human units", () => {
  expect(engineTime(73_440, "min")).toBe("51 d");
  expect(engineTime(25_200, "ms")).toBe("25 s");
  expect(engineTime(1, "tick")).toBe("1\u00a0tick");
});
