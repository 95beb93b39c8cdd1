/** A scheduler at a glance: a few figures in human units, and what needs a person, each with the way to its cause.
 *
 * Pure functions of what the schedulers answer; `looking.ts` asks them. What is told as a need is so now: it goes away by
 * itself when its cause does.
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
  /** What it counts, where the figures of several engines add up. */
  readonly count?: number;
}

/** Something that waits for a person, with the way to its cause. */
export interface Need {
  readonly key: string;
  readonly sentence: string;
  readonly href: string;
  /** How many of them the sentence stands for, where that is not one. */
  readonly times?: number;
  /** Whether it is only news: it has passed, and waits for nobody. */
  readonly over?: boolean;
}

/** How many things need a person, whether each has its line or not. */
export function countOf(needs: readonly Need[]): number {
  return needs.reduce((sum, { times, over }) => sum + (over ? 0 : (times ?? 1)), 0);
}

export interface Glance {
  readonly figures: readonly Figure[];
  readonly needs: readonly Need[];
}

/** The figures of several engines as those of one: what is counted is added up, the rest is that of the first. */
export function together([first, ...others]: readonly Glance[]): readonly Figure[] {
  return (first?.figures ?? []).map((figure) => {
    const { name, count } = figure;
    if (count === undefined) return figure;
    const more = others.map(({ figures }) => figures.find((one) => one.name === name)?.count ?? 0);
    return counting(
      name,
      more.reduce((sum, one) => sum + one, count),
    );
  });
}

function counting(name: string, count: number): Figure {
  return { name, value: integer(count), count };
}

/** How long ago an alert of a fleet is still news, in its own time. */
const RECENT_MS = 600_000;
const MOST_ALERTS = 3;
/** That what was wrong with a whole fleet is over. */
const GOOD_NEWS: ReadonlySet<string> = new Set(["FLEET_KEEPS_UP", "LOGGING_RESTORED"]);
const MOST_OF_A_KIND = 3;

/** What every scheduler and every engine says of itself: that it is broken. */
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

/** The checks of the server that fail, and those with a note; an engine's check leads to its engine. */
export function failingChecks({ checks }: Readiness, schedulers: readonly SchedulerView[]): Need[] {
  return checks.flatMap(({ name, ok, reason, note }) => {
    const [scheduler = "", engine = null] = name.split("/");
    const href = schedulers.some((one) => one.name === scheduler) ? schedulerHref(scheduler, engine) : "#/";
    const failing = need(`check ${name}`, `The check ${name} fails: ${reason ?? "it does not say why"}`, href);
    return [...(ok ? [] : [failing]), ...(note === null ? [] : [need(`note ${name}`, `${name}: ${note}`, href)])];
  });
}

export function actionsGlance(world: string, now: WorldNow): Glance {
  const clock = new Clock(now.start_at);
  const waiting = ["waiting", "held", "suspended"].reduce((sum, stage) => sum + (now.counts[stage] ?? 0), 0);
  return {
    figures: [
      { name: "in the world", value: clock.moment(now.t) },
      { name: "running", value: integer(now.counts["running"] ?? 0) },
      { name: "waiting", value: integer(waiting) },
      { name: "next", value: now.next_due === null ? "nothing" : clock.time(now.next_due) },
    ],
    needs: now.broken.map((law) =>
      need(`actions ${world} ${law}`, `${world}: the rule ${law} does not hold`, schedulerHref("actions", world)),
    ),
  };
}

