import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ScriptedSources } from "../testing/sources";
import type { StreamOptions } from "./stream";
import { EventStream, FIRST_PAUSE_MS, LONGEST_PAUSE_MS, pauseMs } from "./stream";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
});

function opened(options: Partial<StreamOptions> = {}) {
  const sources = new ScriptedSources();
  const told = { onEvent: vi.fn(), onGap: vi.fn(), onRefused: vi.fn() };
  const stream = new EventStream({
    address: (after) => `/stream${after === null ? "" : `?after=${after}`}`,
    after: null,
    open: sources.open,
    spread: () => 0,
    ...told,
    ...options,
  });
  return { stream, sources, ...told };
}

test("pauses double up to a bound", () => {
  expect([1, 2, 3, 4, 5, 6, 60].map((failures) => pauseMs(failures, 0))).toEqual([
    1000, 2000, 4000, 8000, 16000, 30000, 30000,
  ]);
});

test("spreading shortens a pause by less than a quarter", () => {
  expect(pauseMs(1, 0.999)).toBeGreaterThanOrEqual(0.75 * FIRST_PAUSE_MS);
  expect(pauseMs(60, 0.5)).toBeLessThan(LONGEST_PAUSE_MS);
});

test("a stream is connecting, then live", () => {
  const { stream, sources } = opened();
  expect(stream.connection.value).toEqual({ kind: "connecting" });

  sources.newest.say("open");

  expect(stream.connection.value).toEqual({ kind: "live", since: 1_000_000 });
});

test("events and gaps are handed on in order", () => {
  const { sources, onEvent, onGap } = opened();
  sources.newest.say("open");

  sources.newest.say("event", '{"type":"changed","total":18446744073709551557}', "4.0");
  sources.newest.say("gap", '{"missed":12,"after":"4.0","next":"17.0"}', "4.0");

  expect(onEvent).toHaveBeenCalledWith("4.0", { type: "changed", total: 18446744073709551557n });
  expect(onGap).toHaveBeenCalledWith({ missed: 12, after: "4.0", next: "17.0" });
});

test("a lost stream says since when and until when, then resumes after the last event", () => {
  const { stream, sources } = opened();
  sources.newest.say("open");
  sources.newest.say("event", '{"type":"changed"}', "41.2");

  sources.newest.say("error");

  expect(stream.connection.value).toEqual({ kind: "lost", since: 1_000_000, retryAt: 1_001_000 });
  expect(sources.newest.closed).toBe(true);
  vi.advanceTimersByTime(1000);
  expect(sources.opened.map((source) => source.address)).toEqual(["/stream", "/stream?after=41.2"]);
});

test("failures in a row wait longer and keep the moment of the loss", () => {
  const { stream, sources } = opened();
  sources.newest.say("open");

  sources.newest.say("error");
  vi.advanceTimersByTime(1000);
  sources.newest.say("error");

  expect(stream.connection.value).toEqual({ kind: "lost", since: 1_000_000, retryAt: 1_003_000 });
});

test("a server that accepts and drops at once is not asked every second", () => {
  const { stream, sources } = opened();
  const pauses = [1, 2, 3].map(() => {
    sources.newest.say("open");
    sources.newest.say("error");
    const lost = stream.connection.value;
    const pause = lost.kind === "lost" ? lost.retryAt - Date.now() : 0;
    vi.advanceTimersByTime(pause);
    return pause;
  });

  expect(pauses).toEqual([1000, 2000, 4000]);
});

test("an event that arrives starts the pauses anew", () => {
  const { stream, sources } = opened();
  sources.newest.say("error");
  vi.advanceTimersByTime(1000);
  sources.newest.say("open");
  sources.newest.say("event", "{}", "1.0");

  sources.newest.say("error");

  expect(stream.connection.value).toMatchObject({ kind: "lost", retryAt: Date.now() + 1000 });
});

test("retrying now does not wait for the pause, and the pause does not retry again", () => {
  const { stream, sources } = opened();
  sources.newest.say("error");

  stream.retryNow();
  vi.advanceTimersByTime(60_000);

  expect(sources.opened).toHaveLength(2);
});

test("only a connection that never opened counts as refused", () => {
  const { sources, onRefused } = opened();
  sources.newest.say("open");
  sources.newest.say("error");
  expect(onRefused).not.toHaveBeenCalled();

  vi.advanceTimersByTime(1000);
  sources.newest.say("error");

  expect(onRefused).toHaveBeenCalledOnce();
});

test.each([
  ["unknown_event_id", "/stream"],
  ["engine_unavailable", "/stream?after=5.0"],
  ["", "/stream?after=5.0"],
])("a starting point refused from the first with %j is asked for again as %s", (code, again) => {
  const { sources } = opened({ after: "5.0" });

  sources.newest.say("error", code);
  vi.advanceTimersByTime(1000);

  expect(sources.opened.map((source) => source.address)).toEqual(["/stream?after=5.0", again]);
});

/** A stream that was live until event 41.2, and whose next connection is refused with `code`. */
function refusedWith(code: string) {
  const followed = opened();
  followed.sources.newest.say("open");
  followed.sources.newest.say("event", "{}", "41.2");
  followed.sources.newest.say("error");
  vi.advanceTimersByTime(1000);
  followed.sources.newest.say("error", code);
  return followed;
}

test("an event that the journal does not know is forgotten, and the gap is told", () => {
  const { sources, onGap } = refusedWith("unknown_event_id");

  vi.advanceTimersByTime(2000);

  expect(onGap).toHaveBeenCalledExactlyOnceWith({ missed: null, after: "41.2", next: null });
  expect(sources.newest.address).toBe("/stream");
});

test.each(["engine_unavailable", "not_identified", ""])("after a refusal with %s nothing is forgotten", (code) => {
  const { sources, onGap } = refusedWith(code);

  vi.advanceTimersByTime(2000);

  expect(onGap).not.toHaveBeenCalled();
  expect(sources.newest.address).toBe("/stream?after=41.2");
});

test("a stream that breaks off before its first event comes back to where it began", () => {
  const { sources } = opened();
  sources.newest.say("open");
  sources.newest.say("place", "", "-1.0");

  sources.newest.say("error");
  vi.advanceTimersByTime(1000);

  expect(sources.newest.address).toBe("/stream?after=-1.0");
});

test("a closed stream stays closed", () => {
  const { stream, sources } = opened();
  const first = sources.newest;
  stream.close();

  first.say("error");
  vi.advanceTimersByTime(60_000);

  expect(first.closed).toBe(true);
  expect(sources.opened).toHaveLength(1);
});
