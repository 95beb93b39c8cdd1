// @vitest-environment happy-dom

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Api } from "../../api/client";
import type { Json, JsonObject } from "../../api/json";
import { writeJson } from "../../api/json";
import { ScriptedSources } from "../../testing/sources";
import { LiveRun } from "./live_run";
import { cleared, paid, refused, snapshot, status } from "./testing";

const BATCH_MS = 200;
const POLL_MS = 4_000;

const base = "/api/v1/simulator/runs/run_1";

let requests: string[] = [];
let answers: Record<string, Json | ((query: string) => Response | Promise<Response>)> = {};
let lastEvent = 0;
let sources = new ScriptedSources();
let live: LiveRun | null = null;

beforeEach(() => {
  vi.useFakeTimers();
  requests = [];
  lastEvent = 100;
  sources = new ScriptedSources();
  answers = {
    [base]: plain(status()),
    [`${base}/graph/snapshot`]: plain(snapshot()),
    [`${base}/metrics`]: { series: [] },
    [`${base}/bottlenecks`]: { items: [] },
    [`${base}/details`]: { tick_index: 3 },
    [`${base}/events/poll`]: [refused({ event_id: "evt_r_000001" })],
  };
});

afterEach(() => live?.stop());

async function opened(): Promise<LiveRun> {
  const api = new Api({
    fetch: async (path) => {
      requests.push(path);
      const [route = "", query = ""] = path.split("?");
      const answer = answers[route];
      if (answer === undefined) return refusal(404, "RUN_NOT_FOUND");
      return typeof answer === "function" ? answer(query) : respond(answer);
    },
    onUnauthorised: () => undefined,
  });
  live = new LiveRun(api, "run_1", null, sources.open);
  await live.start();
  return live;
}

function respond(body: Json): Response {
  return new Response(writeJson(body));
}

function refusal(status: number, code: string): Response {
  return new Response(writeJson({ error: { code, message: "gone" } }), { status });
}

/** Emit events on the stream; an event without an id gets the next one. */
function emit(...events: JsonObject[]): void {
  for (const event of events) {
    lastEvent += 1;
    sources.newest.emit("simulator.event", writeJson(event), String(event["event_id"] ?? `evt_r_${lastEvent}`));
  }
}

test("recent events are loaded before the stream is opened", async () => {
  const run = await opened();

  expect(run.events.value.map(({ kind }) => kind)).toEqual(["refusal"]);
  expect(sources.newest.address).toBe(`${base}/events?equivalent=HOUR&after=evt_r_000001`);
});

test("recent events are requested before the snapshot, so that none is missed", async () => {
  await opened();

  const routes = requests.map((path) => path.split("?")[0]);
  expect(routes.indexOf(`${base}/events/poll`)).toBeLessThan(routes.indexOf(`${base}/graph/snapshot`));
});

test("an event that was already loaded is not counted again from the stream", async () => {
  answers[`${base}/events/poll`] = [paid()];
  const run = await opened();

  emit(paid(), refused());
  await vi.advanceTimersByTimeAsync(BATCH_MS);

  expect(run.events.value.map(({ id }) => id)).toEqual(["evt_r_000002", "evt_r_000003"]);
});

test("after a reload older events are shown, and the stream resumes after the newest", async () => {
  answers[`${base}/events/last`] = [paid({ event_id: "evt_r_000000" }), refused({ event_id: "evt_r_000001" })];
  const run = await opened();

  expect(run.events.value.map(({ id }) => id)).toEqual(["evt_r_000000", "evt_r_000001"]);
  expect(sources.newest.address).toBe(`${base}/events?equivalent=HOUR&after=evt_r_000001`);
});

test("older events are shown even if the stream has dropped them", async () => {
  answers[`${base}/events/last`] = [paid({ event_id: "evt_r_000009" })];
  answers[`${base}/events/poll`] = [];
  const run = await opened();

  expect(run.events.value.map(({ id }) => id)).toEqual(["evt_r_000009"]);
  expect(sources.newest.address).toBe(`${base}/events?equivalent=HOUR`);
});

test("a lost stream resumes after its last event", async () => {
  await opened();
  sources.newest.emit("open");
  emit(paid());
  sources.newest.emit("error");

  await vi.advanceTimersByTimeAsync(1_000);

  expect(sources.newest.address).toBe(`${base}/events?equivalent=HOUR&after=evt_r_000002`);
});

test("if the last event is gone from the server, the remaining events are loaded", async () => {
  const run = await opened();
  sources.newest.emit("open");
  sources.newest.emit("error");
  await vi.advanceTimersByTimeAsync(1_000);
  answers[`${base}/events/poll`] = (query) =>
    query.includes("after=evt_r_000001") ? refusal(410, "EVENT_ID_GONE") : respond([paid(), refused()]);

  sources.newest.emit("error", "EVENT_ID_GONE");
  await vi.advanceTimersByTimeAsync(2_000);

  expect(run.events.value.map(({ id }) => id)).toEqual(["evt_r_000001", "evt_r_000002", "evt_r_000003"]);
  expect(sources.newest.address).toBe(`${base}/events?equivalent=HOUR&after=evt_r_000003`);
});

