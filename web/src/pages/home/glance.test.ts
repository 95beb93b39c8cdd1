import { expect, test } from "vitest";

import type {
  AlertNow,
  FleetNow,
  RunStatusView,
  SchedulerGoverned,
  SchedulerJob,
  SchedulerMetrics,
  TruckNow,
} from "../../api/types";
import { player } from "../../schedulers/playback/testing";
import { countOf, creditGlance, fleetGlance, jobsGlance, playbackGlance } from "./glance";

const TRUCK = {
  robot_id: "R1",
  health: "HEALTHY",
  paused: false,
  speed: 1,
  code: "UNDER_WAY",
  wait: 0,
  sentence: "R1 is on its way.",
};
const truck = (changes: Partial<TruckNow> = {}) => ({ ...TRUCK, ...changes }) as TruckNow;
const fleet = (...trucks: TruckNow[]) => ({ now: 900_000, trucks, counts: { DONE: 4 } }) as unknown as FleetNow;

const METRICS = {
  jobs: { queued: 3, running: 1, succeeded: 9, failed: 0, dead_letter: 0 },
  jobs_due_count: 0,
  jobs_lag_seconds: 0,
  job_success_rate: 0.857142,
  dead_letter_count: 0,
  alerts_waiting: 0,
  unhandled: [],
} as unknown as SchedulerMetrics;

const alert = (changes: Partial<AlertNow>): AlertNow => ({
  tick: 1,
  now: 880_000,
  kind: "incident",
  alert: null,
  code: "STOP_POSE_JUMP",
  robot_ids: ["R2"],
  message: "R2 was stopped",
  ...changes,
});

test("a stopped truck is listed with its reason and a link to the truck", () => {
  const { needs, figures } = fleetGlance(
    "hall",
    fleet(truck(), truck({ robot_id: "R2", health: "FAULT", needs_person: true, sentence: "R2 reports a fault." })),
    [],
  );

  expect(needs).toEqual([
    {
      key: "fleet hall R2",
      sentence: "Truck R2 of hall is stopped (fault): R2 reports a fault.",
      href: "#/schedulers/fleet/hall?on=R2",
    },
  ]);
  expect(figures.find(({ name }) => name === "stopped")?.value).toBe("1");
});

test("a truck that stops for a moment and resumes by itself is not listed", () => {
  const { needs, figures } = fleetGlance("hall", fleet(truck({ health: "STALE", needs_person: false })), []);

  expect(needs).toEqual([]);
  expect(figures.find(({ name }) => name === "stopped")?.value).toBe("1");
});

test("recent alerts above the severity of a notice are listed with their age", () => {
  const notice = { alertId: "1", code: "WAIT_NOTICE", severity: "INFO", sinceMs: 0, details: {} };
  const { needs } = fleetGlance(
    "hall",
    fleet(truck()),
    [alert({ now: 1000, robot_ids: ["R3"] }), alert({ kind: "alert", alert: notice, robot_ids: ["R4"] }), alert({})],
    ({ now }) => now / 1000,
  );

  expect(needs.map(({ sentence, href }) => [sentence, href])).toEqual([
    ["Alert in hall, 20 s ago: R2 was stopped", "#/schedulers/fleet/hall?at=880&on=R2"],
  ]);
});

test("an alert is dropped when its truck is fine again, an alert about waiting when the truck waits no more", () => {
  const of = (code: string, robot: string) =>
    alert({
      kind: "alert",
      alert: { alertId: "1", code, severity: "WARN", sinceMs: 0, details: {} },
      code,
      robot_ids: [robot],
      message: `${code} of ${robot}`,
    });
  const trucks = [
    truck({ blocker: null }),
    truck({ robot_id: "R2", blocker: "R1", code: "WAIT_NODE", wait: 4000 }),
    // Its route is not admitted, so no particular truck blocks it.
    truck({ robot_id: "R3", blocker: null, hold_reason: "NONE", speed: 0, wait: 95_000 }),
    // It has no fault itself, it stops because of another truck.
    truck({ robot_id: "R4", blocker: "R1", code: "STOP_FOREIGN_OCCUPANCY", wait: 900 }),
  ];
  const needs = (...alerts: AlertNow[]) =>
    fleetGlance("hall", fleet(...trucks), alerts).needs.map(({ sentence }) => sentence);

  expect(needs(of("ROBOT_OFFLINE", "R1"), of("ROBOT_OFFLINE", "R2"))).toEqual([]);
  expect(needs(of("WAIT_TOO_LONG", "R1"), of("WAIT_TOO_LONG", "R2"))).toEqual([
    "Alert in hall, 20 s ago: WAIT_TOO_LONG of R2",
  ]);
  expect(needs(of("WAIT_TOO_LONG", "R3"))).toEqual(["Alert in hall, 20 s ago: WAIT_TOO_LONG of R3"]);
  expect(needs(of("STOP_IGNORED", "R4"))).toEqual(["Alert in hall, 20 s ago: STOP_IGNORED of R4"]);
});

