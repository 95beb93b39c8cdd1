import { expect, test } from "vitest";

import type { AlertNow } from "../../api/types";
import { listAlerts } from "./alerts";

const event = (kind: string, code: string, severity = "WARN", tick = 1, robot = "R1"): AlertNow => ({
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
])("the stop %s with an alert of its own is listed once", (incident, alert) => {
  const list = listAlerts([event("alert", alert), event("incident", incident)]);

  expect(list.map(({ alert: { kind, code } }) => [kind, code])).toEqual([["alert", alert]]);
});

test("incidents of other trucks, ticks or kinds have their own lines", () => {
  const list = listAlerts([
    event("alert", "POSE_JUMP"),
    event("incident", "STOP_POSE_JUMP", "WARN", 1, "R2"),
    event("incident", "STOP_POSE_JUMP", "WARN", 2),
    event("incident", "STOP_OFF_ROUTE"),
  ]);

  expect(list).toHaveLength(4);
});

test("alerts above a notice are marked, also if only their incident is serious", () => {
  const list = listAlerts([
    event("alert", "WAIT_NOTICE", "INFO"),
    event("alert", "WAIT_TOO_LONG"),
    event("alert", "FOREIGN_OCCUPANCY", "INFO", 2),
    event("incident", "STOP_FOREIGN_OCCUPANCY", "", 2),
  ]);

  expect(list.map(({ alert: { code }, isSerious }) => [code, isSerious])).toEqual([
    ["FOREIGN_OCCUPANCY", true],
    ["WAIT_TOO_LONG", true],
    ["WAIT_NOTICE", false],
  ]);
});