test("events loaded after two refusals in a row are counted once", async () => {
  const run = await opened();
  const pending: ((answer: Response) => void)[] = [];
  answers[`${base}/events/poll`] = (query) =>
    query.includes("after=")
      ? new Promise((resolve) => pending.push(resolve))
      : respond([paid(), refused({ event_id: "evt_r_000003" })]);
  sources.newest.emit("error", "EVENT_ID_GONE");
  await vi.advanceTimersByTimeAsync(1_000);
  sources.newest.emit("error", "EVENT_ID_GONE");

  for (const answer of pending) {
    answer(refusal(410, "EVENT_ID_GONE"));
    await vi.advanceTimersByTimeAsync(0);
  }

  expect(pending).toHaveLength(2);
  expect(run.events.value.map(({ id }) => id)).toEqual(["evt_r_000001", "evt_r_000002", "evt_r_000003"]);
});

test("an event during the fetch of the snapshot is not lost", async () => {
  const run = await opened();
  sources.newest.emit("open");
  const older = plain(snapshot());
  let resolveSnapshot: (answer: Response) => void = () => undefined;
  answers[`${base}/graph/snapshot`] = () => new Promise((resolve) => (resolveSnapshot = resolve));

  const pending = run.refresh();
  emit(paid());
  await vi.advanceTimersByTimeAsync(BATCH_MS);
  resolveSnapshot(respond(older));
  await pending;

  expect(run.network.value?.nodes.get("ann")?.net_balance).toBe("4.00");
});

test("events are applied in batches: network, highlights, counts and list", async () => {
  const run = await opened();
  sources.newest.emit("open");

  emit(paid(), cleared());
  expect(run.events.value).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(BATCH_MS);

  expect(run.network.value?.nodes.get("ann")?.net_balance).toBe("4.00");
  expect(run.highlights.value.map(({ kind }) => kind)).toContain("clearing");
  expect(run.counts.value.efficiency).toEqual([{ tick: 25, percent: 75 }]);
  expect(run.events.value.map(({ kind }) => kind)).toEqual(["refusal", "payment", "clearing"]);
});

test("a status event changes only its own members", async () => {
  const run = await opened();

  emit({ type: "run_status", state: "paused", sim_time_ms: 62_000, committed_total: 9 });
  await vi.advanceTimersByTimeAsync(BATCH_MS);

  expect(run.status.value).toMatchObject({ state: "paused", committed_total: 9, scenario_id: "three" });
  expect(run.active).toBe(true);
});

test("the end of a run closes the stream without an error", async () => {
  const run = await opened();
  const source = sources.newest;
  answers["/api/v1/simulator/runs/run_1"] = plain(status({ state: "stopped" }));

  emit({ type: "run_status", state: "stopped", sim_time_ms: 62_000 });
  await vi.advanceTimersByTimeAsync(60_000);

  expect([run.active, run.stream.value, source.closed, sources.opened.length]).toEqual([false, null, true, 1]);
});

test("a restarted run is followed again", async () => {
  answers["/api/v1/simulator/runs/run_1"] = plain(status({ state: "stopped" }));
  const run = await opened();
  emit({ type: "run_status", state: "stopped" });
  answers["/api/v1/simulator/runs/run_1"] = plain(status());

  answers[`${base}/events/poll`] = [paid({ event_id: "evt_r_000102" })];

  run.setStatus(status());
  await vi.advanceTimersByTimeAsync(BATCH_MS);

  expect(sources.opened.slice(1).map(({ address }) => address)).toEqual([
    `${base}/events?equivalent=HOUR&after=evt_r_000102`,
  ]);
  expect(run.active).toBe(true);
  expect(run.events.value.map(({ kind }) => kind)).toEqual(["refusal", "payment"]);
});

test("a run restarted elsewhere is noticed and followed again", async () => {
  const run = await opened();
  answers[base] = plain(status({ state: "stopped" }));
  emit({ type: "run_status", state: "stopped" });
  await vi.advanceTimersByTimeAsync(60_000);
  const before = run.active;
  answers[base] = plain(status());

  await vi.advanceTimersByTimeAsync(POLL_MS);

  expect([before, run.active, sources.opened.length]).toEqual([false, true, 2]);
});

test("after a lost connection everything is fetched once the stream is back", async () => {
  await opened();
  sources.newest.emit("open");
  sources.newest.emit("error");
  await vi.advanceTimersByTimeAsync(1_000);
  requests = [];

  sources.newest.emit("open");
  await vi.advanceTimersByTimeAsync(0);

  expect(sources.opened).toHaveLength(2);
  expect(requests.filter((path) => path.includes("graph/snapshot"))).toHaveLength(1);
});

test("a topology change fetches the network", async () => {
  await opened();
  requests = [];

  emit({ type: "topology.changed", equivalent: "HOUR", payload: {} });
  await vi.advanceTimersByTimeAsync(BATCH_MS);

  expect(requests.some((path) => path.includes("graph/snapshot"))).toBe(true);
});

test("a missing run reports an error and opens no stream", async () => {
  answers = {};
  const run = await opened();

  expect(run.error.value?.code).toBe("RUN_NOT_FOUND");
  expect(sources.opened).toEqual([]);
});

test("a missing run is not polled", async () => {
  answers = {};
  await opened();
  requests = [];

  await vi.advanceTimersByTimeAsync(60_000);

  expect(requests).toEqual([]);
});

test.each([base, `${base}/metrics`])("a failed first fetch of %s is retried", async (route) => {
  const healthy = answers[route] ?? null;
  answers[route] = () => refusal(503, "engine_unavailable");
  const run = await opened();
  const [failed, followed] = [run.error.value?.code, sources.opened.length];
  answers[route] = healthy;

  await vi.advanceTimersByTimeAsync(POLL_MS);

  expect([failed, followed]).toEqual(["engine_unavailable", 0]);
  expect([run.error.value, run.active, sources.opened.length]).toEqual([null, true, 1]);
});

function plain(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
