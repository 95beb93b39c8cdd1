import { expect, test } from "vitest";

import type { Bar } from "./bars";
import { barsOf } from "./bars";
import { action, event, world } from "./testing";

const gist = (bars: readonly Bar[]) => bars.map(({ kind, segment, from, to }) => [kind, segment, from, to]);

test("a segment that ran lies between its start and its end, across midnight too", () => {
  const bars = barsOf([event("start", 1400), event("end", 1500)], world());

  expect(gist(bars)).toEqual([["done", 0, 1400, 1500]]);
  expect(bars[0]?.locks).toEqual(["oven"]);
});

test("a wait lies before the start it led to", () => {
  const bars = barsOf([event("start", 1530, { waited: 30 }), event("end", 1600)], world());

  expect(gist(bars)).toEqual([
    ["waited", 0, 1500, 1530],
    ["done", 0, 1530, 1600],
  ]);
});

test("an interrupt breaks a segment off, then come the hold, the wait and the rest", () => {
  const bars = barsOf(
    [
      event("start", 1500),
      event("interrupt", 1520, { by: "thunder", d_rem: 40 }),
      event("start", 1545, { segment: 1, waited: 10 }),
      event("end", 1585, { segment: 1 }),
    ],
    world(),
  );

  expect(gist(bars)).toEqual([
    ["interrupted", 0, 1500, 1520],
    ["held", 1, 1520, 1535],
    ["waited", 1, 1535, 1545],
    ["done", 1, 1545, 1585],
  ]);
  expect(bars[0]?.by).toBe("thunder");
});

test("whoever stands in the queue again at once was not held", () => {
  const bars = barsOf(
    [event("start", 1500), event("interrupt", 1520), event("start", 1550, { segment: 1, waited: 30 })],
    world(),
  );

  expect(gist(bars)).toEqual([
    ["interrupted", 0, 1500, 1520],
    ["waited", 1, 1520, 1550],
  ]);
});

test("what runs reaches to where it will end", () => {
  expect(gist(barsOf([event("start", 1900)], world({ actions: [action()] })))).toEqual([["running", 0, 1900, 1980]]);
});

test("what waits reaches to now, what is put aside too, what is held to the end of its hold", () => {
  const waiting = action({ id: "a", stage: "waiting", since: 1920, until: null });
  const aside = action({ id: "b", stage: "suspended", since: null, until: null });
  const held = action({ id: "c", stage: "held", since: null, until: 1950 });
  const events = [
    event("interrupt", 1910, { by: "x" }, { action_id: "b" }),
    event("interrupt", 1935, { by: "x" }, { action_id: "c" }),
  ];

  expect(gist(barsOf(events, world({ actions: [waiting, aside, held] })))).toEqual([
    ["suspended", 0, 1910, 1940],
    ["waiting", 0, 1920, 1940],
    ["held", 0, 1935, 1950],
  ]);
});

test("a start that the last look at the world does not know yet is drawn by what it says itself", () => {
  const start = event("start", 1940, { d: 20 });

  expect(gist(barsOf([start], world({ n: 0 })))).toEqual([["running", 0, 1940, 1960]]);
  expect(barsOf([start], world({ n: 1_000_000 }))).toEqual([]);
});

test("an end whose start is forgotten is no bar", () => {
  expect(barsOf([event("end", 1500)], world())).toEqual([]);
});
