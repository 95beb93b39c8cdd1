/** The layout of the timeline: lanes of actors and locks, positions of bars, hit testing, keyboard navigation. */

import type { ComingView, WorldNow } from "../../api/types";
import { nearestTo, spanAt } from "../../canvas/hits";
import type { Range, Viewport } from "../../canvas/viewport";
import type { Bar } from "./bars";
import { isOfActor } from "./model";

/** Height for three lines: epochs, hours, and the time of now. */
export const HEAD = 60;
export const LANE = 26;
export const GROUP = 24;
export const FOOT = 8;
// Up to these numbers every lane is shown; beyond, only lanes with bars.
const MAX_ACTORS = 24;
const MAX_LOCKS = 16;

export interface Lane {
  readonly kind: "actor" | "lock";
  readonly name: string;
  readonly top: number;
  readonly bars: readonly Bar[];
  /** Submissions for later. */
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

/** Three quarters of the range are before now, one quarter after. */
export function rangeAround(now: number, hours: number): Range {
  const minutes = hours * 60;
  return { from: now - Math.round(minutes * 0.75), to: now + Math.round(minutes * 0.25) };
}

export function layoutOf(bars: readonly Bar[], now: WorldNow, range: Range, width: number): Layout {
  const inside = bars.filter((bar) => bar.to >= range.from && bar.from <= range.to);
  // The lane of a lock has only its holders; waits are on the lanes of their actors.
  const holding = inside.filter(isSegment);
  const coming = now.coming.filter(({ kind, t }) => kind === "submit" && t >= now.t && t <= range.to);
  const groups: Group[] = [];
  const lanes: Lane[] = [];
  let top = HEAD;
  const addGroup = (title: string, names: readonly string[]) => {
    if (names.length === 0) return;
    groups.push({ title, top });
    top += GROUP;
  };
  const addLane = (lane: Omit<Lane, "top">) => {
    lanes.push({ ...lane, top });
    top += LANE;
  };
  const actors = actorsOf(bars, inside, now);
  addGroup("Actors", actors);
  for (const name of actors)
    addLane({
      kind: "actor",
      name,
      bars: inside.filter(({ actor }) => actor === name),
      coming: coming.filter(({ actor }) => actor === name),
    });
  const locks = locksOf(holding, now);
  addGroup("Locks", locks);
  for (const name of locks)
    addLane({ kind: "lock", name, bars: holding.filter((bar) => bar.locks.includes(name)), coming: [] });
  return { range, gutter: width < 560 ? 70 : 108, width, height: top + FOOT, groups, lanes };
}

/** The player character first, then the others by name. */
function actorsOf(bars: readonly Bar[], inside: readonly Bar[], now: WorldNow): string[] {
  const all = new Set([...bars, ...now.coming].map(({ actor }) => actor));
  const used = all.size <= MAX_ACTORS ? all : new Set(inside.map(({ actor }) => actor));
  return [...used]
    .filter((actor) => actor !== null)
    .sort((a, b) => Number(b === now.pc) - Number(a === now.pc) || (a < b ? -1 : 1));
}

function locksOf(holding: readonly Bar[], now: WorldNow): string[] {
  const all = new Set(now.locks.map(({ name }) => name).filter((name) => !isOfActor(name)));
  if (all.size <= MAX_LOCKS) return [...all].sort();
  const busy = now.locks.filter(({ held_by, waiting }) => held_by !== null || waiting > 0).map(({ name }) => name);
  const used = new Set([...busy, ...holding.flatMap((bar) => bar.locks)]);
  return [...used].filter((name) => !isOfActor(name)).sort();
}

/** A bar and one of its lanes. */
export interface BarOnLane {
  readonly lane: string;
  readonly bar: Bar;
}

/** The bar under a point; segments take precedence over waits. */
export function barAt(layout: Layout, x: number, y: number): BarOnLane | null {
  const lane = layout.lanes.find(({ top }) => y >= top && y < top + LANE);
  if (lane === undefined || x < layout.gutter) return null;
  const bar = spanAt(layout, lane.bars, x, isSegment);
  return bar === undefined ? null : { lane: idOf(lane), bar };
}

export function isSegment({ kind }: Bar): boolean {
  return kind === "done" || kind === "interrupted" || kind === "running";
}

export interface BarPosition {
  readonly lane: number;
  readonly bar: number;
}

/** The position after an arrow key: along a lane by time, between lanes to the bar nearest in time. */
export function step({ lanes }: Layout, from: BarPosition | null, key: string): BarPosition | null {
  const filled = lanes.map((lane, index) => ({ lane, index })).filter(({ lane }) => lane.bars.length > 0);
  const first = filled[0];
  if (first === undefined) return null;
  if (from === null) return { lane: first.index, bar: first.lane.bars.length - 1 };
  const current = lanes[from.lane];
  const count = current?.bars.length ?? 0;
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
      ? filled.find(({ index }) => index > from.lane)
      : filled.findLast(({ index }) => index < from.lane);
  if (next === undefined) return from;
  return { lane: next.index, bar: nearestTo(next.lane.bars, current?.bars[from.bar]?.from ?? 0) };
}

/** The position of the last matching bar on a lane. */
export function positionOf({ lanes }: Layout, laneId: string, matches: (bar: Bar) => boolean): BarPosition | null {
  const lane = lanes.findIndex((candidate) => idOf(candidate) === laneId);
  const bar = lanes[lane]?.bars.findLastIndex(matches) ?? -1;
  return bar < 0 ? null : { lane, bar };
}

export function idOf({ kind, name }: Lane): string {
  return `${kind}:${name}`;
}
