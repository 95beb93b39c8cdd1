/** A scheduler at a glance: key figures in human units, and items that need attention with links to their causes.
 *
 * Pure functions of API responses, which `use_glances.ts` fetches. An item disappears when its cause does.
 */

import type {
  AlertNow,
  FleetNow,
  PlayerNow,
  Readiness,
  RunStatusView,
  SchedulerGovernance,
  SchedulerJob,
  SchedulerMetrics,
  SchedulerView,
  TruckNow,
  WorldNow,
} from "../../api/types";
import { schedulerHref } from "../../route";
import { Clock } from "../../schedulers/actions/model";
import { condition, isMoving, isStopped } from "../../schedulers/fleet/wording";
import { counted, integer, timeSpan } from "../../wording";

export interface Figure {
  readonly name: string;
  readonly value: string;
  /** The number behind a value that is summed over several engines. */
  readonly count?: number;
}

/** An item that needs attention, with a link to its cause. */
export interface Need {
  readonly key: string;
  readonly sentence: string;
  readonly href: string;
  /** How many items the sentence stands for; 1 by default. */
  readonly count?: number;
  /** Whether the cause is gone; the item is shown but not counted. */
  readonly resolved?: boolean;
}

/** How many items need attention, including those without a line of their own. */
export function countOf(needs: readonly Need[]): number {
  return needs.reduce((sum, { count, resolved }) => sum + (resolved ? 0 : (count ?? 1)), 0);
}

export interface Glance {
  readonly figures: readonly Figure[];
  readonly needs: readonly Need[];
}

/** Merge the figures of several engines: counts are summed, other figures are those of the first engine. */
export function mergeFigures([first, ...others]: readonly Glance[]): readonly Figure[] {
  return (first?.figures ?? []).map((figure) => {
    const { name, count } = figure;
    if (count === undefined) return figure;
    const more = others.map(({ figures }) => figures.find((other) => other.name === name)?.count ?? 0);
    return countFigure(
      name,
      more.reduce((sum, value) => sum + value, count),
    );
  });
}

function countFigure(name: string, count: number): Figure {
  return { name, value: integer(count), count };
}

/** The age up to which an alert of a fleet is shown, in fleet time. */
const RECENT_MS = 600_000;
const MAX_ALERTS = 3;
/** Alerts that end an earlier alert about the whole fleet. */
const ALL_CLEAR: ReadonlySet<string> = new Set(["FLEET_KEEPS_UP", "LOGGING_RESTORED"]);
const MAX_LISTED = 3;

/** The broken schedulers and engines. */
export function brokenNeeds(scheduler: SchedulerView): Need[] {
  const whole =
    scheduler.state === "broken" && scheduler.engines.every(({ broken }) => broken === null)
      ? [
          need(
            `${scheduler.name} broken`,
            `${scheduler.title}: ${scheduler.reason?.sentence ?? "is broken"}`,
            schedulerHref(scheduler.name),
          ),
        ]
      : [];
  const engines = scheduler.engines.flatMap(({ name, broken }) =>
    broken === null
      ? []
      : [
          need(
            `${scheduler.name} ${name} broken`,
            `${scheduler.title} ${name}: ${broken}`,
            schedulerHref(scheduler.name, name),
          ),
        ],
  );
  return [...whole, ...engines];
}

/** Failed readiness checks and checks with a note; the check of an engine links to the engine. */
export function failingChecks({ checks }: Readiness, schedulers: readonly SchedulerView[]): Need[] {
  return checks.flatMap(({ name, ok, reason, note }) => {
    const [scheduler = "", engine = null] = name.split("/");
    const href = schedulers.some((candidate) => candidate.name === scheduler) ? schedulerHref(scheduler, engine) : "#/";
    const failing = need(`check ${name}`, `Check ${name} failed: ${reason ?? "no reason given"}`, href);
    return [...(ok ? [] : [failing]), ...(note === null ? [] : [need(`note ${name}`, `${name}: ${note}`, href)])];
  });
}

export function actionsGlance(world: string, now: WorldNow): Glance {
  const clock = new Clock(now.start_at);
  const waiting = ["waiting", "held", "suspended"].reduce((sum, stage) => sum + (now.counts[stage] ?? 0), 0);
  return {
    figures: [
      { name: "world time", value: clock.moment(now.t) },
      { name: "running", value: integer(now.counts["running"] ?? 0) },
      { name: "waiting", value: integer(waiting) },
      { name: "next", value: now.next_due === null ? "nothing" : clock.time(now.next_due) },
    ],
    needs: now.broken.map((invariant) =>
      need(
        `actions ${world} ${invariant}`,
        `${world}: invariant ${invariant} is violated`,
        schedulerHref("actions", world),
      ),
    ),
  };
}

