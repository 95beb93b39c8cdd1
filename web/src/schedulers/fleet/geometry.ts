/** Geometry of the map in millimetres and pixels: camera, edges, names, and interpolation between reports. */

import type { MapEdge, MapView, PointView, TruckNow } from "../../api/types";

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The visible part of the map: its centre, and `scale` in pixels per millimetre. */
export interface Camera extends Point {
  readonly scale: number;
}

const MARGIN_PX = 32;
const MAX_SCALE = 0.4;
/** The approximate maximum width of a letter. */
const LETTER_PX = 7;
/** The largest share of the width that is reserved for names. */
const MAX_NAME_SHARE = 1 / 4;

type Extent = Pick<MapView, "low" | "high" | "nodes" | "profiles">;

/** The size of a map including trucks at its edges, in millimetres. */
export function extentOf({ low, high, profiles }: Extent): Size {
  const reaches = profiles.map(({ envelope: { front, rear, side } }) => Math.hypot(Math.max(front, rear), side));
  const reach = Math.max(500, ...reaches);
  return { width: high[0] - low[0] + 2 * reach, height: high[1] - low[1] + 2 * reach };
}

/** A camera that shows the whole map, including trucks and names at its edges. */
export function fitCamera(map: Extent, { width, height }: Size): Camera {
  const [{ low, high }, { width: across, height: up }] = [map, extentOf(map)];
  const named = map.nodes.filter(({ station, parking }) => station || parking);
  const letters = Math.max(0, ...named.map(({ id }) => id.length));
  // Half of a name extends beyond its node.
  const nameSpace = Math.min(Math.max(2 * MARGIN_PX, letters * LETTER_PX), width * MAX_NAME_SHARE);
  const within = Math.min((width - nameSpace) / (high[0] - low[0]), (height - 2 * MARGIN_PX) / (high[1] - low[1]));
  const scale = Math.min(width / across, height / up, within, MAX_SCALE);
  return { x: (low[0] + high[0]) / 2, y: (low[1] + high[1]) / 2, scale: Math.max(scale, 1e-4) };
}

/** Map to screen; the y axis points north on the map and down on the screen. */
export function toScreen({ x, y, scale }: Camera, { width, height }: Size, at: Point): Point {
  return { x: width / 2 + (at.x - x) * scale, y: height / 2 - (at.y - y) * scale };
}

export function toMap({ x, y, scale }: Camera, { width, height }: Size, at: Point): Point {
  return { x: x + (at.x - width / 2) / scale, y: y - (at.y - height / 2) / scale };
}

/** Zoom around a point of the screen. */
export function zoom(camera: Camera, size: Size, at: Point, factor: number): Camera {
  const scale = Math.min(Math.max(camera.scale * factor, 1e-4), MAX_SCALE);
  const under = toMap(camera, size, at);
  const moved = toMap({ ...camera, scale }, size, at);
  return { scale, x: camera.x + under.x - moved.x, y: camera.y + under.y - moved.y };
}

export function pan(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y + dy / camera.scale };
}

// Names are wide: a lane at a larger angle from the vertical does not cross them.
const NAME_ANGLE = Math.PI / 3;
/** Straight down on the map. */
export const SOUTH: Point = { x: 0, y: -1 };

/** For every node a unit vector in a direction without lanes: south, else north, else the middle of the widest gap
 * between two lanes. */
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
  const sorted = lanes.sort((a, b) => a - b);
  const free = [-Math.PI / 2, Math.PI / 2].find((side) =>
    sorted.every((lane) => angleBetween(lane, side) > NAME_ANGLE),
  );
  if (free !== undefined) return { x: 0, y: Math.sign(free) };
  let [middle, widest] = [0, 0];
  for (const [index, from] of sorted.entries()) {
    const next = sorted[index + 1] ?? (sorted[0] ?? 0) + 2 * Math.PI;
    if (next - from > widest) [middle, widest] = [(from + next) / 2, next - from];
  }
  return { x: Math.cos(middle), y: Math.sin(middle) };
}

function angleBetween(a: number, b: number): number {
  const difference = Math.abs(a - b) % (2 * Math.PI);
  return Math.min(difference, 2 * Math.PI - difference);
}

/** A named mark on the screen, and its side without lanes (north up). */
export interface Mark extends Point {
  readonly name: string;
  readonly side: Point;
}

/** The box of a name on the screen. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

const NAME_HEIGHT_PX = 12;
/** Distance from the centre of a mark to its edge and to its name. */
const MARK_PX = 5;
const NAME_DISTANCE_PX = 9;
const SIDES = [SOUTH, { x: 0, y: 1 }, { x: 1, y: 0 }, { x: -1, y: 0 }] as const;
/** A side component above this value aligns the name to that side instead of centring it. */
const ALIGN_THRESHOLD = 0.35;

