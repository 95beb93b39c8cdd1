import { expect, test } from "vitest";

import type { Bar } from "./bars";
import { barsOf } from "./bars";
import { action, event, world } from "./testing";

const summary = (bars: readonly Bar[]) => bars.map(({ kind, segment, from, to }) => [kind, segment, from, to]);

test("a finished segment spans from its start to its end, also across midnight", () => {
  const bars = barsOf([event("start", 1400), event("end", 1500)], world());

  expect(summary(bars)).toEqual([["done", 0, 1400, 1500]]);
  expect(bars[0]?.locks).toEqual(["oven"]);
});

test("a wait precedes its start", () => {
  const bars = barsOf([event("start", 1530, { waited: 30 }), event("end", 1600)], world());

  expect(summary(bars)).toEqual([
    ["waited", 0, 1500, 1530],
    ["done", 0, 1530, 1600],
  ]);
});

test("an interrupted segment is followed by its hold, its wait and the rest", () => {
  const bars = barsOf(
    [
      event("start", 1500),
      event("interrupt", 1520, { by: "thunder", d_rem: 40 }),
      event("start", 1545, { segment: 1, waited: 10 }),
      event("end", 1585, { segment: 1 }),
    ],
    world(),
  );

  expect(summary(bars)).toEqual([
    ["interrupted", 0, 1500, 1520],
    ["held", 1, 1520, 1535],
    ["waited", 1, 1535, 1545],
    ["done", 1, 1545, 1585],
  ]);
  expect(bars[0]?.by).toBe("thunder");
});

test("an interrupted action that queues again at once has no hold", () => {
  const bars = barsOf(
    [event("start", 1500), event("interrupt", 1520), event("start", 1550, { segment: 1, waited: 30 })],
    world(),
  );

  expect(summary(bars)).toEqual([
    ["interrupted", 0, 1500, 1520],
    ["waited", 1, 1520, 1550],
  ]);
});

test("a running segment spans to its planned end", () => {
  expect(summary(barsOf([event("start", 1900)], world({ actions: [action()] })))).toEqual([["running", 0, 1900, 1980]]);
});

test("waiting and suspended bars span to now, held bars to the end of the hold", () => {
  const waiting = action({ id: "a", stage: "waiting", since: 1920, until: null });
  const suspended = action({ id: "b", stage: "suspended", since: null, until: null });
  const held = action({ id: "c", stage: "held", since: null, until: 1950 });
  const events = [
    event("interrupt", 1910, { by: "x" }, { action_id: "b" }),
    event("interrupt", 1935, { by: "x" }, { action_id: "c" }),
  ];

  expect(summary(barsOf(events, world({ actions: [waiting, suspended, held] })))).toEqual([
    ["suspended", 0, 1910, 1940],
    ["waiting", 0, 1920, 1940],
    ["held", 0, 1935, 1950],
  ]);
});

test("a start newer than the world state is drawn from the event alone", () => {
  const start = event("start", 1940, { d: 20 });

  expect(summary(barsOf([start], world({ n: 0 })))).toEqual([["running", 0, 1940, 1960]]);
  expect(barsOf([start], world({ n: 1_000_000 }))).toEqual([]);
});

test("an end without its start has no bar", () => {
  expect(barsOf([event("end", 1500)], world())).toEqual([]);
});