/** `recordOf` returns the journal record of an alert, or `null` when it is unknown. */
export function fleetGlance(
  fleet: string,
  now: FleetNow,
  alerts: readonly AlertNow[],
  recordOf: (alert: AlertNow) => number | null = () => null,
): Glance {
  const stopped = now.trucks.filter(isStopped);
  const countIn = (state: string) => now.trucks.filter((truck) => condition(truck) === state).length;
  const waiting = now.trucks.filter(({ needs_person }) => needs_person);
  const trucks = waiting.map((truck) =>
    need(
      `fleet ${fleet} ${truck.robot_id}`,
      `Truck ${truck.robot_id} of ${fleet} is stopped${inParentheses(condition(truck))}: ${truck.sentence}`,
      schedulerHref("fleet", fleet, null, truck.robot_id),
    ),
  );
  const known = new Set(waiting.map(({ robot_id }) => robot_id));
  const byId = truckById(now.trucks);
  return {
    figures: [
      countFigure("driving", now.trucks.filter(isMoving).length),
      countFigure("waiting", countIn("waits")),
      countFigure("stopped", stopped.length),
      countFigure("tasks done", now.counts["DONE"] ?? 0),
    ],
    needs: [
      ...trucks,
      ...recentAlerts(now.now, alerts, known, now.trucks).map((alert) =>
        alertNeed(fleet, now.now, alert, recordOf(alert), isResolved(alert, byId) ? byId : null),
      ),
    ],
  };
}

function inParentheses(word: string): string {
  return word === "stopped" ? "" : ` (${word})`;
}

/** The newest recent alerts above the severity of a notice, one per truck, without trucks in `known` and without resolved
 * alerts. Incidents are kept even when resolved, so that the minute before them can be replayed. */
export function recentAlerts(
  now: number,
  alerts: readonly AlertNow[],
  known: ReadonlySet<string>,
  trucks: readonly TruckNow[],
): AlertNow[] {
  const byId = truckById(trucks);
  const relevant = alerts.filter(
    (alert) =>
      (alert.kind === "incident" ||
        ALL_CLEAR.has(alert.code) ||
        (alert.alert?.severity !== "INFO" && !isResolved(alert, byId))) &&
      now - alert.now <= RECENT_MS &&
      !alert.robot_ids.some((robot) => known.has(robot)),
  );
  const newest = new Map(relevant.map((alert) => [subjectOf(alert), alert]));
  const open = [...newest.values()].filter(({ code }) => !ALL_CLEAR.has(code));
  return open.slice(-MAX_ALERTS).reverse();
}

/** What an alert is about: its trucks, or for a whole fleet the first word of its code. */
function subjectOf({ code, robot_ids }: AlertNow): string {
  return robot_ids.length > 0 ? robot_ids.join(" ") : (code.split("_")[0] ?? "");
}

type TruckById = ReadonlyMap<string, TruckNow>;

function truckById(trucks: readonly TruckNow[]): TruckById {
  return new Map(trucks.map((truck) => [truck.robot_id, truck]));
}

function isResolved({ code, robot_ids }: AlertNow, byId: TruckById): boolean {
  return robot_ids.length > 0 && robot_ids.every((robot) => isFine(byId.get(robot), code));
}

/** Whether an alert no longer applies to a truck: it does not wait, or nothing stops it. */
function isFine(truck: TruckNow | undefined, alert: string): boolean {
  if (truck === undefined) return false;
  return isAboutWaiting(alert) ? truck.wait === 0 : !truck.code.startsWith("STOP_");
}

function isAboutWaiting(code: string): boolean {
  return code.startsWith("WAIT_") || code.startsWith("DEADLOCK_") || code === "ROUTE_REFUSED";
}

/** The line of an alert; `trucks` is given when the alert is resolved. */
function alertNeed(fleet: string, now: number, alert: AlertNow, record: number | null, trucks: TruckById | null): Need {
  const { code, robot_ids, message, now: at } = alert;
  const what = message === "" ? `${code.toLowerCase().replaceAll("_", " ")} of ${robot_ids.join(", ")}` : message;
  const recoveries = robot_ids.map((robot) => {
    const truck = trucks?.get(robot);
    return `${robot} ${truck !== undefined && isMoving(truck) ? "drives" : "is fine"} again`;
  });
  const sentence =
    trucks === null
      ? `Alert in ${fleet}, ${timeSpan(now - at)} ago: ${what}`
      : `Resolved in ${fleet}: ${recoveries.join(", ")}. ${timeSpan(now - at)} ago: ${what}`;
  return {
    ...need(
      `fleet ${fleet} ${code} ${robot_ids.join(" ")}`,
      sentence,
      schedulerHref("fleet", fleet, record, robot_ids[0] ?? null),
    ),
    ...(trucks === null ? {} : { resolved: true }),
  };
}

/** Objects that need a manual decision: their count, and the first of them. */
type ManualDecisions = SchedulerGovernance["for_a_person"];

