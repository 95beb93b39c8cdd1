/** The list of alerts and incidents without duplicates, with the serious ones marked. */

import type { AlertNow } from "../../api/types";

export interface ListedAlert {
  readonly alert: AlertNow;
  /** Whether it is an incident or an alert above a notice; the incident buttons of the slider go to these. */
  readonly isSerious: boolean;
}

/** The alert code of incidents whose alert has a different name. */
const ALERT_CODES: Readonly<Record<string, string>> = {
  STOP_OVERRUN: "HOLDPOINT_OVERRUN",
  STOP_INVARIANT: "SAFETY_STOP",
};

/** Newest first. A stop is both an alert and an incident of the same tick; only the alert, which has more details, is listed. */
export function listAlerts(all: readonly AlertNow[]): readonly ListedAlert[] {
  const alerts = new Set(all.filter(({ kind }) => kind === "alert").map((alert) => keyOf(alert, alert.code)));
  const incidents = new Set(
    all.filter(({ kind }) => kind === "incident").map((incident) => keyOf(incident, alertCodeOf(incident.code))),
  );
  return all
    .filter((entry) => entry.kind !== "incident" || !alerts.has(keyOf(entry, alertCodeOf(entry.code))))
    .map((alert) => ({ alert, isSerious: isSerious(alert) || incidents.has(keyOf(alert, alert.code)) }))
    .reverse();
}

function isSerious({ kind, alert }: AlertNow): boolean {
  return kind === "incident" || (alert !== null && alert.severity !== "INFO");
}

function alertCodeOf(code: string): string {
  return ALERT_CODES[code] ?? code.replace(/^STOP_/, "");
}

function keyOf({ tick, robot_ids }: AlertNow, code: string): string {
  return `${tick} ${code} ${robot_ids.join(" ")}`;
}
