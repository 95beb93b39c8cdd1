import { expect, test } from "vitest";

import type { SchedulerEvent } from "../../api/types";
import { eventId, eventNumber } from "./model";
import { TrailSource } from "./trail_source";

const COUNT = 450;
const TROUBLED = new Set([30, 440]);

const event = (n: number) =>
  ({
    id: eventId(n),
    timestamp: new Date(n * 1000).toISOString(),
    object_type: "memory",
    object_id: `m${n}`,
    reason: "no answer",
    after: { status: TROUBLED.has(n) ? "dead_letter" : "queued" },
  }) as unknown as SchedulerEvent;

/** A trail with an event every second. */
function source(): TrailSource {
  const get = (_: unknown, __: unknown, query: { after: string | null; limit: number }) => {
    const from = query.after === null ? 0 : eventNumber(query.after);
    const events = Array.from({ length: COUNT }, (_, k) => event(k + 1)).slice(from, from + query.limit);
    return Promise.resolve({ events, next_cursor: null });
  };
  return new TrailSource({ get } as never, () => ({ first: 1, last: COUNT }));
}

test("moments are sampled evenly from the trail", async () => {
  expect((await source().sample(3)).map(({ n, ms }) => [n, ms])).toEqual([
    [1, 1_000],
    [226, 226_000],
    [450, 450_000],
  ]);
});

test("a wall-clock time leads to the last event at or before it, across pages, up to the end", async () => {
  const trail = source();
  await trail.atRecord(5);

  expect((await trail.atWall(7_500)).stop?.n).toBe(7);
  expect((await trail.atWall(300_000)).stop?.n).toBe(300);
  expect(await trail.atWall(999_000)).toMatchObject({ stop: { n: 450 }, next: null });
});

test("incidents are found across pages in both directions", async () => {
  const trail = source();

  expect((await trail.incident("after", 30))?.n).toBe(440);
  expect(await trail.incident("before", 440)).toEqual({ n: 30, sentence: "memory m30, dead letter: no answer" });
  expect(await trail.incident("after", 440)).toBeNull();
  expect(await trail.incident("before", 1)).toBeNull();
});