function escalations({ count, first }: ManualDecisions, now: number): Need[] {
  const shown = first.map(({ object_type, object_id, uncertain_since }) =>
    need(
      `jobs ${object_type} ${object_id}`,
      `${object_type} ${object_id} needs a manual decision${
        uncertain_since === null ? "" : `, uncertain for ${timeSpan(Math.max(0, now - Date.parse(uncertain_since)))}`
      }`,
      schedulerHref("jobs", `${object_type}:${object_id}`, null, "objects"),
    ),
  );
  const more = count - shown.length;
  const others = counted(more, "more object needs", "more objects need");
  return more === 0
    ? shown
    : [
        ...shown,
        {
          ...need("jobs objects", `${others} a manual decision`, schedulerHref("jobs", null, null, "objects")),
          count: more,
        },
      ];
}

export function jobsGlance(
  metrics: SchedulerMetrics,
  dead: readonly SchedulerJob[],
  decisions: ManualDecisions = { count: 0, first: [] },
): Glance {
  const { jobs, jobs_due_count, jobs_lag_seconds, job_success_rate, dead_letter_count, alerts_waiting } = metrics;
  const letters = dead
    .slice(0, MAX_LISTED)
    .map(({ job_id, action, object_type, object_id, last_error }) =>
      need(
        `jobs ${job_id}`,
        `${action} ${object_type} ${object_id} failed for good${last_error === null ? "" : `: ${last_error}`}`,
        schedulerHref("jobs", job_id, null, "dead"),
      ),
    );
  const more = dead_letter_count - letters.length;
  const late = jobs_due_count === 0 ? "on time" : `${timeSpan(Number(jobs_lag_seconds) * 1000)} late`;
  return {
    figures: [
      { name: "waiting", value: integer(jobs.queued) },
      { name: "running", value: integer(jobs.running) },
      { name: "due now", value: jobs_due_count === 0 ? "none" : `${integer(jobs_due_count)}, ${late}` },
      { name: "succeeded", value: job_success_rate === null ? "none yet" : percent(Number(job_success_rate)) },
    ],
    needs: [
      ...letters,
      ...(more > 0
        ? [
            {
              ...need(
                "jobs dead",
                letters.length === 0 ? counted(more, "dead letter") : counted(more, "more dead letter"),
                schedulerHref("jobs", null, null, "dead"),
              ),
              count: more,
            },
          ]
        : []),
      ...escalations(decisions, Date.parse(metrics.now)),
      ...metrics.unhandled.map(({ object_type, action, count, job_id }) =>
        need(
          `jobs unhandled ${object_type} ${action}`,
          `No worker handles ${action} of ${object_type}: ${counted(count, "job waits", "jobs wait")}`,
          schedulerHref("jobs", job_id),
        ),
      ),
      ...(alerts_waiting > 0
        ? [need("jobs alerts", `${counted(alerts_waiting, "alert")} not delivered`, schedulerHref("jobs"))]
        : []),
    ],
  };
}

export function creditGlance(runs: readonly RunStatusView[]): Glance {
  const shown = runs.find(({ state }) => state === "running" || state === "paused") ?? runs[0];
  const figures: Figure[] =
    shown === undefined
      ? [{ name: "runs", value: "none yet" }]
      : [
          { name: shown.state, value: timeSpan(shown.sim_time_ms) },
          { name: "payment attempts", value: integer(shown.attempts_total) },
          {
            name: "committed",
            value: shown.attempts_total === 0 ? "none yet" : percent(shown.committed_total / shown.attempts_total),
          },
          { name: "runs", value: integer(runs.length) },
        ];
  const failed = runs.filter(({ state }) => state === "error");
  return {
    figures,
    needs: failed.map(({ run_id, scenario_id, last_error }) =>
      need(
        `credit ${run_id}`,
        `A run of ${scenario_id} failed: ${last_error?.message ?? "no reason given"}`,
        schedulerHref("credit", run_id),
      ),
    ),
  };
}

export function playbackGlance(player: string, now: PlayerNow): Glance {
  const { item, exposure, pool, broken } = now;
  const here = schedulerHref("playback", player);
  const unreadable = exposure.filter(({ readable }) => !readable);
  const turns = exposure.reduce((sum, { shown }) => sum + shown, 0);
  return {
    figures: [
      { name: "now showing", value: item === null ? "nothing" : (item.channel ?? "new artwork") },
      { name: "turns", value: integer(turns) },
      { name: "channels", value: integer(exposure.length) },
      { name: "new artwork", value: integer(pool.length) },
    ],
    needs: [
      ...(item === null ? [need(`playback ${player} blank`, `The screen of ${player} is empty`, here)] : []),
      ...unreadable.map(({ channel }) =>
        need(`playback ${player} ${channel}`, `${player} cannot read its channel ${channel}`, here),
      ),
      ...broken.map((invariant) =>
        need(`playback ${player} ${invariant}`, `${player}: invariant ${invariant} is violated`, here),
      ),
    ],
  };
}

function percent(share: number): string {
  return `${Math.round(share * 1000) / 10} %`;
}

function need(key: string, sentence: string, href: string): Need {
  return { key, sentence, href };
}
