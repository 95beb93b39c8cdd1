// @vitest-environment happy-dom

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Api } from "../../api/client";
import type { Json, JsonObject } from "../../api/json";
import { writeJson } from "../../api/json";
import { ScriptedSources } from "../../testing/sources";
import { LiveRun } from "./live_run";
import { cleared, paid, refused, snapshot, status } from "./testing";

const GATHERED_MS = 200;
const LOOKED_MS = 4_000;

const base = "/api/v1/simulator/runs/run_1";

let asked: string[] = [];
let answers: Record<string, Json | ((query: string) => Response | Promise<Response>)> = {};
let told = 0;
let sources = new ScriptedSources();
let live: LiveRun | null = null;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  told = 100;
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
      asked.push(path);
      const [place = "", query = ""] = path.split("?");
      const answer = answers[place];
      if (answer === undefined) return refusal(404, "RUN_NOT_FOUND");
      return typeof answer === "function" ? answer(query) : answered(answer);
    },
    onUnauthorised: () => undefined,
  });
  live = new LiveRun(api, "run_1", null, sources.open);
  await live.start();
  return live;
}

function answered(body: Json): Response {
  return new Response(writeJson(body));
}

function refusal(status: number, code: string): Response {
  return new Response(writeJson({ error: { code, message: "gone" } }), { status });
}

/** Told by the stream; an event without an id gets the next one. */
function say(...events: JsonObject[]): void {
  for (const event of events) {
    told += 1;
    sources.newest.emit("simulator.event", writeJson(event), String(event["event_id"] ?? `evt_r_${told}`));
  }
}

test("what the server still knows is recalled before the stream is followed", async () => {
  const run = await opened();

  expect(run.happened.value.map(({ kind }) => kind)).toEqual(["refusal"]);
  expect(sources.newest.address).toBe(`${base}/events?equivalent=HOUR&after=evt_r_000001`);
});

test("what is recalled is asked for before the picture, so that nothing lies between the two", async () => {
  await opened();

  const places = asked.map((path) => path.split("?")[0]);
  expect(places.indexOf(`${base}/events/poll`)).toBeLessThan(places.indexOf(`${base}/graph/snapshot`));
});

test("an event that was recalled is not counted again when the stream tells it", async () => {
  answers[`${base}/events/poll`] = [paid()];
  const run = await opened();

  say(paid(), refused());
  await vi.advanceTimersByTimeAsync(GATHERED_MS);

  expect(run.happened.value.map(({ id }) => id)).toEqual(["evt_r_000002", "evt_r_000003"]);
});

test("after a reload what happened before is shown, and the stream goes on after what it keeps", async () => {
  answers[`${base}/events/last`] = [paid({ event_id: "evt_r_000000" }), refused({ event_id: "evt_r_000001" })];
  const run = await opened();

  expect(run.happened.value.map(({ id }) => id)).toEqual(["evt_r_000000", "evt_r_000001"]);
  expect(sources.newest.address).toBe(`${base}/events?equivalent=HOUR&after=evt_r_000001`);
});

test("where streams keep nothing any more, what happened is shown all the same", async () => {
  answers[`${base}/events/last`] = [paid({ event_id: "evt_r_000009" })];
  answers[`${base}/events/poll`] = [];
  const run = await opened();

  expect(run.happened.value.map(({ id }) => id)).toEqual(["evt_r_000009"]);
  expect(sources.newest.address).toBe(`${base}/events?equivalent=HOUR`);
});

test("a lost stream goes on after the last event it told", async () => {
  await opened();
  sources.newest.emit("open");
  say(paid());
  sources.newest.emit("error");

  await vi.advanceTimersByTimeAsync(1_000);

  expect(sources.newest.address).toBe(`${base}/events?equivalent=HOUR&after=evt_r_000002`);
});

test("where the server cannot go on after the last event, what it still knows is asked for", async () => {
  const run = await opened();
  sources.newest.emit("open");
  sources.newest.emit("error");
  await vi.advanceTimersByTimeAsync(1_000);
  answers[`${base}/events/poll`] = (query) =>
    query.includes("after=evt_r_000001") ? refusal(410, "EVENT_ID_GONE") : answered([paid(), refused()]);

  sources.newest.emit("error", "EVENT_ID_GONE");
  await vi.advanceTimersByTimeAsync(2_000);

  expect(run.happened.value.map(({ id }) => id)).toEqual(["evt_r_000001", "evt_r_000002", "evt_r_000003"]);
  expect(sources.newest.address).toBe(`${base}/events?equivalent=HOUR&after=evt_r_000003`);
});

test("what is recalled after two refusals in a row is counted once", async () => {
  const run = await opened();
  const asking: ((answer: Response) => void)[] = [];
  answers[`${base}/events/poll`] = (query) =>
    query.includes("after=")
      ? new Promise((resolve) => asking.push(resolve))
      : answered([paid(), refused({ event_id: "evt_r_000003" })]);
  sources.newest.emit("error", "EVENT_ID_GONE");
  await vi.advanceTimersByTimeAsync(1_000);
  sources.newest.emit("error", "EVENT_ID_GONE");

  for (const give of asking) {
    give(refusal(410, "EVENT_ID_GONE"));
    await vi.advanceTimersByTimeAsync(0);
  }

  expect(asking).toHaveLength(2);
  expect(run.happened.value.map(({ id }) => id)).toEqual(["evt_r_000001", "evt_r_000002", "evt_r_000003"]);
});

