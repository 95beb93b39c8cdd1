import { expect, test } from "vitest";

import { xOf } from "../../canvas/viewport";
import type { Bar } from "./bars";
import type { BarPosition } from "./lanes";
import { barAt, LANE, layoutOf, positionOf, rangeAround, step } from "./lanes";
import { world } from "./testing";

const bar = (changes: Partial<Bar>): Bar => {
  const { action = "bread", kind = "done" } = changes;
  return {
    key: `${action}/0/${kind}`,
    action,
    actor: "bruno",
    verb: "bake",
    segment: 0,
    kind,
    from: 1800,
    to: 1860,
    locks: ["oven", "actor:bruno"],
    pc: false,
    by: null,
    ...changes,
  };
};
const lock = (name: string) => ({ name, held_by: null, until: null, queue: [], waiting: 0, capacity: 1, holders: [] });
const BARS = [
  bar({}),
  bar({ action: "rolls", kind: "waiting", from: 1850, to: 1940, locks: ["oven"] }),
  bar({ action: "post", actor: "mira", from: 1600, to: 1640, locks: [] }),
  bar({ action: "talk", actor: "mira", from: 1900, to: 1960, kind: "running", locks: [] }),
];
const NOW = world({ locks: [lock("oven"), lock("actor:bruno"), lock("mill")] });
const LAYOUT = layoutOf(BARS, NOW, rangeAround(1940, 12), 1108);

test("now is at three quarters of the range", () => {
  expect(rangeAround(1940, 12)).toEqual({ from: 1400, to: 2120 });
  expect(xOf(LAYOUT, 1940)).toBe(LAYOUT.gutter + 750);
});

test("the player character has the first lane, then other actors, then locks by name", () => {
  expect(LAYOUT.lanes.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    "actor mira",
    "actor bruno",
    "lock mill",
    "lock oven",
  ]);
});

test("the lane of a lock has only its holders", () => {
  expect(LAYOUT.lanes.at(-1)?.bars.map(({ action }) => action)).toEqual(["bread"]);
});

test("lanes keep their positions while they are empty", () => {
  const later = layoutOf(BARS, NOW, rangeAround(9000, 12), 1108);

  expect(later.lanes.map(({ top }) => top)).toEqual(LAYOUT.lanes.map(({ top }) => top));
  expect(later.lanes.flatMap(({ bars }) => bars)).toEqual([]);
});

test("with many actors only those with bars are shown", () => {
  const many = Array.from({ length: 60 }, (_, from) =>
    bar({ action: `a${from}`, actor: `p${from}`, from, to: from + 1 }),
  );

  expect(layoutOf([...many, ...BARS], NOW, rangeAround(1940, 12), 1108).lanes).toHaveLength(4);
});

test("a later submission is on the lane of its actor", () => {
  const coming = { kind: "submit", action_id: "late", actor: "mira", verb: "deliver", t: 2000, at: "" } as const;
  const interrupt = { ...coming, kind: "interrupt", actor: null, verb: null } as const;
  const layout = layoutOf(BARS, world({ coming: [coming, interrupt, { ...coming, t: 9000 }] }), LAYOUT.range, 1108);

  expect(layout.lanes[0]?.coming).toEqual([coming]);
});

test("a point hits the bar under it, segments before waits", () => {
  const bruno = LAYOUT.lanes[1]?.top ?? 0;

  expect(barAt(LAYOUT, xOf(LAYOUT, 1855), bruno + LANE / 2)?.bar.action).toBe("bread");
  expect(barAt(LAYOUT, xOf(LAYOUT, 1930), bruno + LANE / 2)?.bar.action).toBe("rolls");
  expect(barAt(LAYOUT, xOf(LAYOUT, 1500), bruno + LANE / 2)).toBeNull();
  expect(barAt(LAYOUT, 10, bruno + LANE / 2)).toBeNull();
  expect(barAt(LAYOUT, xOf(LAYOUT, 1855), 3)).toBeNull();
});

test.each<[string, BarPosition | null, string, BarPosition]>([
  ["to the newest bar of the first lane", null, "ArrowDown", { lane: 0, bar: 1 }],
  ["back along the lane", { lane: 0, bar: 1 }, "ArrowLeft", { lane: 0, bar: 0 }],
  ["not beyond its start", { lane: 0, bar: 0 }, "ArrowLeft", { lane: 0, bar: 0 }],
  ["not beyond its end", { lane: 0, bar: 1 }, "ArrowRight", { lane: 0, bar: 1 }],
  ["down to the nearest in time", { lane: 0, bar: 1 }, "ArrowDown", { lane: 1, bar: 1 }],
  ["over empty lanes", { lane: 1, bar: 0 }, "ArrowDown", { lane: 3, bar: 0 }],
  ["up again", { lane: 3, bar: 0 }, "ArrowUp", { lane: 1, bar: 0 }],
  ["not above the first lane", { lane: 0, bar: 0 }, "ArrowUp", { lane: 0, bar: 0 }],
  ["to the end", { lane: 0, bar: 0 }, "End", { lane: 0, bar: 1 }],
  ["to the start", { lane: 0, bar: 1 }, "Home", { lane: 0, bar: 0 }],
])("arrow keys move %s", (_, from, key, to) => {
  expect(step(LAYOUT, from, key)).toEqual(to);
});

test("arrow keys do nothing on an empty timeline", () => {
  expect(step(layoutOf([], world(), LAYOUT.range, 800), null, "ArrowDown")).toBeNull();
});

test("a bar is found on its lane", () => {
  expect(positionOf(LAYOUT, "actor:bruno", ({ action }) => action === "rolls")).toEqual({ lane: 1, bar: 1 });
  expect(positionOf(LAYOUT, "actor:bruno", ({ action }) => action === "post")).toBeNull();
  expect(positionOf(LAYOUT, "actor:unknown", () => true)).toBeNull();
});
