import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ScriptedSources } from "../testing/sources";
import type { FromHub } from "./hub";
import { GATHER_MS, Hub, MAX_STREAMS, SILENCE_MS, STREAM } from "./hub";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A page that records the messages of its streams. */
class Page {
  readonly received: string[] = [];
  beats = 0;

  postMessage(message: FromHub): void {
    if (message.kind === "beat") this.beats += 1;
    else this.received.push([message.key, message.type, message.id, message.data].join(" ").trim());
  }
}

function hubWith(...addresses: readonly string[]) {
  const sources = new ScriptedSources();
  const hub = new Hub(sources.open);
  const pages = addresses.map((address) => {
    const page = new Page();
    hub.receive(page, { kind: "open", key: 0, address });
    return page;
  });
  vi.advanceTimersByTime(GATHER_MS);
  return { hub, sources, pages };
}

function streamsIn(address: string): string[] {
  expect(address.startsWith(`${STREAM}?`)).toBe(true);
  return new URLSearchParams(address.slice(STREAM.length + 1)).getAll("of");
}

test("ten pages share one connection", () => {
  const addresses = Array.from({ length: 10 }, (_, page) => `/api/v1/tally/e${page}/stream`);

  const { sources } = hubWith(...addresses);

  expect(sources.opened).toHaveLength(1);
  expect(streamsIn(sources.newest.address)).toEqual(addresses);
});

test("each page receives only its own stream, unchanged", () => {
  const { sources, pages } = hubWith("/a/stream", "/b/stream");

  sources.newest.emit("opened", "1");
  sources.newest.emit("data", '1\nevent: event\nid: 4.0\ndata: {"text":"a: b"}');

  expect(pages.map((page) => page.received)).toEqual([[], ["0 open", '0 event 4.0 {"text":"a: b"}']]);
});

test("adding a stream reconnects and resumes every other stream after its last event", () => {
  const { hub, sources, pages } = hubWith("/a/stream", "/b/stream");
  const first = sources.newest;
  first.emit("opened", "0");
  first.emit("data", "0\nid: -1.0");
  first.emit("data", "1\nid: 7.3\nevent: event\ndata: {}");

  hub.receive(new Page(), { kind: "open", key: 0, address: "/c/stream?after=2.0" });
  vi.advanceTimersByTime(GATHER_MS);
  sources.newest.emit("opened", "0");

  expect(first.closed).toBe(true);
  expect(streamsIn(sources.newest.address)).toEqual(["-1.0 /a/stream", "7.3 /b/stream", "/c/stream?after=2.0"]);
  // Existing pages do not notice the reconnect.
  expect(pages[0]?.received).toEqual(["0 open", "0 position -1.0"]);
});

test("a refused stream reports its code and does not affect the others", () => {
  const { sources, pages } = hubWith("/a/stream", "/b/stream");

  sources.newest.emit("refused", '0\n{"error":{"code":"not_found","message":"…","details":{}}}');
  sources.newest.emit("data", "1\nid: 4.0\nevent: event\ndata: {}");

  expect(pages.map((page) => page.received)).toEqual([["0 error  not_found"], ["0 event 4.0 {}"]]);
});

test("a stream that ends fails only for its own page", () => {
  const { sources, pages } = hubWith("/a/stream", "/b/stream");

  sources.newest.emit("ended", "1");

  expect(pages.map((page) => page.received)).toEqual([[], ["0 error"]]);
});

test("a broken connection fails every stream", () => {
  const { sources, pages } = hubWith("/a/stream", "/b/stream");

  sources.newest.emit("error");

  expect(pages.map((page) => page.received)).toEqual([["0 error"], ["0 error"]]);
  expect(sources.newest.closed).toBe(true);
});

test("a connection without heartbeats fails even if its socket is open", () => {
  const { sources, pages } = hubWith("/a/stream");
  sources.newest.emit("opened", "0");
  vi.advanceTimersByTime(SILENCE_MS);
  sources.newest.emit("beat", "beat");
  vi.advanceTimersByTime(SILENCE_MS);
  expect(pages[0]?.received).toEqual(["0 open"]);

  vi.advanceTimersByTime(SILENCE_MS);

  expect(pages[0]?.received).toEqual(["0 open", "0 error"]);
  expect(sources.newest.closed).toBe(true);
});

test("pages receive heartbeats from the hub", () => {
  const { pages } = hubWith("/a/stream");

  vi.advanceTimersByTime(SILENCE_MS);

  expect(pages[0]?.beats).toBeGreaterThan(0);
});

test("streams of pages that close them or leave are dropped", () => {
  const { hub, sources, pages } = hubWith("/a/stream", "/b/stream", "/c/stream");
  const [a, b] = pages as [Page, Page];

  hub.receive(a, { kind: "close", key: 0 });
  hub.receive(b, { kind: "leave" });
  vi.advanceTimersByTime(GATHER_MS);

  expect(streamsIn(sources.newest.address)).toEqual(["/c/stream"]);
});

test("the connection closes with the last page", () => {
  const { hub, sources, pages } = hubWith("/a/stream");

  hub.receive(pages[0] as Page, { kind: "leave" });
  vi.advanceTimersByTime(GATHER_MS);

  expect(sources.opened).toHaveLength(1);
  expect(sources.newest.closed).toBe(true);
});

test("after a change of session the same streams are requested again", () => {
  const { hub, sources, pages } = hubWith("/a/stream");

  hub.receive(pages[0] as Page, { kind: "reconnect" });
  vi.advanceTimersByTime(GATHER_MS);

  expect(sources.opened.map((source) => streamsIn(source.address))).toEqual([["/a/stream"], ["/a/stream"]]);
});

test("a paused hub has no connection and resumes after the last event", () => {
  const { hub, sources } = hubWith("/a/stream");
  sources.newest.emit("data", "0\nid: 4.0\nevent: event\ndata: {}");

  hub.pause();
  expect(sources.newest.closed).toBe(true);
  vi.advanceTimersByTime(10 * SILENCE_MS);
  hub.resume();
  vi.advanceTimersByTime(GATHER_MS);

  expect(streamsIn(sources.newest.address)).toEqual(["4.0 /a/stream"]);
});

test("streams beyond the limit are refused, the others continue", () => {
  const { sources, pages } = hubWith(...Array.from({ length: MAX_STREAMS + 1 }, (_, page) => `/${page}/stream`));

  expect(streamsIn(sources.newest.address)).toHaveLength(MAX_STREAMS);
  expect(pages[MAX_STREAMS]?.received).toEqual(["0 error  too_many_streams"]);
});

test("messages of a replaced connection are ignored", () => {
  const { hub, sources, pages } = hubWith("/a/stream");
  const first = sources.newest;
  hub.receive(pages[0] as Page, { kind: "reconnect" });
  vi.advanceTimersByTime(GATHER_MS);

  first.emit("data", "0\nid: 4.0\nevent: event\ndata: {}");
  first.emit("error");

  expect(pages[0]?.received).toEqual([]);
});
