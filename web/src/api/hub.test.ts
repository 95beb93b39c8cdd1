import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ScriptedSources } from "../testing/sources";
import type { FromHub } from "./hub";
import { GATHER_MS, Hub, MOST_STREAMS, SILENCE_MS, STREAM } from "./hub";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A page that remembers what it is told of its streams. */
class Page {
  readonly heard: string[] = [];
  beats = 0;

  postMessage(message: FromHub): void {
    if (message.kind === "beat") this.beats += 1;
    else this.heard.push([message.key, message.type, message.id, message.data].join(" ").trim());
  }
}

function hubWith(...addresses: readonly string[]) {
  const sources = new ScriptedSources();
  const hub = new Hub(sources.open);
  const pages = addresses.map((address) => {
    const page = new Page();
    hub.take(page, { kind: "open", key: 0, address });
    return page;
  });
  vi.advanceTimersByTime(GATHER_MS);
  return { hub, sources, pages };
}

function wanted(address: string): string[] {
  expect(address.startsWith(`${STREAM}?`)).toBe(true);
  return new URLSearchParams(address.slice(STREAM.length + 1)).getAll("of");
}

test("ten pages have one connection", () => {
  const addresses = Array.from({ length: 10 }, (_, page) => `/api/v1/tally/e${page}/stream`);

  const { sources } = hubWith(...addresses);

  expect(sources.opened).toHaveLength(1);
  expect(wanted(sources.newest.address)).toEqual(addresses);
});

test("each page hears its own stream, as it was told", () => {
  const { sources, pages } = hubWith("/a/stream", "/b/stream");

  sources.newest.say("opened", "1");
  sources.newest.say("told", '1\nevent: event\nid: 4.0\ndata: {"text":"a: b"}');

  expect(pages.map((page) => page.heard)).toEqual([[], ["0 open", '0 event 4.0 {"text":"a: b"}']]);
});

test("another stream is added by a new connection on which every other goes on after its last event", () => {
  const { hub, sources, pages } = hubWith("/a/stream", "/b/stream");
  const first = sources.newest;
  first.say("opened", "0");
  first.say("told", "0\nid: -1.0");
  first.say("told", "1\nid: 7.3\nevent: event\ndata: {}");

  hub.take(new Page(), { kind: "open", key: 0, address: "/c/stream?after=2.0" });
  vi.advanceTimersByTime(GATHER_MS);
  sources.newest.say("opened", "0");

  expect(first.closed).toBe(true);
  expect(wanted(sources.newest.address)).toEqual(["-1.0 /a/stream", "7.3 /b/stream", "/c/stream?after=2.0"]);
  // That others want more is nothing to a page.
  expect(pages[0]?.heard).toEqual(["0 open", "0 place -1.0"]);
});

test("a stream that is refused says why, and takes no other with it", () => {
  const { sources, pages } = hubWith("/a/stream", "/b/stream");

  sources.newest.say("refused", '0\n{"error":{"code":"not_found","message":"…","details":{}}}');
  sources.newest.say("told", "1\nid: 4.0\nevent: event\ndata: {}");

  expect(pages.map((page) => page.heard)).toEqual([["0 error  not_found"], ["0 event 4.0 {}"]]);
});

test("a stream that ended is lost to its page alone", () => {
  const { sources, pages } = hubWith("/a/stream", "/b/stream");

  sources.newest.say("ended", "1");

  expect(pages.map((page) => page.heard)).toEqual([[], ["0 error"]]);
});

test("a connection that breaks is lost to every page", () => {
  const { sources, pages } = hubWith("/a/stream", "/b/stream");

  sources.newest.say("error");

  expect(pages.map((page) => page.heard)).toEqual([["0 error"], ["0 error"]]);
  expect(sources.newest.closed).toBe(true);
});

test("a connection without a beat is lost, however open its socket is", () => {
  const { sources, pages } = hubWith("/a/stream");
  sources.newest.say("opened", "0");
  vi.advanceTimersByTime(SILENCE_MS);
  sources.newest.say("beat", "beat");
  vi.advanceTimersByTime(SILENCE_MS);
  expect(pages[0]?.heard).toEqual(["0 open"]);

  vi.advanceTimersByTime(SILENCE_MS);

  expect(pages[0]?.heard).toEqual(["0 open", "0 error"]);
  expect(sources.newest.closed).toBe(true);
});

test("pages are told that the hub is alive", () => {
  const { pages } = hubWith("/a/stream");

  vi.advanceTimersByTime(SILENCE_MS);

  expect(pages[0]?.beats).toBeGreaterThan(0);
});

test("a page that closes its stream or goes is not asked for any more", () => {
  const { hub, sources, pages } = hubWith("/a/stream", "/b/stream", "/c/stream");
  const [a, b] = pages as [Page, Page];

  hub.take(a, { kind: "close", key: 0 });
  hub.take(b, { kind: "bye" });
  vi.advanceTimersByTime(GATHER_MS);

  expect(wanted(sources.newest.address)).toEqual(["/c/stream"]);
});

test("with the last page the connection goes", () => {
  const { hub, sources, pages } = hubWith("/a/stream");

  hub.take(pages[0] as Page, { kind: "bye" });
  vi.advanceTimersByTime(GATHER_MS);

  expect(sources.opened).toHaveLength(1);
  expect(sources.newest.closed).toBe(true);
});

test("when we are somebody else, the same is asked for again", () => {
  const { hub, sources, pages } = hubWith("/a/stream");

  hub.take(pages[0] as Page, { kind: "again" });
  vi.advanceTimersByTime(GATHER_MS);

  expect(sources.opened.map((source) => wanted(source.address))).toEqual([["/a/stream"], ["/a/stream"]]);
});

test("while nobody looks there is no connection, and then it goes on where it was", () => {
  const { hub, sources } = hubWith("/a/stream");
  sources.newest.say("told", "0\nid: 4.0\nevent: event\ndata: {}");

  hub.pause();
  expect(sources.newest.closed).toBe(true);
  vi.advanceTimersByTime(10 * SILENCE_MS);
  hub.resume();
  vi.advanceTimersByTime(GATHER_MS);

  expect(wanted(sources.newest.address)).toEqual(["4.0 /a/stream"]);
});

test("streams beyond the most are refused, and the others live", () => {
  const { sources, pages } = hubWith(...Array.from({ length: MOST_STREAMS + 1 }, (_, page) => `/${page}/stream`));

  expect(wanted(sources.newest.address)).toHaveLength(MOST_STREAMS);
  expect(pages[MOST_STREAMS]?.heard).toEqual(["0 error  too_many_streams"]);
});

test("what a connection says that was given up is not heard", () => {
  const { hub, sources, pages } = hubWith("/a/stream");
  const first = sources.newest;
  hub.take(pages[0] as Page, { kind: "again" });
  vi.advanceTimersByTime(GATHER_MS);

  first.say("told", "0\nid: 4.0\nevent: event\ndata: {}");
  first.say("error");

  expect(pages[0]?.heard).toEqual([]);
});
