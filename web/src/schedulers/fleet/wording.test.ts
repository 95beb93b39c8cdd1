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

test("a truck that was set aside and reports again is stopped and lost, though nothing is wrong with it", () => {
  const back = truck({ code: "STOP_OPERATOR" });

  expect([condition(back), isStopped(back), isLost(back)]).toEqual(["stopped", true, true]);
});

test("a truck that stops for the sake of another one waits for it", () => {
  const waits = truck({ code: "STOP_FOREIGN_OCCUPANCY", blocker: "R2" });

  expect([condition(waits), isStopped(waits)]).toEqual(["waits", false]);
});

test("a truck that turns on the spot is on the move", () => {
  const turns = truck({ turning: true });

  expect([condition(turns), isMoving(turns)]).toEqual(["turns", true]);
  expect(isMoving(truck())).toBe(false);
});

test("a truck that has its way and nobody in it sets out, and one with something in it waits", () => {
  const ready = truck({ phase: "TO_PICK" });

  expect([condition(ready), isMoving(ready)]).toEqual(["sets out", true]);
  expect(condition({ ...ready, obstructed: true })).toBe("waits");
  expect(condition(truck({ phase: "LOADING" }))).toBe("stands");
});
