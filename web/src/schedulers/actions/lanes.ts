/** Where everything lies on the timeline: lanes for actors and locks, places of bars, what lies under a point. */

import type { ComingView, WorldNow } from "../../api/types";
import { nearestTo, spanAt } from "../../canvas/hits";
import type { Range, Viewport } from "../../canvas/viewport";
import type { Bar } from "./bars";
import { isOfActor } from "./model";

/** Three lines: the epochs, the hours, the time of now. */
export const HEAD = 60;
export const LANE = 26;
export const GROUP = 24;
export const FOOT = 8;
// Up to here every lane keeps its place, used or not; beyond, only those that are used are shown.
const MOST_ACTORS = 24;
const MOST_LOCKS = 16;

export interface Lane {
  readonly kind: "actor" | "lock";
  readonly name: string;
  readonly top: number;
  readonly bars: readonly Bar[];
  /** What was submitted for later. */
  readonly coming: readonly ComingView[];
}

export interface Group {
  readonly title: string;
  readonly top: number;
}

export interface Layout extends Viewport {
  readonly height: number;
  readonly groups: readonly Group[];
  readonly lanes: readonly Lane[];
}

/** Three quarters of what is shown lie before now, one quarter after it. */
export function rangeAround(now: number, hours: number): Range {
  const minutes = hours * 60;
  return { from: now - Math.round(minutes * 0.75), to: now + Math.round(minutes * 0.25) };
}

export function layoutOf(bars: readonly Bar[], now: WorldNow, range: Range, width: number): Layout {
  const inside = bars.filter((bar) => bar.to >= range.from && bar.from <= range.to);
  // Only who holds a lock is on its lane: those who wait for it are on their own.
  const holding = inside.filter(isWork);
  const coming = now.coming.filter(({ kind, t }) => kind === "submit" && t >= now.t && t <= range.to);
  const groups: Group[] = [];
  const lanes: Lane[] = [];
  let top = HEAD;
  const begin = (title: string, names: readonly string[]) => {
    if (names.length === 0) return;
    groups.push({ title, top });
    top += GROUP;
  };
  const add = (lane: Omit<Lane, "top">) => {
    lanes.push({ ...lane, top });
    top += LANE;
  };
  const actors = actorsOf(bars, inside, now);
  begin("Actors", actors);
  for (const name of actors)
    add({
      kind: "actor",
      name,
      bars: inside.filter(({ actor }) => actor === name),
      coming: coming.filter(({ actor }) => actor === name),
    });
  const locks = locksOf(holding, now);
  begin("Locks", locks);
  for (const name of locks)
    add({ kind: "lock", name, bars: holding.filter((bar) => bar.locks.includes(name)), coming: [] });
  return { range, gutter: width < 560 ? 70 : 108, width, height: top + FOOT, groups, lanes };
}

/** The player character first, the others by name. */
function actorsOf(bars: readonly Bar[], inside: readonly Bar[], now: WorldNow): string[] {
  const all = new Set([...bars, ...now.coming].map(({ actor }) => actor));
  const used = all.size <= MOST_ACTORS ? all : new Set(inside.map(({ actor }) => actor));
  return [...used]
    .filter((actor) => actor !== null)
    .sort((one, other) => Number(other === now.pc) - Number(one === now.pc) || (one < other ? -1 : 1));
}

function locksOf(holding: readonly Bar[], now: WorldNow): string[] {
  const all = new Set(now.locks.map(({ name }) => name).filter((name) => !isOfActor(name)));
  if (all.size <= MOST_LOCKS) return [...all].sort();
  const wanted = now.locks.filter(({ held_by, waiting }) => held_by !== null || waiting > 0).map(({ name }) => name);
  const used = new Set([...wanted, ...holding.flatMap((bar) => bar.locks)]);
  return [...used].filter((name) => !isOfActor(name)).sort();
}

/** A bar on one of the lanes it lies on. */
export interface Found {
  readonly lane: string;
  readonly bar: Bar;
}

/** The bar under a point; what happens goes before what is waited for. */
export function barAt(layout: Layout, x: number, y: number): Found | null {
  const lane = layout.lanes.find(({ top }) => y >= top && y < top + LANE);
  if (lane === undefined || x < layout.gutter) return null;
  const bar = spanAt(layout, lane.bars, x, isWork);
  return bar === undefined ? null : { lane: idOf(lane), bar };
}

export function isWork({ kind }: Bar): boolean {
  return kind === "done" || kind === "interrupted" || kind === "running";
}

export interface Place {
  readonly lane: number;
  readonly bar: number;
}

/** The place an arrow key leads to: along a lane by time, between lanes to the bar nearest in time. */
export function step({ lanes }: Layout, from: Place | null, key: string): Place | null {
  const filled = lanes.map((lane, place) => ({ lane, place })).filter(({ lane }) => lane.bars.length > 0);
  const first = filled[0];
  if (first === undefined) return null;
  if (from === null) return { lane: first.place, bar: first.lane.bars.length - 1 };
  const here = lanes[from.lane];
  const count = here?.bars.length ?? 0;
  switch (key) {
    case "ArrowLeft":
      return { lane: from.lane, bar: Math.max(0, from.bar - 1) };
    case "ArrowRight":
      return { lane: from.lane, bar: Math.min(count - 1, from.bar + 1) };
    case "Home":
      return { lane: from.lane, bar: 0 };
    case "End":
      return { lane: from.lane, bar: count - 1 };
  }
  const next =
    key === "ArrowDown"
      ? filled.find(({ place }) => place > from.lane)
      : filled.findLast(({ place }) => place < from.lane);
  if (next === undefined) return from;
  return { lane: next.place, bar: nearestTo(next.lane.bars, here?.bars[from.bar]?.from ?? 0) };
}

/** Where the last bar that fits lies on a lane. */
export function placeOf({ lanes }: Layout, laneId: string, fits: (bar: Bar) => boolean): Place | null {
  const lane = lanes.findIndex((candidate) => idOf(candidate) === laneId);
  const bar = lanes[lane]?.bars.findLastIndex(fits) ?? -1;
  return bar < 0 ? null : { lane, bar };
}

export function idOf({ kind, name }: Lane): string {
  return `${kind}:${name}`;
}
