import { expect, test } from "vitest";

import type { TruckNow } from "../../api/types";
import { truckActions } from "./TruckPanel";

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

test("a driving truck can only be paused", () => {
  expect(truckActions(truck(), []).map(({ type }) => type)).toEqual(["PAUSE_ROBOT"]);
});

test("a faulty truck has all actions, each described by its effect", () => {
  const actions = truckActions(truck({ silent: true, clearable: true, removable: true, releasable: ["NODE:A"] }), []);

  expect(actions.map(({ title }) => title)).toEqual([
    "Pause",
    "Clear fault",
    "Declare absent",
    "Release resources",
    "Remove",
  ]);
  expect(actions.filter(({ question }) => !question.startsWith("This "))).toEqual([]);
});