test("an alert about a whole fleet ends with the all-clear", () => {
  const fleetAlert = (code: string) => alert({ kind: "alert", code, robot_ids: [], message: code });
  const needs = (...codes: string[]) =>
    fleetGlance("hall", fleet(truck()), codes.map(fleetAlert)).needs.map(({ sentence }) => sentence);

  expect(needs("FLEET_FALLS_BEHIND")).toEqual(["Alert in hall, 20 s ago: FLEET_FALLS_BEHIND"]);
  expect(needs("FLEET_FALLS_BEHIND", "FLEET_KEEPS_UP")).toEqual([]);
  expect(needs("LOGGING_DEGRADED", "FLEET_KEEPS_UP")).toEqual(["Alert in hall, 20 s ago: LOGGING_DEGRADED"]);
});

test("an incident of a truck that drives again is shown as resolved and not counted", () => {
  const { needs } = fleetGlance("hall", fleet(truck({ robot_id: "R2", blocker: null })), [alert({})]);

  expect(needs.map(({ sentence }) => sentence)).toEqual([
    "Resolved in hall: R2 drives again. 20 s ago: R2 was stopped",
  ]);
  expect(countOf(needs)).toBe(0);
});

test("the first dead letters are listed with their errors, the others are counted", () => {
  const dead = ["a", "b", "c"].map((id) => ({
    job_id: `job_${id}`,
    action: "verify",
    object_type: "memory",
    object_id: id,
    last_error: "no answer",
  })) as SchedulerJob[];
  const { needs } = jobsGlance({ ...METRICS, dead_letter_count: 5 }, dead);

  expect(needs[0]).toEqual({
    key: "jobs job_a",
    sentence: "verify memory a failed for good: no answer",
    href: "#/schedulers/jobs/job_a?on=dead",
  });
  expect(needs[3]).toMatchObject({ sentence: "2\u00a0more dead letters", href: "#/schedulers/jobs?on=dead" });
  expect(countOf(needs)).toBe(5);
});

test("an object that needs a manual decision links to the object", () => {
  const object = { object_type: "memory", object_id: "m1", uncertain_since: "2025-07-01T08:00:00Z" };
  const now = "2025-07-01T10:18:00Z";
  const first = [object] as SchedulerGoverned[];
  const { needs } = jobsGlance({ ...METRICS, now }, [], { count: 1, first });

  expect(needs).toEqual([
    {
      key: "jobs memory m1",
      sentence: "memory m1 needs a manual decision, uncertain for 2 h 18 min",
      href: "#/schedulers/jobs/memory%3Am1?on=objects",
    },
  ]);
});

test("of many objects that need a decision the first are listed, the others counted", () => {
  const first = ["a", "b", "c"].map((object_id) => ({ object_type: "memory", object_id, uncertain_since: null }));
  const { needs } = jobsGlance(METRICS, [], { count: 1203, first: first as SchedulerGoverned[] });

  expect(needs[3]).toMatchObject({
    sentence: "1200\u00a0more objects need a manual decision",
    href: "#/schedulers/jobs?on=objects",
  });
  expect(countOf(needs)).toBe(1203);
});

test("unhandled jobs and undelivered alerts need attention", () => {
  const unhandled = [{ object_type: "memory", action: "verify", count: 2, since: "", job_id: "job_1" }];
  const { needs } = jobsGlance({ ...METRICS, unhandled, alerts_waiting: 1 }, []);

  expect(needs.map(({ sentence }) => sentence)).toEqual([
    "No worker handles verify of memory: 2\u00a0jobs wait",
    "1\u00a0alert not delivered",
  ]);
});

test("a failed run links to the run, and the figures are those of the running one", () => {
  const run = { run_id: "r1", scenario_id: "village", sim_time_ms: 8_280_000, attempts_total: 4, committed_total: 3 };
  const { needs, figures } = creditGlance([
    { ...run, state: "running", last_error: null },
    { ...run, run_id: "r2", state: "error", last_error: { code: "X", message: "The disk is full" } },
  ] as unknown as RunStatusView[]);

  expect(needs).toEqual([
    { key: "credit r2", sentence: "A run of village failed: The disk is full", href: "#/schedulers/credit/r2" },
  ]);
  expect(figures.slice(0, 3).map(({ value }) => value)).toEqual(["2 h 18 min", "4", "75 %"]);
});

test("an empty screen needs attention", () => {
  const { needs } = playbackGlance("frame", player({ item: null }));

  expect(needs.map(({ href }) => href)).toEqual(["#/schedulers/playback/frame"]);
});