/** `recordOf` is the record of the journal in which an alert was raised, where it is known. */
export function fleetGlance(
  fleet: string,
  now: FleetNow,
  alerts: readonly AlertNow[],
  recordOf: (alert: AlertNow) => number | null = () => null,
): Glance {
  const stopped = now.trucks.filter(isStopped);
  const count = (word: string) => now.trucks.filter((truck) => condition(truck) === word).length;
  const waiting = now.trucks.filter(({ needs_person }) => needs_person);
  const trucks = waiting.map((truck) =>
    need(
      `fleet ${fleet} ${truck.robot_id}`,
      `Truck ${truck.robot_id} of ${fleet} is stopped${inBrackets(condition(truck))}: ${truck.sentence}`,
      schedulerHref("fleet", fleet, null, truck.robot_id),
    ),
  );
  const known = new Set(waiting.map(({ robot_id }) => robot_id));
  const byId = truckById(now.trucks);
  return {
    figures: [
      counting("driving", now.trucks.filter(isMoving).length),
      counting("waiting", count("waits")),
      counting("stopped", stopped.length),
      counting("tasks done", now.counts["DONE"] ?? 0),
    ],
    needs: [
      ...trucks,
      ...recentAlerts(now.now, alerts, known, now.trucks).map((alert) =>
        alertNeed(fleet, now.now, alert, recordOf(alert), isOver(alert, byId) ? byId : null),
      ),
    ],
  };
}

function inBrackets(word: string): string {
  return word === "stopped" ? "" : ` (${word})`;
}

/** The newest alerts that are news and more than a notice, one a truck; trucks that are told anyway are left out, and
 * alerts of trucks that are well again. An incident stays news: somebody will want to see the minute before it. */
export function recentAlerts(
  now: number,
  alerts: readonly AlertNow[],
  known: ReadonlySet<string>,
  trucks: readonly TruckNow[],
): AlertNow[] {
  const byId = truckById(trucks);
  const grave = alerts.filter(
    (one) =>
      (one.kind === "incident" || GOOD_NEWS.has(one.code) || (one.alert?.severity !== "INFO" && !isOver(one, byId))) &&
      now - one.now <= RECENT_MS &&
      !one.robot_ids.some((robot) => known.has(robot)),
  );
  const newest = new Map(grave.map((one) => [aboutOf(one), one]));
  const news = [...newest.values()].filter(({ code }) => !GOOD_NEWS.has(code));
  return news.slice(-MOST_ALERTS).reverse();
}

/** What an alert is about: its trucks, or what of a whole fleet. */
function aboutOf({ code, robot_ids }: AlertNow): string {
  return robot_ids.length > 0 ? robot_ids.join(" ") : (code.split("_")[0] ?? "");
}

type TruckById = ReadonlyMap<string, TruckNow>;

function truckById(trucks: readonly TruckNow[]): TruckById {
  return new Map(trucks.map((truck) => [truck.robot_id, truck]));
}

function isOver({ code, robot_ids }: AlertNow, byId: TruckById): boolean {
  return robot_ids.length > 0 && robot_ids.every((robot) => isWell(byId.get(robot), code));
}

/** Whether an alert is not true of a truck any more: it waits for nothing, or nothing stops it. */
function isWell(truck: TruckNow | undefined, alert: string): boolean {
  if (truck === undefined) return false;
  return isWait(alert) ? truck.wait === 0 : !truck.code.startsWith("STOP_");
}

/** Whether an alert is about waiting itself. */
function isWait(code: string): boolean {
  return code.startsWith("WAIT_") || code.startsWith("DEADLOCK_") || code === "ROUTE_REFUSED";
}

/** `well`: the trucks, where what the alert tells has passed. */
function alertNeed(fleet: string, now: number, alert: AlertNow, record: number | null, well: TruckById | null): Need {
  const { code, robot_ids, message, now: at } = alert;
  const what = message === "" ? `${code.toLowerCase().replaceAll("_", " ")} of ${robot_ids.join(", ")}` : message;
  const again = robot_ids.map((robot) => {
    const truck = well?.get(robot);
    return `${robot} ${truck !== undefined && isMoving(truck) ? "drives" : "is well"} again`;
  });
  const told =
    well === null
      ? `Alert in ${fleet}, ${timeSpan(now - at)} ago: ${what}`
      : `Over in ${fleet}: ${again.join(", ")}. ${timeSpan(now - at)} ago: ${what}`;
  return {
    ...need(
      `fleet ${fleet} ${code} ${robot_ids.join(" ")}`,
      told,
      schedulerHref("fleet", fleet, record, robot_ids[0] ?? null),
    ),
    ...(well === null ? {} : { over: true }),
  };
}

