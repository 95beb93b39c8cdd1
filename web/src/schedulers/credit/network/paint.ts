/** Painting of a network: line width by use, participants by type and position, highlights on top.
 *
 * The shape is the type of a participant; colour and filling are its position: creditors are solid, debtors hollow.
 */

import type { Palette } from "../../../canvas/palette";
import type { Highlight } from "./highlights";
import type { Positions } from "./layout";
import type { LineEnds, Network, Selection } from "./model";
import { lineKey, nameOf, relativePositions, selectedLines, usedShare } from "./model";

export interface Size {
  readonly width: number;
  readonly height: number;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Scene {
  readonly network: Network;
  readonly positions: Positions;
  readonly size: Size;
  readonly chosen: Selection;
}

const MARGIN = 26;
const BEND = 0.12;
const FULL = 0.995;
const MAX_NAMES = 14;

/** The pixel of a participant. */
export function pixelOf(positions: Positions, { width, height }: Size, id: string): Point {
  const { x, y } = positions.get(id) ?? { x: 0.5, y: 0.5 };
  return { x: MARGIN + x * (width - 2 * MARGIN), y: MARGIN + y * (height - 2 * MARGIN) };
}

/** The participant nearest to a pixel within 16 pixels, or `null`. */
export function nodeAt(scene: Pick<Scene, "network" | "positions" | "size">, x: number, y: number): string | null {
  let [hit, nearest] = [null as string | null, 16];
  for (const id of scene.network.nodes.keys()) {
    const pixel = pixelOf(scene.positions, scene.size, id);
    const distance = Math.hypot(pixel.x - x, pixel.y - y);
    if (distance < nearest) [hit, nearest] = [id, distance];
  }
  return hit;
}

/** The control point of a line; each line bends to its left, so that opposite lines do not overlap. */
function bend(from: Point, to: Point): Point {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  return { x: (from.x + to.x) / 2 + dy * BEND, y: (from.y + to.y) / 2 - dx * BEND };
}

export function paintNetwork(context: CanvasRenderingContext2D, scene: Scene, colours: Palette): void {
  const { network, size, chosen } = scene;
  context.clearRect(0, 0, size.width, size.height);
  const marked = selectedLines(network, chosen);
  const full = mixed(colours.ink, colours.bad, 0.75);
  for (const strong of [false, true]) {
    for (const [key, link] of network.links) {
      if (marked.has(key) !== strong) continue;
      const use = usedShare(link);
      const colour = use >= FULL ? full : use > 0 ? colours.ink : colours["line-strong"];
      context.globalAlpha = strong ? 0.95 : chosen === null ? 0.14 + 0.5 * use : 0.07 + 0.1 * use;
      context.strokeStyle = strong && chosen?.kind === "line" ? colours.accent : colour;
      context.lineWidth = (strong ? 1 : 0.5) + 3.2 * use + (strong && chosen?.kind === "line" ? 1.5 : 0);
      context.setLineDash(link.status === "active" ? [] : [3, 3]);
      strokeLine(context, scene, { from: link.source, to: link.target });
    }
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
  paintNodes(context, scene, marked, colours);
}

function strokeLine(context: CanvasRenderingContext2D, { positions, size }: Scene, { from, to }: LineEnds): void {
  const [start, end] = [pixelOf(positions, size, from), pixelOf(positions, size, to)];
  const middle = bend(start, end);
  context.beginPath();
  context.moveTo(start.x, start.y);
  context.quadraticCurveTo(middle.x, middle.y, end.x, end.y);
  context.stroke();
}

function paintNodes(
  context: CanvasRenderingContext2D,
  scene: Scene,
  marked: ReadonlySet<string>,
  colours: Palette,
): void {
  const { network, positions, size, chosen } = scene;
  const near = new Set(
    [...marked].flatMap((key) => {
      const link = network.links.get(key);
      return link === undefined ? [] : [link.source, link.target];
    }),
  );
  if (chosen?.kind === "node") near.add(chosen.id);
  const relative = relativePositions(network);
  for (const [id, node] of network.nodes) {
    const position = relative.get(id) ?? 0;
    const { x, y } = pixelOf(positions, size, id);
    const radius = radiusOf(network, position);
    const colour = mixed(colours["line-strong"], position < 0 ? colours.bad : colours.accent, strength(position));
    context.globalAlpha = chosen === null || near.has(id) ? 1 : 0.35;
    shapePath(context, node.type, { x, y }, radius);
    context.fillStyle = position < 0 ? mixed(colours.surface, colour, 0.25) : colour;
    context.fill();
    context.strokeStyle = position < 0 ? colour : colours.surface;
    context.lineWidth = position < 0 ? 2.5 : 1;
    context.stroke();
    if (chosen?.kind === "node" && chosen.id === id) {
      shapePath(context, node.type, { x, y }, radius + 4);
      context.strokeStyle = colours.accent;
      context.lineWidth = 2;
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  const few = network.nodes.size <= MAX_NAMES;
  const named = few
    ? [...network.nodes.keys()]
    : near.size <= 2 * MAX_NAMES
      ? [...near]
      : chosen?.kind === "node"
        ? [chosen.id]
        : [];
  for (const id of named) nameTag(context, scene, id, radiusOf(network, relative.get(id) ?? 0), colours);
}

function nameTag(context: CanvasRenderingContext2D, scene: Scene, id: string, radius: number, colours: Palette): void {
  const { x, y } = pixelOf(scene.positions, scene.size, id);
  const chosen = scene.chosen?.kind === "node" && scene.chosen.id === id;
  context.font = `${chosen ? "600 13px" : "12px"} ${colours.font}`;
  context.textBaseline = "middle";
  const name = nameOf(scene.network, id);
  const width = context.measureText(name).width;
  const right = x + radius + 5 + width < scene.size.width;
  const left = right ? x + radius + 5 : x - radius - 5 - width;
  context.globalAlpha = 0.85;
  context.fillStyle = colours.surface;
  context.fillRect(left - 2, y - 8, width + 4, 16);
  context.globalAlpha = 1;
  context.fillStyle = colours.ink;
  context.textAlign = "left";
  context.fillText(name, left, y);
}

function radiusOf(network: Network, position: number): number {
  const base = network.nodes.size <= MAX_NAMES ? 9 : network.nodes.size <= 200 ? 4.5 : 3;
  return base * (1 + 1.1 * Math.sqrt(Math.abs(position)));
}

/** Colour strength: a minimum for small positions, so that they differ from zero. */
function strength(position: number): number {
  return position === 0 ? 0 : 0.35 + 0.65 * Math.sqrt(Math.abs(position));
}

function shapePath(context: CanvasRenderingContext2D, type: string, { x, y }: Point, radius: number): void {
  context.beginPath();
  if (type === "business") context.roundRect(x - radius, y - radius, 2 * radius, 2 * radius, radius / 3);
  else if (type === "hub") {
    context.moveTo(x, y - 1.3 * radius);
    context.lineTo(x + 1.3 * radius, y);
    context.lineTo(x, y + 1.3 * radius);
    context.lineTo(x - 1.3 * radius, y);
    context.closePath();
  } else context.arc(x, y, radius, 0, 2 * Math.PI);
}

/** Paint the highlights at time `now`; returns whether any is still active. With reduced motion nothing moves. */
export function paintHighlights(
  context: CanvasRenderingContext2D,
  scene: Scene,
  highlights: readonly Highlight[],
  now: number,
  colours: Palette,
  reducedMotion: boolean,
): boolean {
  context.clearRect(0, 0, scene.size.width, scene.size.height);
  let isActive = false;
  for (const highlight of highlights) {
    if (highlight.until <= now) continue;
    isActive = true;
    if (highlight.since > now) continue;
    const progress = (now - highlight.since) / (highlight.until - highlight.since);
    const colour =
      highlight.kind === "payment" ? colours.accent : highlight.kind === "clearing" ? colours.brass : colours.bad;
    const curve = curveOf(scene, highlight);
    context.strokeStyle = colour;
    context.globalAlpha = reducedMotion ? 0.8 : 0.85 * (1 - progress);
    context.lineWidth = highlight.kind === "clearing" ? 3.5 : 2.5;
    context.setLineDash(highlight.kind === "refusal" ? [5, 4] : []);
    context.beginPath();
    context.moveTo(curve.start.x, curve.start.y);
    context.quadraticCurveTo(curve.middle.x, curve.middle.y, curve.end.x, curve.end.y);
    context.stroke();
    if (highlight.kind === "payment" && !reducedMotion) {
      const { x, y } = pointOn(curve, progress);
      context.globalAlpha = 1;
      context.fillStyle = colour;
      context.beginPath();
      context.arc(x, y, 3.5, 0, 2 * Math.PI);
      context.fill();
    }
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
  return isActive;
}

interface Curve {
  readonly start: Point;
  readonly middle: Point;
  readonly end: Point;
}

/** The curve of a highlight over its line. Payments go against the direction of a line, clearings along it. */
function curveOf({ network, positions, size }: Scene, { from, to, kind }: Highlight): Curve {
  const [start, end] = [pixelOf(positions, size, from), pixelOf(positions, size, to)];
  const [forward, backward] = [lineKey({ from, to }), lineKey({ from: to, to: from })].map((key) =>
    network.links.has(key),
  );
  const isForward = forward && (kind === "clearing" || !backward);
  return { start, middle: isForward ? bend(start, end) : bend(end, start), end };
}

export function pointOn({ start, middle, end }: Curve, t: number): Point {
  const [a, b, c] = [(1 - t) ** 2, 2 * t * (1 - t), t ** 2];
  return { x: a * start.x + b * middle.x + c * end.x, y: a * start.y + b * middle.y + c * end.y };
}

/** Mix two `rgb(…)` colours. */
export function mixed(first: string, second: string, part: number): string {
  const [from, to] = [first, second].map((colour) => (colour.match(/[\d.]+/g) ?? []).map(Number));
  const channel = (index: number) =>
    Math.round((from?.[index] ?? 0) + part * ((to?.[index] ?? 0) - (from?.[index] ?? 0)));
  return `rgb(${channel(0)}, ${channel(1)}, ${channel(2)})`;
}
