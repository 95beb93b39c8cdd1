import { expect, test } from "vitest";

import type { AlertNow } from "../../api/types";
import { listed } from "./alerts";

const one = (kind: string, code: string, severity = "WARN", tick = 1, robot = "R1"): AlertNow => ({
  tick,
  now: 100 * tick,
  kind,
  alert: kind === "incident" ? null : { alertId: "1", code, severity, sinceMs: 0, details: {} },
  code,
  robot_ids: [robot],
  message: code,
});

test.each([
  ["STOP_POSE_JUMP", "POSE_JUMP"],
  ["STOP_INVARIANT", "SAFETY_STOP"],
  ["STOP_OVERRUN", "HOLDPOINT_OVERRUN"],
  ["OCCUPANCY_CONFLICT", "OCCUPANCY_CONFLICT"],
])("the stop %s, told as an alert too, stands once in the list", (incident, alert) => {
  const told = listed([one("alert", alert), one("incident", incident)]);

  expect(told.map(({ told: { kind, code } }) => [kind, code])).toEqual([["alert", alert]]);
});

test("an incident of another truck, of another tick or of another kind has its own line", () => {
  const told = listed([
    one("alert", "POSE_JUMP"),
    one("incident", "STOP_POSE_JUMP", "WARN", 1, "R2"),
    one("incident", "STOP_POSE_JUMP", "WARN", 2),
    one("incident", "STOP_OFF_ROUTE"),
  ]);

  expect(told).toHaveLength(4);
});

test("what is more than a notice is marked, also where only its incident says so", () => {
  const told = listed([
    one("alert", "WAIT_NOTICE", "INFO"),
    one("alert", "WAIT_TOO_LONG"),
    one("alert", "FOREIGN_OCCUPANCY", "INFO", 2),
    one("incident", "STOP_FOREIGN_OCCUPANCY", "", 2),
  ]);

  expect(told.map(({ told: { code }, grave }) => [code, grave])).toEqual([
    ["FOREIGN_OCCUPANCY", true],
    ["WAIT_TOO_LONG", true],
    ["WAIT_NOTICE", false],
  ]);
});