/** The box of each name: on its free side, else on another side, or `null` if every side would cover a name or a mark. */
export function placeNames(marks: readonly Mark[], textWidth: (name: string) => number): readonly (Box | null)[] {
  const occupied: Box[] = marks.map(({ x, y }) => boxAt(x - MARK_PX, y - MARK_PX, 2 * MARK_PX, 2 * MARK_PX));
  return marks.map((mark, index) => {
    const width = textWidth(mark.name);
    const boxes = [mark.side, ...SIDES].map((side) => nameBox(mark, side, width));
    const free = boxes.find((box) => occupied.every((other, owner) => owner === index || !intersect(box, other)));
    if (free !== undefined) occupied.push(free);
    return free ?? null;
  });
}

function nameBox({ x, y }: Point, side: Point, width: number): Box {
  const [anchorX, anchorY] = [x + side.x * NAME_DISTANCE_PX, y - side.y * NAME_DISTANCE_PX];
  const left = side.x > ALIGN_THRESHOLD ? anchorX : side.x < -ALIGN_THRESHOLD ? anchorX - width : anchorX - width / 2;
  const top =
    side.y > ALIGN_THRESHOLD
      ? anchorY - NAME_HEIGHT_PX
      : side.y < -ALIGN_THRESHOLD
        ? anchorY
        : anchorY - NAME_HEIGHT_PX / 2;
  return boxAt(left, top, width, NAME_HEIGHT_PX);
}

function boxAt(left: number, top: number, width: number, height: number): Box {
  return { left, top, right: left + width, bottom: top + height };
}

function intersect(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** The polyline of an edge between two positions on it. */
export function stretch({ points, s }: Pick<MapEdge, "points" | "s">, from: number, to: number): Point[] {
  const inner = points.flatMap(([x, y], index) => {
    const at = s[index] ?? 0;
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

/** The interpolated position between two reports; a jump is not interpolated. */
export function between(before: PointView | null, after: PointView | null, part: number): PointView | null {
  if (before === null || after === null) return after;
  const distance = Math.hypot(after.x - before.x, after.y - before.y);
  if (distance > JUMP_MM) return after;
  const share = Math.min(Math.max(part, 0), 1);
  return {
    x: before.x + (after.x - before.x) * share,
    y: before.y + (after.y - before.y) * share,
    yaw: before.yaw + shortTurn(before.yaw, after.yaw) * share,
  };
}

const JUMP_MM = 4_000;
const FULL_TURN = 2 * Math.PI * 1_000;

/** The shortest turn between two angles, in milliradians. */
export function shortTurn(from: number, to: number): number {
  const difference = (((to - from) % FULL_TURN) + FULL_TURN) % FULL_TURN;
  return difference > FULL_TURN / 2 ? difference - FULL_TURN : difference;
}

/** The truck nearest to a point within `reach` millimetres, or `null`. */
export function truckAt(trucks: readonly TruckNow[], at: Point, reach: number): string | null {
  let nearest: string | null = null;
  let minDistance = reach;
  for (const { robot_id, at: position } of trucks) {
    if (position === null) continue;
    const distance = Math.hypot(position.x - at.x, position.y - at.y);
    if (distance <= minDistance) [nearest, minDistance] = [robot_id, distance];
  }
  return nearest;
}

/** A round length for the scale bar: 1, 2 or 5 times a power of ten metres, at most `maxPixels` wide. */
export function scaleBar(scale: number, maxPixels: number): { readonly metres: number; readonly pixels: number } {
  const maxMetres = maxPixels / scale / 1_000;
  const power = 10 ** Math.floor(Math.log10(maxMetres));
  const metres = [5, 2, 1].map((factor) => factor * power).find((length) => length <= maxMetres) ?? power;
  return { metres, pixels: metres * 1_000 * scale };
}

/** The map position nearest to a point, as operator actions name it: an edge and the metres along it. */
export function nearestPosition(
  edges: readonly Pick<MapEdge, "key" | "points" | "s">[],
  at: Point,
): { readonly edgeKey: string; readonly sM: number } | null {
  let best: { readonly edgeKey: string; readonly s: number; readonly distance: number } | null = null;
  for (const { key, points, s } of edges) {
    for (let leg = 1; leg < points.length; leg++) {
      const [ax, ay] = points[leg - 1] as readonly [number, number];
      const [bx, by] = points[leg] as readonly [number, number];
      const square = (bx - ax) ** 2 + (by - ay) ** 2;
      const along = square === 0 ? 0 : ((at.x - ax) * (bx - ax) + (at.y - ay) * (by - ay)) / square;
      const part = Math.min(1, Math.max(0, along));
      const distance = Math.hypot(ax + part * (bx - ax) - at.x, ay + part * (by - ay) - at.y);
      const begin = s[leg - 1] ?? 0;
      if (best === null || distance < best.distance) {
        best = { edgeKey: key, s: begin + part * ((s[leg] ?? begin) - begin), distance };
      }
    }
  }
  return best === null ? null : { edgeKey: best.edgeKey, sM: Math.round(best.s) / 1000 };
}
