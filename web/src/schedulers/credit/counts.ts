/** Refusals by cause and clearing efficiency per tick, counted from events. */

import type { RunEvent } from "./network/model";

export const MAX_TICKS = 600;

/** The counts of one tick. */
export interface TickCount {
  readonly tick: number;
  readonly committed: number;
  readonly refused: Readonly<Record<string, number>>;
}

/** The debt reduction of one clearing in percent of its optimum. */
export interface Efficiency {
  readonly tick: number;
  readonly percent: number;
}

export interface Counts {
  readonly ticks: readonly TickCount[];
  readonly efficiency: readonly Efficiency[];
}

export const NO_COUNTS: Counts = { ticks: [], efficiency: [] };

/** Add events to the counts. Ticks that go backwards mean that the run was restarted; counting starts again. */
export function addEvents(counts: Counts, events: readonly RunEvent[]): Counts {
  if (events.length === 0) return counts;
  let ticks = [...counts.ticks];
  let efficiency = [...counts.efficiency];
  for (const event of events) {
    const last = ticks.at(-1);
    if (last !== undefined && event.tick < last.tick - 1) {
      ticks = [];
      efficiency = [];
    }
    if (event.kind === "clearing") {
      const percent = percentOf(event.reduction, event.optimum);
      if (percent !== null) efficiency.push({ tick: event.tick, percent });
      continue;
    }
    const index = ticks.findLastIndex(({ tick }) => tick === event.tick);
    const before = ticks[index] ?? { tick: event.tick, committed: 0, refused: {} };
    const after =
      event.kind === "payment"
        ? { ...before, committed: before.committed + 1 }
        : { ...before, refused: { ...before.refused, [event.cause]: (before.refused[event.cause] ?? 0) + 1 } };
    if (index < 0) ticks.push(after);
    else ticks[index] = after;
  }
  return { ticks: ticks.slice(-MAX_TICKS), efficiency: efficiency.slice(-MAX_TICKS) };
}

/** All causes with their counts, most frequent first, then by name. */
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
