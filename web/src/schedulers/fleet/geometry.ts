/** Places on a map in millimetres and pixels: stretches of edges, the camera, and trucks on their way between two
 * moments. */

import type { MapEdge, MapView, PointView, TruckNow } from "../../api/types";

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** What part of the map is seen: the place in the middle, and how many pixels a millimetre is. */
export interface Camera extends Point {
  readonly scale: number;
}

const MARGIN_PX = 32;
const MOST_SCALE = 0.4;
/** About as broad as a letter of a name gets. */
const LETTER_PX = 7;
/** Names may take so much of the width, and not more, from the map. */
const MOST_FOR_NAMES = 1 / 4;

type Extent = Pick<MapView, "low" | "high" | "nodes" | "profiles">;

/** How broad and how high a map is with everything that may stand at its edges, in millimetres. */
export function extentOf({ low, high, profiles }: Extent): Size {
  const reaches = profiles.map(({ envelope: { front, rear, side } }) => Math.hypot(Math.max(front, rear), side));
  const reach = Math.max(500, ...reaches);
  return { width: high[0] - low[0] + 2 * reach, height: high[1] - low[1] + 2 * reach };
}

/** The whole map in a picture of this size: also trucks and names at its edges. */
export function fitting(map: Extent, { width, height }: Size): Camera {
  const [{ low, high }, { width: across, height: up }] = [map, extentOf(map)];
  const named = map.nodes.filter(({ station, parking }) => station || parking);
  const letters = Math.max(0, ...named.map(({ id }) => id.length));
  // Half of a name stands beside the middle of its node.
  const beside = Math.min(Math.max(2 * MARGIN_PX, letters * LETTER_PX), width * MOST_FOR_NAMES);
  const within = Math.min((width - beside) / (high[0] - low[0]), (height - 2 * MARGIN_PX) / (high[1] - low[1]));
  const scale = Math.min(width / across, height / up, within, MOST_SCALE);
  return { x: (low[0] + high[0]) / 2, y: (low[1] + high[1]) / 2, scale: Math.max(scale, 1e-4) };
}

/** North is up on a map, down on a screen. */
export function onScreen({ x, y, scale }: Camera, { width, height }: Size, at: Point): Point {
  return { x: width / 2 + (at.x - x) * scale, y: height / 2 - (at.y - y) * scale };
}

export function onMap({ x, y, scale }: Camera, { width, height }: Size, at: Point): Point {
  return { x: x + (at.x - width / 2) / scale, y: y - (at.y - height / 2) / scale };
}

/** Nearer or farther, with the place under the pointer where it is. */
export function zoomed(camera: Camera, size: Size, at: Point, factor: number): Camera {
  const scale = Math.min(Math.max(camera.scale * factor, 1e-4), MOST_SCALE);
  const under = onMap(camera, size, at);
  const moved = onMap({ ...camera, scale }, size, at);
  return { scale, x: camera.x + under.x - moved.x, y: camera.y + under.y - moved.y };
}

export function panned(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y + dy / camera.scale };
}

// A name is broader than high: a lane that leads farther to the side leaves it alone.
const NAME_ANGLE = Math.PI / 3;
/** Straight down on the map. */
export const SOUTH: Point = { x: 0, y: -1 };

/** For every node a direction of length 1 in which no lane leads from it: the south, where names are looked for first,
 * else the north, else the middle between the two lanes that are farthest apart. */
export function freeSides({ nodes, edges }: Pick<MapView, "nodes" | "edges">): readonly Point[] {
  const lanes: number[][] = nodes.map(() => []);
  for (const { start, end, points } of edges) {
    const [first, second, last, before] = [points[0], points[1], points.at(-1), points.at(-2)];
    if (first !== undefined && second !== undefined) lanes[start]?.push(angle(first, second));
    if (last !== undefined && before !== undefined) lanes[end]?.push(angle(last, before));
  }
  return lanes.map(freeSide);
}

function angle([ax, ay]: readonly [number, number], [bx, by]: readonly [number, number]): number {
  return Math.atan2(by - ay, bx - ax);
}

function freeSide(lanes: number[]): Point {
  const sorted = lanes.sort((one, other) => one - other);
  const free = [-Math.PI / 2, Math.PI / 2].find((way) => sorted.every((lane) => apart(lane, way) > NAME_ANGLE));
  if (free !== undefined) return { x: 0, y: Math.sign(free) };
  let [middle, widest] = [0, 0];
  for (const [number, from] of sorted.entries()) {
    const next = sorted[number + 1] ?? (sorted[0] ?? 0) + 2 * Math.PI;
    if (next - from > widest) [middle, widest] = [(from + next) / 2, next - from];
  }
  return { x: Math.cos(middle), y: Math.sin(middle) };
}

/** The angle between two directions. */
function apart(one: number, other: number): number {
  const far = Math.abs(one - other) % (2 * Math.PI);
  return Math.min(far, 2 * Math.PI - far);
}

/** A mark on the screen that has a name, and the side of it on which no lane leads away, north up. */
export interface Mark extends Point {
  readonly name: string;
  readonly side: Point;
}

/** Where a name is written: its box on the screen. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

const NAME_HIGH_PX = 12;
/** From the middle of a mark to its edge, and to its name. */
const MARK_PX = 5;
const NAME_AWAY_PX = 9;
const ROUND = [SOUTH, { x: 0, y: 1 }, { x: 1, y: 0 }, { x: -1, y: 0 }] as const;
/** Straighter than this a name stands above, below or beside its mark, and not across a corner. */
const STRAIGHT = 0.35;

