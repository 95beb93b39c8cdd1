import { beforeEach, expect, test, vi } from "vitest";

import type { StopAndNext, StopSource } from "./player";
import { Player } from "./player";

/** A journal with a record every second, a pause of an hour after the tenth, and twenty records in all. */
const wall = (n: number) => n * 1000 + (n >= 10 ? 3_600_000 : 0);
const stop = (n: number) => ({ n, t: n, ms: wall(n) });

function stopAndNext(n: number): StopAndNext {
  return { stop: stop(n), next: n < 19 ? stop(n + 1) : null };
}

const SOURCE: StopSource = {
  sample: () => Promise.resolve([]),
  atRecord: (n) => Promise.resolve(stopAndNext(n)),
  atWall: (ms) =>
    Promise.resolve(stopAndNext(Array.from({ length: 20 }, (_, n) => n).findLast((n) => wall(n) <= ms) ?? 0)),
  incident: () => Promise.resolve(null),
};

beforeEach(() => {
  vi.useFakeTimers();
});

async function played(speed: number, ms: number, from = 0, isReady = () => true): Promise<(number | null)[]> {
  const moves: (number | null)[] = [];
  const player = new Player(SOURCE, (n) => moves.push(n), isReady);
  player.speed.value = speed;
  await player.start(from);
  await vi.advanceTimersByTimeAsync(ms);
  player.stop();
  return moves;
}

test("at 1× a journal plays in real time", async () => {
  expect(await played(1, 3_900)).toEqual([0, 1, 2, 3]);
});

test("at 5× a journal plays five times as fast", async () => {
  expect((await played(5, 1_000)).at(-1)).toBe(5);
});

test("an hour without records is skipped", async () => {
  expect((await played(1, 2_000, 9)).slice(0, 2)).toEqual([9, 10]);
});

test("at the end of the journal the page becomes live", async () => {
  expect((await played(100, 2_000, 12)).at(-1)).toBeNull();
});

test("playback survives a few failed requests and stops after many", async () => {
  let requests = 0;
  const moves: (number | null)[] = [];
  const busy = {
    ...SOURCE,
    atWall: (ms: number) => (requests++ < 3 ? Promise.reject(new Error()) : SOURCE.atWall(ms)),
  };
  const player = new Player(
    busy,
    (n) => moves.push(n),
    () => true,
  );
  await player.start(0);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(moves.length).toBeGreaterThan(0);

  requests = -Infinity;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(player.on.value).toBe(false);
});

test("playback waits while the page is loading", async () => {
  expect(await played(1, 10_000, 0, () => false)).toEqual([]);
});
