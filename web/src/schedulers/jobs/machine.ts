/** The layout of a state machine: states in rows by their distance from the first, with arrows between them. */

import type { SchedulerMachine } from "../../api/types";

export const BOX = { width: 138, height: 44 } as const;
const GAP = { x: 20, y: 56 } as const;
const MARGIN = 34;

export interface Box {
  readonly place: string;
  readonly x: number;
  readonly y: number;
  readonly row: number;
}

export interface Line {
  readonly source: string;
  readonly target: string;
  /** The actions and findings of the transition: `verify: passed`. */
  readonly label: string;
  readonly path: string;
}

export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly Box[];
  readonly lines: readonly Line[];
}

export function pictureOf(machine: SchedulerMachine): Picture {
  const rows = rowsOf(machine);
  const widest = Math.max(...rows.map((row) => row.length));
  const width = widest * (BOX.width + GAP.x) - GAP.x + 2 * MARGIN;
  const boxes = rows.flatMap((row, index) => boxesOf(row, index, width));
  const height = rows.length * (BOX.height + GAP.y) - GAP.y + 20;
  return { width, height, boxes, lines: linesOf(machine, boxes, width) };
}

/** States by the fewest steps from the first, in the given order within a row; unreachable states are last. */
export function rowsOf({ first, places, arrows }: SchedulerMachine): string[][] {
  const rows: string[][] = [[first]];
  const seen = new Set([first]);
  for (let row = rows[0]; row !== undefined && row.length > 0; row = rows.at(-1)) {
    const next = places
      .map(({ place }) => place)
      .filter(
        (place) => !seen.has(place) && arrows.some(({ source, target }) => target === place && row?.includes(source)),
      );
    if (next.length === 0) break;
    for (const place of next) seen.add(place);
    rows.push(next);
  }
  const unreachable = places.map(({ place }) => place).filter((place) => !seen.has(place));
  return unreachable.length === 0 ? rows : [...rows, unreachable];
}

function boxesOf(row: readonly string[], index: number, width: number): Box[] {
  const used = row.length * (BOX.width + GAP.x) - GAP.x;
  return row.map((place, column) => ({
    place,
    row: index,
    x: (width - used) / 2 + column * (BOX.width + GAP.x),
    y: 10 + index * (BOX.height + GAP.y),
  }));
}

function linesOf({ arrows }: SchedulerMachine, boxes: readonly Box[], width: number): Line[] {
  const merged = new Map<string, { source: Box; target: Box; labels: string[] }>();
  for (const arrow of arrows) {
    const [source, target] = [arrow.source, arrow.target].map((place) => boxes.find((box) => box.place === place));
    if (source === undefined || target === undefined || source === target) continue;
    const key = `${arrow.source}>${arrow.target}`;
    const line = merged.get(key) ?? { source, target, labels: [] };
    line.labels.push(`${arrow.action}: ${arrow.finding}`);
    merged.set(key, line);
  }
  return [...merged.values()].map(({ source, target, labels }) => ({
    source: source.place,
    target: target.place,
    label: labels.join(", "),
    path: pathOf(source, target, width),
  }));
}

/** Lines between neighbouring rows are direct; others curve around the boxes between. */
function pathOf(source: Box, target: Box, width: number): string {
  const [from, to] = [middleOf(source), middleOf(target)];
  const slant = to.x === from.x ? 0 : Math.sign(to.x - from.x);
  if (target.row === source.row + 1) {
    const [x, y, endX, endY] = [from.x + slant * 22 + 8, source.y + BOX.height, to.x - slant * 22 + 8, target.y];
    return `M${x} ${y} C${x} ${y + 30} ${endX} ${endY - 30} ${endX} ${endY}`;
  }
  if (target.row === source.row - 1) {
    const [x, y, endX, endY] = [from.x + slant * 22 - 12, source.y, to.x - slant * 22 - 12, target.y + BOX.height];
    return `M${x} ${y} C${x} ${y - 30} ${endX} ${endY + 30} ${endX} ${endY}`;
  }
  if (target.row === source.row) {
    const [x, endX] = [from.x + slant * (BOX.width / 2), to.x - slant * (BOX.width / 2)];
    if (Math.abs(endX - x) <= GAP.x + 1) return `M${x} ${from.y + slant * 6} L${endX} ${from.y + slant * 6}`;
    const y = source.y + BOX.height;
    const [left, right] = [from.x + slant * 40, to.x - slant * 40];
    return `M${left} ${y} C${left + slant * 20} ${y + 30} ${right - slant * 20} ${y + 30} ${right} ${y}`;
  }
  const side = (from.x + to.x) / 2 < width / 2 ? -1 : 1;
  const outside = side < 0 ? 8 : width - 8;
  const [x, endX] = [from.x + side * (BOX.width / 2), to.x + side * (BOX.width / 2)];
  return `M${x} ${from.y} C${outside} ${from.y} ${outside} ${to.y} ${endX} ${to.y}`;
}

function middleOf(box: Box): { readonly x: number; readonly y: number } {
  return { x: box.x + BOX.width / 2, y: box.y + BOX.height / 2 };
}