/** For every mark the box of its name: on its free side, else on another one, and `null` where each would cover another
 * name or a mark. */
export function namesBeside(marks: readonly Mark[], broad: (name: string) => number): readonly (Box | null)[] {
  const taken: Box[] = marks.map(({ x, y }) => around(x - MARK_PX, y - MARK_PX, 2 * MARK_PX, 2 * MARK_PX));
  return marks.map((mark, own) => {
    const width = broad(mark.name);
    const boxes = [mark.side, ...ROUND].map((side) => beside(mark, side, width));
    const free = boxes.find((box) => taken.every((other, number) => number === own || !meet(box, other)));
    if (free !== undefined) taken.push(free);
    return free ?? null;
  });
}

function beside({ x, y }: Point, side: Point, width: number): Box {
  const [away, up] = [x + side.x * NAME_AWAY_PX, y - side.y * NAME_AWAY_PX];
  const left = side.x > STRAIGHT ? away : side.x < -STRAIGHT ? away - width : away - width / 2;
  const top = side.y > STRAIGHT ? up - NAME_HIGH_PX : side.y < -STRAIGHT ? up : up - NAME_HIGH_PX / 2;
  return around(left, top, width, NAME_HIGH_PX);
}

function around(left: number, top: number, width: number, height: number): Box {
  return { left, top, right: left + width, bottom: top + height };
}

function meet(one: Box, other: Box): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

/** The polyline of an edge between two positions on it. */
export function stretch({ points, s }: Pick<MapEdge, "points" | "s">, from: number, to: number): Point[] {
  const inner = points.flatMap(([x, y], number) => {
    const at = s[number] ?? 0;
    return at > from && at < to ? [{ x, y }] : [];
  });
  return [pointOn({ points, s }, from), ...inner, pointOn({ points, s }, to)];
}

export function pointOn({ points, s }: Pick<MapEdge, "points" | "s">, at: number): Point {
  let leg = 0;
  while (leg + 2 < s.length && (s[leg + 1] ?? 0) < at) leg += 1;
  const [from, to] = [s[leg] ?? 0, s[leg + 1] ?? 1];
  const part = to > from ? Math.min(Math.max((at - from) / (to - from), 0), 1) : 0;
  const [ax, ay] = points[leg] ?? [0, 0];
  const [bx, by] = points[leg + 1] ?? [ax, ay];
  return { x: ax + (bx - ax) * part, y: ay + (by - ay) * part };
}

/** Where a truck is between two reports; one that jumps is where it was heard last. */
export function between(before: PointView | null, after: PointView | null, part: number): PointView | null {
  if (before === null || after === null) return after;
  const far = Math.hypot(after.x - before.x, after.y - before.y);
  if (far > JUMP_MM) return after;
  const share = Math.min(Math.max(part, 0), 1);
  return {
    x: before.x + (after.x - before.x) * share,
    y: before.y + (after.y - before.y) * share,
    yaw: before.yaw + turn(before.yaw, after.yaw) * share,
  };
}

const JUMP_MM = 4_000;
const WHOLE_TURN = 2 * Math.PI * 1_000;

/** The short way round, in milliradians. */
export function turn(from: number, to: number): number {
  const far = (((to - from) % WHOLE_TURN) + WHOLE_TURN) % WHOLE_TURN;
  return far > WHOLE_TURN / 2 ? far - WHOLE_TURN : far;
}

/** The truck whose place is nearest to a point, within reach. */
export function truckAt(trucks: readonly TruckNow[], at: Point, reach: number): string | null {
  let found: string | null = null;
  let least = reach;
  for (const { robot_id, at: place } of trucks) {
    if (place === null) continue;
    const far = Math.hypot(place.x - at.x, place.y - at.y);
    if (far <= least) [found, least] = [robot_id, far];
  }
  return found;
}

/** A length of map that reads well, for the scale below the picture: 1, 2 or 5 times a power of ten metres. */
export function scaleBar(scale: number, widest: number): { readonly metres: number; readonly pixels: number } {
  const most = widest / scale / 1_000;
  const power = 10 ** Math.floor(Math.log10(most));
  const metres = [5, 2, 1].map((one) => one * power).find((one) => one <= most) ?? power;
  return { metres, pixels: metres * 1_000 * scale };
}

/** The place on the map that is nearest to a point, as actions of people name it: an edge, and how far along it. */
export function nearestPlace(
  edges: readonly Pick<MapEdge, "key" | "points" | "s">[],
  at: Point,
): { readonly edgeKey: string; readonly sM: number } | null {
  let best: { readonly edgeKey: string; readonly s: number; readonly away: number } | null = null;
  for (const { key, points, s } of edges) {
    for (let leg = 1; leg < points.length; leg++) {
      const [ax, ay] = points[leg - 1] as readonly [number, number];
      const [bx, by] = points[leg] as readonly [number, number];
      const square = (bx - ax) ** 2 + (by - ay) ** 2;
      const along = square === 0 ? 0 : ((at.x - ax) * (bx - ax) + (at.y - ay) * (by - ay)) / square;
      const part = Math.min(1, Math.max(0, along));
      const away = Math.hypot(ax + part * (bx - ax) - at.x, ay + part * (by - ay) - at.y);
      const begin = s[leg - 1] ?? 0;
      if (best === null || away < best.away) {
        best = { edgeKey: key, s: begin + part * ((s[leg] ?? begin) - begin), away };
      }
    }
  }
  return best === null ? null : { edgeKey: best.edgeKey, sM: Math.round(best.s) / 1000 };
}
