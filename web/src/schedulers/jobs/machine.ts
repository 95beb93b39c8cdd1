/** A state machine as a picture: states in rows by how far they are from the first, arrows between them. */

import type { SchedulerMachine } from "../../api/types";

export const BOX = { width: 138, height: 44 } as const;
const GAP = { x: 20, y: 56 } as const;
const EDGE = 34;

export interface Box {
  readonly place: string;
  readonly x: number;
  readonly y: number;
  readonly row: number;
}

export interface Line {
  readonly source: string;
  readonly target: string;
  /** What leads this way: `verify: passed`. */
  readonly words: string;
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
  const width = widest * (BOX.width + GAP.x) - GAP.x + 2 * EDGE;
  const boxes = rows.flatMap((row, number) => placed(row, number, width));
  const height = rows.length * (BOX.height + GAP.y) - GAP.y + 20;
  return { width, height, boxes, lines: linesOf(machine, boxes, width) };
}

/** States by the fewest steps from the first; in a row the most trusted in the middle of what was given. */
export function rowsOf({ first, places, arrows }: SchedulerMachine): string[][] {
  const rows: string[][] = [[first]];
  const seen = new Set([first]);
  for (let row = rows[0]; row !== undefined && row.length > 0; row = rows.at(-1)) {
    const next = places
      .map(({ place }) => place)
      .filter((place) => !seen.has(place) && arrows.some((one) => one.target === place && row?.includes(one.source)));
    if (next.length === 0) break;
    for (const place of next) seen.add(place);
    rows.push(next);
  }
  const left = places.map(({ place }) => place).filter((place) => !seen.has(place));
  return left.length === 0 ? rows : [...rows, left];
}

function placed(row: readonly string[], number: number, width: number): Box[] {
  const taken = row.length * (BOX.width + GAP.x) - GAP.x;
  return row.map((place, column) => ({
    place,
    row: number,
    x: (width - taken) / 2 + column * (BOX.width + GAP.x),
    y: 10 + number * (BOX.height + GAP.y),
  }));
}

function linesOf({ arrows }: SchedulerMachine, boxes: readonly Box[], width: number): Line[] {
  const words = new Map<string, { source: Box; target: Box; said: string[] }>();
  for (const arrow of arrows) {
    const [source, target] = [arrow.source, arrow.target].map((place) => boxes.find((box) => box.place === place));
    if (source === undefined || target === undefined || source === target) continue;
    const key = `${arrow.source}>${arrow.target}`;
    const there = words.get(key) ?? { source, target, said: [] };
    there.said.push(`${arrow.action}: ${arrow.finding}`);
    words.set(key, there);
  }
  return [...words.values()].map(({ source, target, said }) => ({
    source: source.place,
    target: target.place,
    words: said.join(", "),
    path: pathOf(source, target, width),
  }));
}

/** One row down goes straight; up, along a row and over rows goes round the boxes between. */
function pathOf(source: Box, target: Box, width: number): string {
  const [from, to] = [middleOf(source), middleOf(target)];
  const lean = to.x === from.x ? 0 : Math.sign(to.x - from.x);
  if (target.row === source.row + 1) {
    const [x, y, endX, endY] = [from.x + lean * 22 + 8, source.y + BOX.height, to.x - lean * 22 + 8, target.y];
    return `M${x} ${y} C${x} ${y + 30} ${endX} ${endY - 30} ${endX} ${endY}`;
  }
  if (target.row === source.row - 1) {
    const [x, y, endX, endY] = [from.x + lean * 22 - 12, source.y, to.x - lean * 22 - 12, target.y + BOX.height];
    return `M${x} ${y} C${x} ${y - 30} ${endX} ${endY + 30} ${endX} ${endY}`;
  }
  if (target.row === source.row) {
    const [x, endX] = [from.x + lean * (BOX.width / 2), to.x - lean * (BOX.width / 2)];
    if (Math.abs(endX - x) <= GAP.x + 1) return `M${x} ${from.y + lean * 6} L${endX} ${from.y + lean * 6}`;
    const y = source.y + BOX.height;
    const [left, right] = [from.x + lean * 40, to.x - lean * 40];
    return `M${left} ${y} C${left + lean * 20} ${y + 30} ${right - lean * 20} ${y + 30} ${right} ${y}`;
  }
  const side = (from.x + to.x) / 2 < width / 2 ? -1 : 1;
  const outside = side < 0 ? 8 : width - 8;
  const [x, endX] = [from.x + side * (BOX.width / 2), to.x + side * (BOX.width / 2)];
  return `M${x} ${from.y} C${outside} ${from.y} ${outside} ${to.y} ${endX} ${to.y}`;
}

function middleOf(box: Box): { readonly x: number; readonly y: number } {
  return { x: box.x + BOX.width / 2, y: box.y + BOX.height / 2 };
}
