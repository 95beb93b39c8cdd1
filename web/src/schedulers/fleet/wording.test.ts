import { expect, test } from "vitest";

import type { TruckNow } from "../../api/types";
import { condition, isLost, isMoving, isStopped } from "./wording";

const truck = (changes: Partial<TruckNow> = {}) =>
  ({
    health: "HEALTHY",
    paused: false,
    blocker: null,
    hold_reason: "NONE",
    code: "UNDER_WAY",
    speed: 0,
    phase: "IDLE",
    ...changes,
  }) as TruckNow;

test("a healthy truck that returns after an operator stop is stopped and lost", () => {
  const back = truck({ code: "STOP_OPERATOR" });

  expect([condition(back), isStopped(back), isLost(back)]).toEqual(["stopped", true, true]);
});

test("a truck that stops because of another one waits", () => {
  const waits = truck({ code: "STOP_FOREIGN_OCCUPANCY", blocker: "R2" });

  expect([condition(waits), isStopped(waits)]).toEqual(["waits", false]);
});

test("a truck that turns on the spot is moving", () => {
  const turns = truck({ turning: true });

  expect([condition(turns), isMoving(turns)]).toEqual(["turns", true]);
  expect(isMoving(truck())).toBe(false);
});

test("a truck with a free granted path starts, an obstructed one waits", () => {
  const ready = truck({ phase: "TO_PICK" });

  expect([condition(ready), isMoving(ready)]).toEqual(["starts", true]);
  expect(condition({ ...ready, obstructed: true })).toBe("waits");
  expect(condition(truck({ phase: "LOADING" }))).toBe("stands");
});
