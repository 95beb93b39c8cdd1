import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { FromHub, ToHub } from "./hub";
import { SharedConnection, WORKER_SILENCE_MS } from "./shared_connection";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A shared connection whose hub is the test. */
function connected() {
  const links: { readonly sent: ToHub[]; readonly receive: (message: FromHub) => void; closed: boolean }[] = [];
  const connection = new SharedConnection((receive) => {
    const link = { sent: [] as ToHub[], receive, closed: false };
    links.push(link);
    return {
      send: (message) => link.sent.push(message),
      close: () => {
        link.closed = true;
      },
    };
  });
  const opened = (address: string) => {
    const source = connection.open(address);
    const received: string[] = [];
    for (const type of ["open", "event", "error"])
      source.addEventListener(type, (message) =>
        received.push(`${type} ${message.lastEventId} ${message.data}`.trim()),
      );
    return { source, received };
  };
  const newest = () => {
    const link = links.at(-1);
    if (link === undefined) throw new Error("no link was opened");
    return link;
  };
  return { connection, links, opened, newest };
}

const message = (key: number, type: string, id = "", data = ""): FromHub => ({ kind: "message", key, type, id, data });

test("each source receives only its own messages", () => {
  const { opened, newest } = connected();
  const [a, b] = [opened("/a"), opened("/b")];

  newest().receive(message(1, "open"));
  newest().receive(message(1, "event", "4.0", "{}"));

  expect([a.received, b.received]).toEqual([[], ["open", "event 4.0 {}"]]);
  expect(newest().sent).toEqual([
    { kind: "open", key: 0, address: "/a" },
    { kind: "open", key: 1, address: "/b" },
  ]);
});

test("a closed source receives nothing more and sends one close message", () => {
  const { opened, newest } = connected();
  const { source, received } = opened("/a");

  source.close();
  source.close();
  newest().receive(message(0, "event", "4.0", "{}"));

  expect(received).toEqual([]);
  expect(newest().sent.slice(1)).toEqual([{ kind: "close", key: 0 }]);
});

test("a silent worker is dropped and the next stream uses a new one", () => {
  const { opened, links } = connected();
  const { received } = opened("/a");

  vi.advanceTimersByTime(2 * WORKER_SILENCE_MS);
  opened("/a");

  expect(received).toEqual(["error"]);
  expect(links.map(({ closed }) => closed)).toEqual([true, false]);
});

test("a worker that sends heartbeats is kept", () => {
  const { opened, newest } = connected();
  const { received } = opened("/a");

  for (let beat = 0; beat < 10; beat += 1) {
    vi.advanceTimersByTime(WORKER_SILENCE_MS / 2);
    newest().receive({ kind: "beat" });
  }

  expect(received).toEqual([]);
});

test("leaving notifies the hub and ends the open streams with an error", () => {
  const { connection, opened, newest } = connected();
  const { received } = opened("/a");

  connection.leave();

  expect(newest().sent.at(-1)).toEqual({ kind: "leave" });
  expect(received).toEqual(["error"]);
});
