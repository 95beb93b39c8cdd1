/** The list of alerts and incidents as a person reads it: each thing once, and what is more than a notice marked. */

import type { AlertNow } from "../../api/types";

export interface Listed {
  readonly told: AlertNow;
  /** Whether it is an incident, or an alert that is more than a notice: what the buttons of the slider go to. */
  readonly grave: boolean;
}

/** Alerts that tell what an incident of another name is about. */
const TOLD_BY: Readonly<Record<string, string>> = {
  STOP_OVERRUN: "HOLDPOINT_OVERRUN",
  STOP_INVARIANT: "SAFETY_STOP",
};

/** The newest first. A stop is an alert and an incident of the same tick: the alert, which says more, stands for both. */
export function listed(alerts: readonly AlertNow[]): readonly Listed[] {
  const raised = new Set(alerts.filter(({ kind }) => kind === "alert").map((one) => keyOf(one, one.code)));
  const told = new Set(alerts.filter(({ kind }) => kind === "incident").map((one) => keyOf(one, alertOf(one.code))));
  return alerts
    .filter((one) => one.kind !== "incident" || !raised.has(keyOf(one, alertOf(one.code))))
    .map((one) => ({ told: one, grave: isGrave(one) || told.has(keyOf(one, one.code)) }))
    .reverse();
}

function isGrave({ kind, alert }: AlertNow): boolean {
  return kind === "incident" || (alert !== null && alert.severity !== "INFO");
}

function alertOf(code: string): string {
  return TOLD_BY[code] ?? code.replace(/^STOP_/, "");
}

function keyOf({ tick, robot_ids }: AlertNow, code: string): string {
  return `${tick} ${code} ${robot_ids.join(" ")}`;
}
