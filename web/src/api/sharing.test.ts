import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { FromHub, ToHub } from "./hub";
import { Sharing, WORKER_SILENCE_MS } from "./sharing";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
});

/** The page's end of a connection whose hub is the test. */
function shared() {
  const ways: { readonly sent: ToHub[]; readonly hear: (message: FromHub) => void; ended: boolean }[] = [];
  const sharing = new Sharing((hear) => {
    const way = { sent: [] as ToHub[], hear, ended: false };
    ways.push(way);
    return {
      send: (message) => way.sent.push(message),
      end: () => {
        way.ended = true;
      },
    };
  });
  const opened = (address: string) => {
    const source = sharing.open(address);
    const heard: string[] = [];
    for (const type of ["open", "event", "error"])
      source.addEventListener(type, (message) => heard.push(`${type} ${message.lastEventId} ${message.data}`.trim()));
    return { source, heard };
  };
  const newest = () => {
    const way = ways.at(-1);
    if (way === undefined) throw new Error("no way was taken");
    return way;
  };
  return { sharing, ways, opened, newest };
}

const said = (key: number, type: string, id = "", data = ""): FromHub => ({ kind: "said", key, type, id, data });

test("each source hears its own", () => {
  const { opened, newest } = shared();
  const [a, b] = [opened("/a"), opened("/b")];

  newest().hear(said(1, "open"));
  newest().hear(said(1, "event", "4.0", "{}"));

  expect([a.heard, b.heard]).toEqual([[], ["open", "event 4.0 {}"]]);
  expect(newest().sent).toEqual([
    { kind: "open", key: 0, address: "/a" },
    { kind: "open", key: 1, address: "/b" },
  ]);
});

test("a source that was closed hears nothing more, and the hub is told once", () => {
  const { opened, newest } = shared();
  const { source, heard } = opened("/a");

  source.close();
  source.close();
  newest().hear(said(0, "event", "4.0", "{}"));

  expect(heard).toEqual([]);
  expect(newest().sent.slice(1)).toEqual([{ kind: "close", key: 0 }]);
});

test("a worker that is not heard any more is given up, and the next stream goes through a new one", () => {
  const { opened, ways } = shared();
  const { heard } = opened("/a");

  vi.advanceTimersByTime(2 * WORKER_SILENCE_MS);
  opened("/a");

  expect(heard).toEqual(["error"]);
  expect(ways.map((way) => way.ended)).toEqual([true, false]);
});

test("a worker that beats is kept", () => {
  const { opened, newest } = shared();
  const { heard } = opened("/a");

  for (let beat = 0; beat < 10; beat += 1) {
    vi.advanceTimersByTime(WORKER_SILENCE_MS / 2);
    newest().hear({ kind: "beat" });
  }

  expect(heard).toEqual([]);
});

test("a page that goes says so, and what it had open is lost", () => {
  const { sharing, opened, newest } = shared();
  const { heard } = opened("/a");

  sharing.leave();

  expect(newest().sent.at(-1)).toEqual({ kind: "bye" });
  expect(heard).toEqual(["error"]);
});
