import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ScriptedSources } from "../testing/sources";
import type { StreamOptions } from "./stream";
import { EventStream, FIRST_DELAY_MS, MAX_DELAY_MS, retryDelayMs } from "./stream";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
});

function opened(options: Partial<StreamOptions> = {}) {
  const sources = new ScriptedSources();
  const handlers = { onEvent: vi.fn(), onGap: vi.fn(), onRefused: vi.fn() };
  const stream = new EventStream({
    address: (after) => `/stream${after === null ? "" : `?after=${after}`}`,
    after: null,
    open: sources.open,
    jitter: () => 0,
    ...handlers,
    ...options,
  });
  return { stream, sources, ...handlers };
}

test("retry delays double up to a maximum", () => {
  expect([1, 2, 3, 4, 5, 6, 60].map((failures) => retryDelayMs(failures, 0))).toEqual([
    1000, 2000, 4000, 8000, 16000, 30000, 30000,
  ]);
});

test("jitter shortens a delay by less than a quarter", () => {
  expect(retryDelayMs(1, 0.999)).toBeGreaterThanOrEqual(0.75 * FIRST_DELAY_MS);
  expect(retryDelayMs(60, 0.5)).toBeLessThan(MAX_DELAY_MS);
});

test("a stream is connecting, then live", () => {
  const { stream, sources } = opened();
  expect(stream.connection.value).toEqual({ kind: "connecting" });

  sources.newest.emit("open");

  expect(stream.connection.value).toEqual({ kind: "live", since: 1_000_000 });
});

test("events and gaps are delivered in order", () => {
  const { sources, onEvent, onGap } = opened();
  sources.newest.emit("open");

  sources.newest.emit("event", '{"type":"changed","total":18446744073709551557}', "4.0");
  sources.newest.emit("gap", '{"missed":12,"after":"4.0","next":"17.0"}', "4.0");

  expect(onEvent).toHaveBeenCalledWith("4.0", { type: "changed", total: 18446744073709551557n });
  expect(onGap).toHaveBeenCalledWith({ missed: 12, after: "4.0", next: "17.0" });
});

test("a lost stream has a start and a retry time, then resumes after the last event", () => {
  const { stream, sources } = opened();
  sources.newest.emit("open");
  sources.newest.emit("event", '{"type":"changed"}', "41.2");

  sources.newest.emit("error");

  expect(stream.connection.value).toEqual({ kind: "lost", since: 1_000_000, retryAt: 1_001_000 });
  expect(sources.newest.closed).toBe(true);
  vi.advanceTimersByTime(1000);
  expect(sources.opened.map((source) => source.address)).toEqual(["/stream", "/stream?after=41.2"]);
});

test("consecutive failures wait longer and keep the time of the first loss", () => {
  const { stream, sources } = opened();
  sources.newest.emit("open");

  sources.newest.emit("error");
  vi.advanceTimersByTime(1000);
  sources.newest.emit("error");

  expect(stream.connection.value).toEqual({ kind: "lost", since: 1_000_000, retryAt: 1_003_000 });
});

test("a server that accepts and drops at once is retried with backoff", () => {
  const { stream, sources } = opened();
  const delays = [1, 2, 3].map(() => {
    sources.newest.emit("open");
    sources.newest.emit("error");
    const lost = stream.connection.value;
    const delay = lost.kind === "lost" ? lost.retryAt - Date.now() : 0;
    vi.advanceTimersByTime(delay);
    return delay;
  });

  expect(delays).toEqual([1000, 2000, 4000]);
});

test("an event resets the backoff", () => {
  const { stream, sources } = opened();
  sources.newest.emit("error");
  vi.advanceTimersByTime(1000);
  sources.newest.emit("open");
  sources.newest.emit("event", "{}", "1.0");

  sources.newest.emit("error");

  expect(stream.connection.value).toMatchObject({ kind: "lost", retryAt: Date.now() + 1000 });
});

test("retrying now cancels the scheduled retry", () => {
  const { stream, sources } = opened();
  sources.newest.emit("error");

  stream.retryNow();
  vi.advanceTimersByTime(60_000);

  expect(sources.opened).toHaveLength(2);
});

test("only a connection that never opened is reported as refused", () => {
  const { sources, onRefused } = opened();
  sources.newest.emit("open");
  sources.newest.emit("error");
  expect(onRefused).not.toHaveBeenCalled();

  vi.advanceTimersByTime(1000);
  sources.newest.emit("error");

  expect(onRefused).toHaveBeenCalledOnce();
});

test.each([
  ["unknown_event_id", "/stream"],
  ["engine_unavailable", "/stream?after=5.0"],
  ["", "/stream?after=5.0"],
])("a first connection refused with %j is retried as %s", (code, again) => {
  const { sources } = opened({ after: "5.0" });

  sources.newest.emit("error", code);
  vi.advanceTimersByTime(1000);

  expect(sources.opened.map((source) => source.address)).toEqual(["/stream?after=5.0", again]);
});

/** A stream that was live until event 41.2, and whose next connection is refused with `code`. */
function refusedWith(code: string) {
  const followed = opened();
  followed.sources.newest.emit("open");
  followed.sources.newest.emit("event", "{}", "41.2");
  followed.sources.newest.emit("error");
  vi.advanceTimersByTime(1000);
  followed.sources.newest.emit("error", code);
  return followed;
}

test("an unknown event id is dropped and reported as a gap", () => {
  const { sources, onGap } = refusedWith("unknown_event_id");

  vi.advanceTimersByTime(2000);

  expect(onGap).toHaveBeenCalledExactlyOnceWith({ missed: null, after: "41.2", next: null });
  expect(sources.newest.address).toBe("/stream");
});

test.each(["engine_unavailable", "not_identified", ""])("after a refusal with %s the position is kept", (code) => {
  const { sources, onGap } = refusedWith(code);

  vi.advanceTimersByTime(2000);

  expect(onGap).not.toHaveBeenCalled();
  expect(sources.newest.address).toBe("/stream?after=41.2");
});

test("a stream that breaks before its first event resumes at its start position", () => {
  const { sources } = opened();
  sources.newest.emit("open");
  sources.newest.emit("position", "", "-1.0");

  sources.newest.emit("error");
  vi.advanceTimersByTime(1000);

  expect(sources.newest.address).toBe("/stream?after=-1.0");
});

test("a closed stream stays closed", () => {
  const { stream, sources } = opened();
  const first = sources.newest;
  stream.close();

  first.emit("error");
  vi.advanceTimersByTime(60_000);

  expect(first.closed).toBe(true);
  expect(sources.opened).toHaveLength(1);
});
