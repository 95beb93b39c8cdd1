// @vitest-environment happy-dom

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Api } from "../../api/client";
import type { Json, JsonObject } from "../../api/json";
import { writeJson } from "../../api/json";
import { ScriptedSources } from "../../testing/sources";
import { LiveRun } from "./live_run";
import { cleared, paid, refused, snapshot, status } from "./testing";

const GATHERED_MS = 200;

let asked: string[] = [];
let answers: Record<string, Json> = {};
let sources = new ScriptedSources();
let live: LiveRun | null = null;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  sources = new ScriptedSources();
  const base = "/api/v1/simulator/runs/run_1";
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
      const answer = answers[path.split("?")[0] ?? ""];
      return new Response(writeJson(answer ?? { error: { code: "RUN_NOT_FOUND", message: "gone" } }), {
        status: answer === undefined ? 404 : 200,
      });
    },
    onUnauthorised: () => undefined,
  });
  live = new LiveRun(api, "run_1", null, sources.open);
  await live.start();
  return live;
}

function say(...events: JsonObject[]): void {
  for (const event of events) sources.newest.say("simulator.event", writeJson(event), String(event["event_id"] ?? ""));
}

test("what the server still knows is recalled before the stream is followed", async () => {
  const run = await opened();

  expect(run.happened.value.map(({ kind }) => kind)).toEqual(["refusal"]);
  expect(sources.newest.address).toBe("/api/v1/simulator/runs/run_1/events?equivalent=HOUR");
});

test("events are taken in together: network, lights, counts and list", async () => {
  const run = await opened();
  sources.newest.say("open");

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

  run.take(status());
  await vi.advanceTimersByTimeAsync(GATHERED_MS);

  expect(sources.opened).toHaveLength(2);
  expect(run.active).toBe(true);
});

test("after a loss everything is asked for anew, once the stream is there again", async () => {
  await opened();
  sources.newest.say("open");
  sources.newest.say("error");
  await vi.advanceTimersByTimeAsync(1_000);
  asked = [];

  sources.newest.say("open");
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

function plain(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
