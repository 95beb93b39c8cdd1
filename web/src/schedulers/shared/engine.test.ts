import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Api, EngineAddress } from "../../api/client";
import type { Json } from "../../api/json";
import { writeJson } from "../../api/json";
import { ScriptedSources } from "../../testing/sources";
import { LiveEngine, MOST_ROWS } from "./engine";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** An engine behind a server of two answers: the state at `journal.n`, and a journal that begins with one event. */
function following(n: number) {
  const journal = { n };
  const asked: string[] = [];
  const fetch = (path: string) => {
    asked.push(path.replace("/api/v1/tally/demo", ""));
    return Promise.resolve(
      new Response(writeJson(path.includes("/state") ? stateAt(journal.n) : journalTo(journal.n))),
    );
  };
  const sources = new ScriptedSources();
  const api = new Api({ fetch, onUnauthorised: () => undefined });
  const live = new LiveEngine(api, new EngineAddress("tally", "demo"), (address) => api.state(address), sources.open);
  return { live, sources, journal, asked };
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

test("what came before is asked for after a first look, and the very first event is not left out", async () => {
  const { live, sources } = following(1);

  await live.start();
  await vi.advanceTimersByTimeAsync(100);

  expect(sources.newest.address).toBe("/api/v1/tally/demo/stream?after=0.0");
  expect(live.came.value).toMatchObject([{ kind: "event", id: "0.0", body: { type: "changed", total: 3 } }]);
  live.stop();
});

test("an empty journal is followed from before its first event", async () => {
  const { live, sources } = following(-1);

  await live.start();

  expect(sources.newest.address).toBe("/api/v1/tally/demo/stream?after=-1.0");
  live.stop();
});

test("a long journal is not asked for as a whole", async () => {
  const { live, sources } = following(5000);

  await live.start();

  expect(sources.newest.address).toBe("/api/v1/tally/demo/stream?after=4600.0");
  live.stop();
});

test("events are shown newest first, gaps in their place, and never more than the bound", async () => {
  const { live, sources } = following(-1);
  await live.start();

  for (let n = 0; n < MOST_ROWS; n += 1) sources.newest.emit("event", '{"type":"changed"}', `${n}.0`);
  sources.newest.emit("gap", '{"missed":3,"after":"499.0","next":"503.0"}');
  sources.newest.emit("event", '{"type":"changed"}', "503.0");
  await vi.advanceTimersByTimeAsync(100);

  expect(live.came.value).toHaveLength(MOST_ROWS);
  expect(live.came.value.slice(0, 3)).toMatchObject([
    { id: "503.0" },
    { kind: "gap", gap: { missed: 3 } },
    { id: "499.0" },
  ]);
  live.stop();
});

test("the state follows an event", async () => {
  const { live, sources, journal } = following(-1);
  await live.start();

  journal.n = 7;
  sources.newest.emit("event", '{"type":"changed"}', "6.0");
  await vi.advanceTimersByTimeAsync(300);

  expect(live.state.value?.n).toBe(7);
  live.stop();
});

test("a thousand events at once ask for the state once", async () => {
  const { live, sources, journal, asked } = following(-1);
  await live.start();
  asked.length = 0;
  journal.n = 1;

  for (let n = 0; n < 1000; n += 1) sources.newest.emit("event", '{"type":"changed"}', `0.${n}`);
  await vi.advanceTimersByTimeAsync(400);

  expect(asked).toEqual(["/state"]);
  live.stop();
});

test("events that keep coming do not put off the state", async () => {
  const { live, sources, journal, asked } = following(-1);
  await live.start();
  asked.length = 0;
  journal.n = 1;

  for (let k = 0; k < 12; k += 1) {
    sources.newest.emit("event", '{"type":"changed"}', `0.${k}`);
    await vi.advanceTimersByTimeAsync(100);
  }

  expect(asked.filter((path) => path === "/state")).toHaveLength(4);
  live.stop();
});

test("a journal that was replaced by another one is followed from anew", async () => {
  const { live, sources, journal } = following(50);
  await live.start();
  sources.newest.emit("event", '{"type":"changed"}', "50.0");
  await vi.advanceTimersByTimeAsync(100);
  const before = sources.newest;

  journal.n = 1;
  await live.refresh();
  await vi.advanceTimersByTimeAsync(100);

  expect(before.closed).toBe(true);
  expect(live.came.value.map((row) => row.kind === "event" && row.id)).toEqual(["0.0"]);
  live.stop();
});

test("an answer that a later one has overtaken is not shown", async () => {
  const { sources } = following(-1);
  const waiting: ((state: { readonly n: number }) => void)[] = [];
  const api = new Api({
    fetch: () => Promise.resolve(new Response(writeJson(journalTo(-1)))),
    onUnauthorised: () => {},
  });
  const read = () => new Promise<{ readonly n: number }>((answer) => waiting.push(answer));
  const live = new LiveEngine(api, new EngineAddress("tally", "demo"), read, sources.open);

  const [before, after] = [live.refresh(), live.refresh()];
  waiting[1]?.({ n: 2 });
  await after;
  waiting[0]?.({ n: 1 });
  await before;

  expect(live.state.value).toEqual({ n: 2 });
  live.stop();
});

test("two questions at once open one stream", async () => {
  const { live, sources } = following(1);

  await Promise.all([live.refresh(), live.refresh()]);
  await vi.advanceTimersByTimeAsync(100);

  expect(sources.opened).toHaveLength(1);
  expect(live.came.value).toHaveLength(1);
  live.stop();
});

test("an engine that is not followed any more asks nothing", async () => {
  const { live, sources, asked } = following(1);
  await live.start();
  live.stop();
  asked.length = 0;

  await vi.advanceTimersByTimeAsync(60_000);

  expect(asked).toEqual([]);
  expect(sources.newest.closed).toBe(true);
});