test("an event that comes while the picture is on its way is not undone by it", async () => {
  const run = await opened();
  sources.newest.emit("open");
  const older = plain(snapshot());
  let give: (answer: Response) => void = () => undefined;
  answers[`${base}/graph/snapshot`] = () => new Promise((resolve) => (give = resolve));

  const asking = run.refresh();
  say(paid());
  await vi.advanceTimersByTimeAsync(GATHERED_MS);
  give(answered(older));
  await asking;

  expect(run.network.value?.nodes.get("ann")?.net_balance).toBe("4.00");
});

test("events are taken in together: network, lights, counts and list", async () => {
  const run = await opened();
  sources.newest.emit("open");

  say(paid(), cleared());
  expect(run.happened.value).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(GATHERED_MS);

  expect(run.network.value?.nodes.get("ann")?.net_balance).toBe("4.00");
  expect(run.lights.value.map(({ glow }) => glow)).toContain("clearing");
  expect(run.counts.value.nearness).toEqual([{ tick: 25, percent: 75 }]);
  expect(run.happened.value.map(({ kind }) => kind)).toEqual(["refusal", "payment", "clearing"]);
});

test("a status changes what it names and leaves the rest", async () => {
  const run = await opened();

  say({ type: "run_status", state: "paused", sim_time_ms: 62_000, committed_total: 9 });
  await vi.advanceTimersByTimeAsync(GATHERED_MS);

  expect(run.status.value).toMatchObject({ state: "paused", committed_total: 9, scenario_id: "three" });
  expect(run.active).toBe(true);
});

test("the end of a run ends the stream, which is no loss", async () => {
  const run = await opened();
  const source = sources.newest;
  answers["/api/v1/simulator/runs/run_1"] = plain(status({ state: "stopped" }));

  say({ type: "run_status", state: "stopped", sim_time_ms: 62_000 });
  await vi.advanceTimersByTimeAsync(60_000);

  expect([run.active, run.stream.value, source.closed, sources.opened.length]).toEqual([false, null, true, 1]);
});

test("a run that begins again is followed again", async () => {
  answers["/api/v1/simulator/runs/run_1"] = plain(status({ state: "stopped" }));
  const run = await opened();
  say({ type: "run_status", state: "stopped" });
  answers["/api/v1/simulator/runs/run_1"] = plain(status());

  answers[`${base}/events/poll`] = [paid({ event_id: "evt_r_000102" })];

  run.take(status());
  await vi.advanceTimersByTimeAsync(GATHERED_MS);

  expect(sources.opened.slice(1).map(({ address }) => address)).toEqual([
    `${base}/events?equivalent=HOUR&after=evt_r_000102`,
  ]);
  expect(run.active).toBe(true);
  expect(run.happened.value.map(({ kind }) => kind)).toEqual(["refusal", "payment"]);
});

test("an ended run that somebody else began again is noticed, and followed again", async () => {
  const run = await opened();
  answers[base] = plain(status({ state: "stopped" }));
  say({ type: "run_status", state: "stopped" });
  await vi.advanceTimersByTimeAsync(60_000);
  const before = run.active;
  answers[base] = plain(status());

  await vi.advanceTimersByTimeAsync(LOOKED_MS);

  expect([before, run.active, sources.opened.length]).toEqual([false, true, 2]);
});

test("after a loss everything is asked for anew, once the stream is there again", async () => {
  await opened();
  sources.newest.emit("open");
  sources.newest.emit("error");
  await vi.advanceTimersByTimeAsync(1_000);
  asked = [];

  sources.newest.emit("open");
  await vi.advanceTimersByTimeAsync(0);

  expect(sources.opened).toHaveLength(2);
  expect(asked.filter((path) => path.includes("graph/snapshot"))).toHaveLength(1);
});

test("a network whose lines have changed is fetched anew", async () => {
  await opened();
  asked = [];

  say({ type: "topology.changed", equivalent: "HOUR", payload: {} });
  await vi.advanceTimersByTimeAsync(GATHERED_MS);

  expect(asked.some((path) => path.includes("graph/snapshot"))).toBe(true);
});

test("a run that is not there says so and follows nothing", async () => {
  answers = {};
  const run = await opened();

  expect(run.error.value?.code).toBe("RUN_NOT_FOUND");
  expect(sources.opened).toEqual([]);
});

test("a run that is not there is not asked for again", async () => {
  answers = {};
  await opened();
  asked = [];

  await vi.advanceTimersByTimeAsync(60_000);

  expect(asked).toEqual([]);
});

test.each([base, `${base}/metrics`])("where %s failed at first it is asked for again", async (place) => {
  const well = answers[place] ?? null;
  answers[place] = () => refusal(503, "engine_unavailable");
  const run = await opened();
  const [failed, followed] = [run.error.value?.code, sources.opened.length];
  answers[place] = well;

  await vi.advanceTimersByTimeAsync(LOOKED_MS);

  expect([failed, followed]).toEqual(["engine_unavailable", 0]);
  expect([run.error.value, run.active, sources.opened.length]).toEqual([null, true, 1]);
});

function plain(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
