/** A force-directed layout of a network, computed once from its lines and then cached.
 *
 * Lines attract, all pairs repel, starting from a spiral in the order of ids: the same network always has the same
 * layout. Debts do not influence it.
 */

import type { Network } from "./model";

export interface Position {
  /** From 0 at the left to 1 at the right. */
  readonly x: number;
  /** From 0 at the top to 1 at the bottom. */
  readonly y: number;
}

export type Positions = ReadonlyMap<string, Position>;

const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
const WORK = 4_000_000;
const [MIN_STEPS, MAX_STEPS] = [30, 400];

const cache = new Map<string, Positions>();

/** The cached positions of a network. New participants are added without moving the others. */
export function positionsOf(name: string, network: Network): Positions {
  const before = cache.get(name);
  if (before !== undefined && [...network.nodes.keys()].every((id) => before.has(id))) return before;
  const positions = before === undefined ? computeLayout(network) : addNodes(before, network);
  cache.set(name, positions);
  return positions;
}

export function clearPositions(): void {
  cache.clear();
}

/** Compute positions by simulating attraction and repulsion. */
export function computeLayout(network: Network): Positions {
  const ids = [...network.nodes.keys()].sort();
  const count = ids.length;
  const indices = new Map(ids.map((id, index) => [id, index]));
  const xs = ids.map((_, i) => Math.sqrt(i + 0.5) * Math.cos(i * GOLDEN_ANGLE));
  const ys = ids.map((_, i) => Math.sqrt(i + 0.5) * Math.sin(i * GOLDEN_ANGLE));
  const pulls = pairs(network, indices);
  const steps = Math.max(MIN_STEPS, Math.min(MAX_STEPS, Math.floor(WORK / (count * count + 1))));
  const size = Math.sqrt(count);
  for (let step = 0; step < steps; step += 1) relax(xs, ys, pulls, (size / 6) * (1 - step / steps));
  return normalize(ids, xs, ys);
}

/** One step: each participant moves along the sum of its forces, by at most `maxMove`. */
function relax(xs: number[], ys: number[], pulls: readonly (readonly [number, number])[], maxMove: number): void {
  const count = xs.length;
  const dx = new Float64Array(count);
  const dy = new Float64Array(count);
  const force = (a: number, b: number, strength: (distance: number) => number) => {
    const [x, y] = [at(xs, a) - at(xs, b), at(ys, a) - at(ys, b)];
    const distance = Math.max(0.01, Math.hypot(x, y));
    const part = strength(distance) / distance;
    dx[a] = at(dx, a) + x * part;
    dy[a] = at(dy, a) + y * part;
    dx[b] = at(dx, b) - x * part;
    dy[b] = at(dy, b) - y * part;
  };
  for (let a = 0; a < count; a += 1) for (let b = a + 1; b < count; b += 1) force(a, b, (distance) => 1 / distance);
  for (const [a, b] of pulls) force(a, b, (distance) => -distance * distance * 0.12);
  for (let i = 0; i < count; i += 1) {
    // A little gravity keeps participants without lines in the picture.
    const [x, y] = [at(dx, i) - at(xs, i) * 0.06, at(dy, i) - at(ys, i) * 0.06];
    const length = Math.max(1e-9, Math.hypot(x, y));
    const scale = Math.min(length, maxMove) / length;
    xs[i] = at(xs, i) + x * scale;
    ys[i] = at(ys, i) + y * scale;
  }
}

function pairs(network: Network, indices: ReadonlyMap<string, number>): (readonly [number, number])[] {
  const unique = new Map<string, readonly [number, number]>();
  for (const { source, target } of network.links.values()) {
    const [a, b] = [indices.get(source), indices.get(target)];
    if (a === undefined || b === undefined || a === b) continue;
    const pair = a < b ? ([a, b] as const) : ([b, a] as const);
    unique.set(pair.join(), pair);
  }
  return [...unique.values()];
}

function normalize(ids: readonly string[], xs: readonly number[], ys: readonly number[]): Positions {
  const [across, down] = [spread(xs), spread(ys)];
  return new Map(ids.map((id, i) => [id, { x: at(across, i), y: at(down, i) }]));
}

/** Scale values to 0 to 1, half by value and half by rank, to spread out crowded areas. */
function spread(values: readonly number[]): number[] {
  const [min, max] = [Math.min(...values), Math.max(...values)];
  if (max - min < 1e-9) return values.map(() => 0.5);
  const order = values.map((_, i) => i).sort((a, b) => at(values, a) - at(values, b) || a - b);
  const ranks = new Map(order.map((i, rank) => [i, rank / (values.length - 1)]));
  return values.map((value, i) => ((value - min) / (max - min) + (ranks.get(i) ?? 0)) / 2);
}

/** Place new participants at the centre of their neighbours, with a small offset. */
function addNodes(before: Positions, network: Network): Positions {
  const positions = new Map(before);
  for (const id of [...network.nodes.keys()].sort()) {
    if (positions.has(id)) continue;
    const neighbours = [...network.links.values()].flatMap(({ source, target }) =>
      source === id ? (positions.get(target) ?? []) : target === id ? (positions.get(source) ?? []) : [],
    );
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const angle = (positions.size * GOLDEN_ANGLE) % (2 * Math.PI);
    const [x, y] =
      neighbours.length === 0 ? [0.5, 0.5] : [mean(neighbours.map((p) => p.x)), mean(neighbours.map((p) => p.y))];
    positions.set(id, { x: clamp(x + 0.04 * Math.cos(angle)), y: clamp(y + 0.04 * Math.sin(angle)) });
  }
  return positions;
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}

function at(values: ArrayLike<number>, index: number): number {
  return values[index] ?? 0;
}
