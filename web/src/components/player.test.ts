import { beforeEach, expect, test, vi } from "vitest";

import type { FoundStop, StopSource } from "./player";
import { Playing } from "./player";

/** A journal with a record every second, a pause of an hour after the tenth, and twenty records in all. */
const wall = (n: number) => n * 1000 + (n >= 10 ? 3_600_000 : 0);
const stop = (n: number) => ({ n, t: n, ms: wall(n) });

function found(n: number): FoundStop {
  return { stop: stop(n), next: n < 19 ? stop(n + 1) : null };
}

const SOURCE: StopSource = {
  spread: () => Promise.resolve([]),
  atRecord: (n) => Promise.resolve(found(n)),
  atWall: (ms) => Promise.resolve(found(Array.from({ length: 20 }, (_, n) => n).findLast((n) => wall(n) <= ms) ?? 0)),
  incident: () => Promise.resolve(null),
};

beforeEach(() => {
  vi.useFakeTimers();
});

async function played(speed: number, ms: number, from = 0, isReady = () => true): Promise<(number | null)[]> {
  const moves: (number | null)[] = [];
  const playing = new Playing(SOURCE, (n) => moves.push(n), isReady);
  playing.speed.value = speed;
  await playing.start(from);
  await vi.advanceTimersByTimeAsync(ms);
  playing.stop();
  return moves;
}

test("at 1× a journal is played as it happened", async () => {
  expect(await played(1, 3_900)).toEqual([0, 1, 2, 3]);
});

test("at 5× five times as much has happened", async () => {
  expect((await played(5, 1_000)).at(-1)).toBe(5);
});

test("an hour in which nothing happened is not waited for", async () => {
  expect((await played(1, 2_000, 9)).slice(0, 2)).toEqual([9, 10]);
});

test("at its end the page is live again, and nothing plays", async () => {
  expect((await played(100, 2_000, 12)).at(-1)).toBeNull();
});

test("a server that is busy now and then does not end the play, one that is gone does", async () => {
  let asked = 0;
  const moves: (number | null)[] = [];
  const busy = { ...SOURCE, atWall: (ms: number) => (asked++ < 3 ? Promise.reject(new Error()) : SOURCE.atWall(ms)) };
  const playing = new Playing(
    busy,
    (n) => moves.push(n),
    () => true,
  );
  await playing.start(0);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(moves.length).toBeGreaterThan(0);

  asked = -Infinity;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(playing.on.value).toBe(false);
});

test("time stands while the picture is on its way", async () => {
  expect(await played(1, 10_000, 0, () => false)).toEqual([]);
});