/** Objects that nobody but a person may decide about: how many, and the first of them. */
type ForAPerson = SchedulerGovernance["for_a_person"];

function escalations({ count, first }: ForAPerson, now: number): Need[] {
  const shown = first.map(({ object_type, object_id, uncertain_since }) =>
    need(
      `jobs ${object_type} ${object_id}`,
      `A person has to decide about ${object_type} ${object_id}${
        uncertain_since === null ? "" : `, uncertain for ${timeSpan(Math.max(0, now - Date.parse(uncertain_since)))}`
      }`,
      schedulerHref("jobs", `${object_type}:${object_id}`, null, "objects"),
    ),
  );
  const more = count - shown.length;
  const others = counted(more, "more object waits", "more objects wait");
  return more === 0
    ? shown
    : [
        ...shown,
        {
          ...need("jobs objects", `${others} for a person to decide`, schedulerHref("jobs", null, null, "objects")),
          times: more,
        },
      ];
}

export function jobsGlance(
  metrics: SchedulerMetrics,
  dead: readonly SchedulerJob[],
  forAPerson: ForAPerson = { count: 0, first: [] },
): Glance {
  const { jobs, jobs_due_count, jobs_lag_seconds, job_success_rate, dead_letter_count, alerts_waiting } = metrics;
  const letters = dead
    .slice(0, MOST_OF_A_KIND)
    .map(({ job_id, action, object_type, object_id, last_error }) =>
      need(
        `jobs ${job_id}`,
        `Given up: ${action} ${object_type} ${object_id}${last_error === null ? "" : `: ${last_error}`}`,
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
                letters.length === 0
                  ? `${counted(more, "job was", "jobs were")} given up`
                  : `${counted(more, "more job was", "more jobs were")} given up`,
                schedulerHref("jobs", null, null, "dead"),
              ),
              times: more,
            },
          ]
        : []),
      ...escalations(forAPerson, Date.parse(metrics.now)),
      ...metrics.unhandled.map(({ object_type, action, count, job_id }) =>
        need(
          `jobs nobody ${object_type} ${action}`,
          `Nobody handles ${action} of ${object_type}: ${counted(count, "job waits", "jobs wait")}`,
          schedulerHref("jobs", job_id),
        ),
      ),
      ...(alerts_waiting > 0
        ? [
            need(
              "jobs alerts",
              `${counted(alerts_waiting, "alert waits", "alerts wait")} for delivery`,
              schedulerHref("jobs"),
            ),
          ]
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
          { name: "payments tried", value: integer(shown.attempts_total) },
          {
            name: "made",
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
        `A run of ${scenario_id} failed: ${last_error?.message ?? "it does not say why"}`,
        schedulerHref("credit", run_id),
      ),
    ),
  };
}

export function playbackGlance(player: string, now: PlayerNow): Glance {
  const { item, exposure, pool, broken } = now;
  const here = schedulerHref("playback", player);
  const unreadable = exposure.filter(({ readable }) => !readable);
  const turns = exposure.reduce((sum, one) => sum + one.shown, 0);
  return {
    figures: [
      { name: "on now", value: item === null ? "nothing" : (item.channel ?? "new artwork") },
      { name: "turns", value: integer(turns) },
      { name: "channels", value: integer(exposure.length) },
      { name: "new artwork", value: integer(pool.length) },
    ],
    needs: [
      ...(item === null ? [need(`playback ${player} blank`, `The screen of ${player} is empty`, here)] : []),
      ...unreadable.map(({ channel }) =>
        need(`playback ${player} ${channel}`, `${player} cannot read its channel ${channel}`, here),
      ),
      ...broken.map((law) => need(`playback ${player} ${law}`, `${player}: the rule ${law} does not hold`, here)),
    ],
  };
}

function percent(share: number): string {
  return `${Math.round(share * 1000) / 10} %`;
}

function need(key: string, sentence: string, href: string): Need {
  return { key, sentence, href };
}
