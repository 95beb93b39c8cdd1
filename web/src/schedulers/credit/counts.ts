/** Refusals by cause and clearings beside the best one, tick by tick, as the events tell of them. */

import type { Happening } from "./network/model";

export const TICKS_KEPT = 600;

/** What is counted of one tick. */
export interface TickCount {
  readonly tick: number;
  readonly made: number;
  readonly refused: Readonly<Record<string, number>>;
}

/** One clearing beside what the best one would have done, in per cent. */
export interface Nearness {
  readonly tick: number;
  readonly percent: number;
}

export interface Counts {
  readonly ticks: readonly TickCount[];
  readonly nearness: readonly Nearness[];
}

export const NOTHING: Counts = { ticks: [], nearness: [] };

/** The counts with what else has happened; a tick before the last one is a run that has begun anew. */
export function counted(counts: Counts, happenings: readonly Happening[]): Counts {
  if (happenings.length === 0) return counts;
  let ticks = [...counts.ticks];
  let nearness = [...counts.nearness];
  for (const one of happenings) {
    const last = ticks.at(-1);
    if (last !== undefined && one.tick < last.tick - 1) {
      ticks = [];
      nearness = [];
    }
    if (one.kind === "clearing") {
      const percent = percentOf(one.reduction, one.optimum);
      if (percent !== null) nearness.push({ tick: one.tick, percent });
      continue;
    }
    const place = ticks.findLastIndex(({ tick }) => tick === one.tick);
    const before = ticks[place] ?? { tick: one.tick, made: 0, refused: {} };
    const after =
      one.kind === "payment"
        ? { ...before, made: before.made + 1 }
        : { ...before, refused: { ...before.refused, [one.cause]: (before.refused[one.cause] ?? 0) + 1 } };
    if (place < 0) ticks.push(after);
    else ticks[place] = after;
  }
  return { ticks: ticks.slice(-TICKS_KEPT), nearness: nearness.slice(-TICKS_KEPT) };
}

/** All causes, the most frequent first, then by name. */
export function causesOf({ ticks }: Counts): (readonly [string, number])[] {
  const sums = new Map<string, number>();
  for (const { refused } of ticks)
    for (const [code, count] of Object.entries(refused)) sums.set(code, (sums.get(code) ?? 0) + count);
  return [...sums].sort(([a, many], [b, more]) => more - many || (a < b ? -1 : 1));
}

function percentOf(reduction: string, optimum: string | null): number | null {
  const best = optimum === null ? 0 : Number(optimum);
  return best > 0 ? (100 * Number(reduction)) / best : null;
}
