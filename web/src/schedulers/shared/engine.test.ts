import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Api, EngineAddress } from "../../api/client";
import type { Json } from "../../api/json";
import { writeJson } from "../../api/json";
import { ScriptedSources } from "../../testing/sources";
import { LiveEngine, MAX_ROWS } from "./engine";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** A live engine with a server of two routes: the state at `journal.n`, and a journal whose first record has one event. */
function liveEngine(n: number) {
  const journal = { n };
  const requests: string[] = [];
  const fetch = (path: string) => {
    requests.push(path.replace("/api/v1/tally/demo", ""));
    return Promise.resolve(
      new Response(writeJson(path.includes("/state") ? stateAt(journal.n) : journalTo(journal.n))),
    );
  };
  const sources = new ScriptedSources();
  const api = new Api({ fetch, onUnauthorised: () => undefined });
  const live = new LiveEngine(api, new EngineAddress("tally", "demo"), (address) => api.state(address), sources.open);
  return { live, sources, journal, requests };
}

function stateAt(n: number): Json {
  return { n, t: n, state: { total: n }, next_due: null, broken: [] };
}

function journalTo(last: number): Json {
  const records = [
    { n: 0, t: 0, kind: "input", body: { command: { type: "add", amount: 3 } } },
    { n: 1, t: 0, kind: "outcome", body: { of: 0, count: 1, events: [{ type: "changed", total: 3 }] } },
  ];
  return { records: last < 0 ? [] : records, first_n: 0, last_n: last, snapshots: [] };
}

test("recent events are loaded, including the very first one", async () => {
  const { live, sources } = liveEngine(1);

  await live.start();
  await vi.advanceTimersByTimeAsync(100);

  expect(sources.newest.address).toBe("/api/v1/tally/demo/stream?after=0.0");
  expect(live.events.value).toMatchObject([{ kind: "event", id: "0.0", body: { type: "changed", total: 3 } }]);
  live.stop();
});

test("the stream of an empty journal starts before its first event", async () => {
  const { live, sources } = liveEngine(-1);

  await live.start();

  expect(sources.newest.address).toBe("/api/v1/tally/demo/stream?after=-1.0");
  live.stop();
});

test("only the recent part of a long journal is loaded", async () => {
  const { live, sources } = liveEngine(5000);

  await live.start();

  expect(sources.newest.address).toBe("/api/v1/tally/demo/stream?after=4600.0");
  live.stop();
});

test("events and gaps are shown newest first, up to a maximum", async () => {
  const { live, sources } = liveEngine(-1);
  await live.start();

  for (let n = 0; n < MAX_ROWS; n += 1) sources.newest.emit("event", '{"type":"changed"}', `${n}.0`);
  sources.newest.emit("gap", '{"missed":3,"after":"499.0","next":"503.0"}');
  sources.newest.emit("event", '{"type":"changed"}', "503.0");
  await vi.advanceTimersByTimeAsync(100);

  expect(live.events.value).toHaveLength(MAX_ROWS);
  expect(live.events.value.slice(0, 3)).toMatchObject([
    { id: "503.0" },
    { kind: "gap", gap: { missed: 3 } },
    { id: "499.0" },
  ]);
  live.stop();
});

test("the state is fetched after an event", async () => {
  const { live, sources, journal } = liveEngine(-1);
  await live.start();

  journal.n = 7;
  sources.newest.emit("event", '{"type":"changed"}', "6.0");
  await vi.advanceTimersByTimeAsync(300);

  expect(live.state.value?.n).toBe(7);
  live.stop();
});

test("a thousand events at once cause one fetch of the state", async () => {
  const { live, sources, journal, requests } = liveEngine(-1);
  await live.start();
  requests.length = 0;
  journal.n = 1;

  for (let n = 0; n < 1000; n += 1) sources.newest.emit("event", '{"type":"changed"}', `0.${n}`);
  await vi.advanceTimersByTimeAsync(400);

  expect(requests).toEqual(["/state"]);
  live.stop();
});

test("a steady stream of events does not delay the state", async () => {
  const { live, sources, journal, requests } = liveEngine(-1);
  await live.start();
  requests.length = 0;
  journal.n = 1;

  for (let k = 0; k < 12; k += 1) {
    sources.newest.emit("event", '{"type":"changed"}', `0.${k}`);
    await vi.advanceTimersByTimeAsync(100);
  }

  expect(requests.filter((path) => path === "/state")).toHaveLength(4);
  live.stop();
});

test("a replaced journal is followed from its start", async () => {
  const { live, sources, journal } = liveEngine(50);
  await live.start();
  sources.newest.emit("event", '{"type":"changed"}', "50.0");
  await vi.advanceTimersByTimeAsync(100);
  const before = sources.newest;

  journal.n = 1;
  await live.refresh();
  await vi.advanceTimersByTimeAsync(100);

  expect(before.closed).toBe(true);
  expect(live.events.value.map((row) => row.kind === "event" && row.id)).toEqual(["0.0"]);
  live.stop();
});

test("an outdated response is not shown", async () => {
  const { sources } = liveEngine(-1);
  const pending: ((state: { readonly n: number }) => void)[] = [];
  const api = new Api({
    fetch: () => Promise.resolve(new Response(writeJson(journalTo(-1)))),
    onUnauthorised: () => {},
  });
  const read = () => new Promise<{ readonly n: number }>((answer) => pending.push(answer));
  const live = new LiveEngine(api, new EngineAddress("tally", "demo"), read, sources.open);

  const [before, after] = [live.refresh(), live.refresh()];
  pending[1]?.({ n: 2 });
  await after;
  pending[0]?.({ n: 1 });
  await before;

  expect(live.state.value).toEqual({ n: 2 });
  live.stop();
});

test("concurrent refreshes open one stream", async () => {
  const { live, sources } = liveEngine(1);

  await Promise.all([live.refresh(), live.refresh()]);
  await vi.advanceTimersByTimeAsync(100);

  expect(sources.opened).toHaveLength(1);
  expect(live.events.value).toHaveLength(1);
  live.stop();
});

test("a stopped engine sends no requests", async () => {
  const { live, sources, requests } = liveEngine(1);
  await live.start();
  live.stop();
  requests.length = 0;

  await vi.advanceTimersByTimeAsync(60_000);

  expect(requests).toEqual([]);
  expect(sources.newest.closed).toBe(true);
});
