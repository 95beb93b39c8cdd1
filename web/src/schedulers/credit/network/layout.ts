/** Where the participants of a network stand in its picture: found once from who trusts whom, and kept from then on.
 *
 * Lines pull together, all others push apart, from a spiral in the order of ids: the same network is always the same
 * picture, whoever looks and however often. Money does not move anybody.
 */

import type { Network } from "./model";

export interface Spot {
  /** From 0 at the left to 1 at the right. */
  readonly x: number;
  /** From 0 at the top to 1 at the bottom. */
  readonly y: number;
}

export type Places = ReadonlyMap<string, Spot>;

const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
const WORK = 4_000_000;
const [STEPS_LEAST, STEPS_MOST] = [30, 400];

const kept = new Map<string, Places>();

/** The places of everybody, as they were first found; who came later is added, nobody else moves. */
export function placesOf(name: string, network: Network): Places {
  const before = kept.get(name);
  if (before !== undefined && [...network.nodes.keys()].every((id) => before.has(id))) return before;
  const found = before === undefined ? settled(network) : joined(before, network);
  kept.set(name, found);
  return found;
}

export function forgetPlaces(): void {
  kept.clear();
}

/** Places found by letting lines pull and everybody push for a while. */
export function settled(network: Network): Places {
  const ids = [...network.nodes.keys()].sort();
  const count = ids.length;
  const index = new Map(ids.map((id, place) => [id, place]));
  const xs = ids.map((_, place) => Math.sqrt(place + 0.5) * Math.cos(place * GOLDEN_ANGLE));
  const ys = ids.map((_, place) => Math.sqrt(place + 0.5) * Math.sin(place * GOLDEN_ANGLE));
  const pulls = pairs(network, index);
  const steps = Math.max(STEPS_LEAST, Math.min(STEPS_MOST, Math.floor(WORK / (count * count + 1))));
  const size = Math.sqrt(count);
  for (let step = 0; step < steps; step += 1) relax(xs, ys, pulls, (size / 6) * (1 - step / steps));
  return fitted(ids, xs, ys);
}

/** One step: everybody moves along the sum of all pulls and pushes, by no more than `most`. */
function relax(xs: number[], ys: number[], pulls: readonly (readonly [number, number])[], most: number): void {
  const count = xs.length;
  const dx = new Float64Array(count);
  const dy = new Float64Array(count);
  const force = (one: number, other: number, strength: (distance: number) => number) => {
    const [x, y] = [at(xs, one) - at(xs, other), at(ys, one) - at(ys, other)];
    const distance = Math.max(0.01, Math.hypot(x, y));
    const part = strength(distance) / distance;
    dx[one] = at(dx, one) + x * part;
    dy[one] = at(dy, one) + y * part;
    dx[other] = at(dx, other) - x * part;
    dy[other] = at(dy, other) - y * part;
  };
  for (let one = 0; one < count; one += 1)
    for (let other = one + 1; other < count; other += 1) force(one, other, (distance) => 1 / distance);
  for (const [one, other] of pulls) force(one, other, (distance) => -distance * distance * 0.12);
  for (let one = 0; one < count; one += 1) {
    // A little gravity keeps those whom nobody trusts in the picture.
    const [x, y] = [at(dx, one) - at(xs, one) * 0.06, at(dy, one) - at(ys, one) * 0.06];
    const length = Math.max(1e-9, Math.hypot(x, y));
    const go = Math.min(length, most) / length;
    xs[one] = at(xs, one) + x * go;
    ys[one] = at(ys, one) + y * go;
  }
}

function pairs(network: Network, index: ReadonlyMap<string, number>): (readonly [number, number])[] {
  const found = new Map<string, readonly [number, number]>();
  for (const { source, target } of network.links.values()) {
    const [one, other] = [index.get(source), index.get(target)];
    if (one === undefined || other === undefined || one === other) continue;
    const pair = one < other ? ([one, other] as const) : ([other, one] as const);
    found.set(pair.join(), pair);
  }
  return [...found.values()];
}

function fitted(ids: readonly string[], xs: readonly number[], ys: readonly number[]): Places {
  const [across, down] = [spread(xs), spread(ys)];
  return new Map(ids.map((id, place) => [id, { x: at(across, place), y: at(down, place) }]));
}

/** Values from 0 to 1: half where they are, half by their rank, so that the crowd in the middle has room. */
function spread(values: readonly number[]): number[] {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (most - least < 1e-9) return values.map(() => 0.5);
  const order = values.map((_, place) => place).sort((a, b) => at(values, a) - at(values, b) || a - b);
  const ranks = new Map(order.map((place, rank) => [place, rank / (values.length - 1)]));
  return values.map((value, place) => ((value - least) / (most - least) + (ranks.get(place) ?? 0)) / 2);
}

/** Who came later stands in the middle of those it knows, a little aside. */
function joined(before: Places, network: Network): Places {
  const places = new Map(before);
  for (const id of [...network.nodes.keys()].sort()) {
    if (places.has(id)) continue;
    const known = [...network.links.values()].flatMap(({ source, target }) =>
      source === id ? (places.get(target) ?? []) : target === id ? (places.get(source) ?? []) : [],
    );
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const aside = (places.size * GOLDEN_ANGLE) % (2 * Math.PI);
    const [x, y] =
      known.length === 0 ? [0.5, 0.5] : [mean(known.map((spot) => spot.x)), mean(known.map((spot) => spot.y))];
    places.set(id, { x: inside(x + 0.04 * Math.cos(aside)), y: inside(y + 0.04 * Math.sin(aside)) });
  }
  return places;
}

function inside(value: number): number {
  return Math.min(1, Math.max(0, value));
}

function at(values: ArrayLike<number>, place: number): number {
  return values[place] ?? 0;
}
