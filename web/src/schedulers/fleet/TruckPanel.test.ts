import { expect, test } from "vitest";

import type { TruckNow } from "../../api/types";
import { deedsFor } from "./TruckPanel";

const truck = (changes: Partial<TruckNow> = {}) =>
  ({
    robot_id: "R1",
    health: "HEALTHY",
    code: "UNDER_WAY",
    paused: false,
    silent: false,
    clearable: false,
    removable: false,
    releasable: [],
    at: null,
    ...changes,
  }) as unknown as TruckNow;

test("of a truck that drives nothing is offered that would be refused", () => {
  expect(deedsFor(truck(), []).map(({ type }) => type)).toEqual(["PAUSE_ROBOT"]);
});

test("of a truck with a fault all is offered, and told as what will happen", () => {
  const deeds = deedsFor(truck({ silent: true, clearable: true, removable: true, releasable: ["NODE:A"] }), []);

  expect(deeds.map(({ title }) => title)).toEqual([
    "Pause",
    "Clear fault",
    "It is not there",
    "Free what it holds",
    "Remove",
  ]);
  expect(deeds.filter(({ question }) => !question.startsWith("This "))).toEqual([]);
});
