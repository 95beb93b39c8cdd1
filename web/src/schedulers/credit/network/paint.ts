/** How a network is drawn: lines as wide as they are used, participants coloured by where they stand, lights above.
 *
 * Shape says what somebody is, colour and filling where they stand: who is owed is full, who owes is hollow.
 */

import type { Palette } from "../../../canvas/palette";
import type { Places } from "./layout";
import type { Light } from "./lit";
import type { Chosen, LineEnds, Network } from "./model";
import { chosenLines, lineKey, nameOf, standings, usedShare } from "./model";

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
  readonly places: Places;
  readonly size: Size;
  readonly chosen: Chosen;
}

const MARGIN = 26;
const BEND = 0.12;
const FULL = 0.995;
const NAMES_MOST = 14;

/** The pixel at which a participant stands. */
export function spotOf(places: Places, { width, height }: Size, id: string): Point {
  const { x, y } = places.get(id) ?? { x: 0.5, y: 0.5 };
  return { x: MARGIN + x * (width - 2 * MARGIN), y: MARGIN + y * (height - 2 * MARGIN) };
}

/** The participant under a pixel, or the nearest within reach; null where nobody is. */
export function nodeAt(scene: Pick<Scene, "network" | "places" | "size">, x: number, y: number): string | null {
  let [found, nearest] = [null as string | null, 16];
  for (const id of scene.network.nodes.keys()) {
    const spot = spotOf(scene.places, scene.size, id);
    const distance = Math.hypot(spot.x - x, spot.y - y);
    if (distance < nearest) [found, nearest] = [id, distance];
  }
  return found;
}

/** The middle of the bend of a line: each bends to its left, so that two between the same two lie apart. */
function bend(from: Point, to: Point): Point {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  return { x: (from.x + to.x) / 2 + dy * BEND, y: (from.y + to.y) / 2 - dx * BEND };
}

export function paintNetwork(context: CanvasRenderingContext2D, scene: Scene, colours: Palette): void {
  const { network, size, chosen } = scene;
  context.clearRect(0, 0, size.width, size.height);
  const marked = chosenLines(network, chosen);
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
      curve(context, scene, { from: link.source, to: link.target });
    }
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
  paintNodes(context, scene, marked, colours);
}

function curve(context: CanvasRenderingContext2D, { places, size }: Scene, { from, to }: LineEnds): void {
  const [start, end] = [spotOf(places, size, from), spotOf(places, size, to)];
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
  const { network, places, size, chosen } = scene;
  const near = new Set(
    [...marked].flatMap((key) => {
      const link = network.links.get(key);
      return link === undefined ? [] : [link.source, link.target];
    }),
  );
  if (chosen?.kind === "node") near.add(chosen.id);
  const stands = standings(network);
  for (const [id, node] of network.nodes) {
    const at = stands.get(id) ?? 0;
    const { x, y } = spotOf(places, size, id);
    const radius = radiusOf(network, at);
    const colour = mixed(colours["line-strong"], at < 0 ? colours.bad : colours.accent, strength(at));
    context.globalAlpha = chosen === null || near.has(id) ? 1 : 0.35;
    shapePath(context, node.type, { x, y }, radius);
    context.fillStyle = at < 0 ? mixed(colours.surface, colour, 0.25) : colour;
    context.fill();
    context.strokeStyle = at < 0 ? colour : colours.surface;
    context.lineWidth = at < 0 ? 2.5 : 1;
    context.stroke();
    if (chosen?.kind === "node" && chosen.id === id) {
      shapePath(context, node.type, { x, y }, radius + 4);
      context.strokeStyle = colours.accent;
      context.lineWidth = 2;
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  const few = network.nodes.size <= NAMES_MOST;
  const named = few
    ? [...network.nodes.keys()]
    : near.size <= 2 * NAMES_MOST
      ? [...near]
      : chosen?.kind === "node"
        ? [chosen.id]
        : [];
  for (const id of named) nameTag(context, scene, id, radiusOf(network, stands.get(id) ?? 0), colours);
}

function nameTag(context: CanvasRenderingContext2D, scene: Scene, id: string, radius: number, colours: Palette): void {
  const { x, y } = spotOf(scene.places, scene.size, id);
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

function radiusOf(network: Network, standing: number): number {
  const least = network.nodes.size <= NAMES_MOST ? 9 : network.nodes.size <= 200 ? 4.5 : 3;
  return least * (1 + 1.1 * Math.sqrt(Math.abs(standing)));
}

/** Small positions must be told from none, so that the colour comes quickly and then grows slowly. */
function strength(standing: number): number {
  return standing === 0 ? 0 : 0.35 + 0.65 * Math.sqrt(Math.abs(standing));
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

/** Paint what shines at `now`; returns whether anything still does. Without motion nothing travels. */
export function paintLights(
  context: CanvasRenderingContext2D,
  scene: Scene,
  lights: readonly Light[],
  now: number,
  colours: Palette,
  still: boolean,
): boolean {
  context.clearRect(0, 0, scene.size.width, scene.size.height);
  let left = false;
  for (const light of lights) {
    if (light.until <= now) continue;
    left = true;
    if (light.since > now) continue;
    const along = (now - light.since) / (light.until - light.since);
    const colour = light.glow === "payment" ? colours.accent : light.glow === "clearing" ? colours.brass : colours.bad;
    const way = wayOf(scene, light);
    context.strokeStyle = colour;
    context.globalAlpha = still ? 0.8 : 0.85 * (1 - along);
    context.lineWidth = light.glow === "clearing" ? 3.5 : 2.5;
    context.setLineDash(light.glow === "refusal" ? [5, 4] : []);
    context.beginPath();
    context.moveTo(way.start.x, way.start.y);
    context.quadraticCurveTo(way.middle.x, way.middle.y, way.end.x, way.end.y);
    context.stroke();
    if (light.glow === "payment" && !still) {
      const { x, y } = onCurve(way, along);
      context.globalAlpha = 1;
      context.fillStyle = colour;
      context.beginPath();
      context.arc(x, y, 3.5, 0, 2 * Math.PI);
      context.fill();
    }
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
  return left;
}

interface Way {
  readonly start: Point;
  readonly middle: Point;
  readonly end: Point;
}

/** The way between two, over the line that joins them: value goes against a line, or along it when it is paid back. */
function wayOf({ network, places, size }: Scene, { from, to, glow }: Light): Way {
  const [start, end] = [spotOf(places, size, from), spotOf(places, size, to)];
  const [there, back] = [lineKey({ from, to }), lineKey({ from: to, to: from })].map((key) => network.links.has(key));
  const along = there && (glow === "clearing" || !back);
  return { start, middle: along ? bend(start, end) : bend(end, start), end };
}

export function onCurve({ start, middle, end }: Way, along: number): Point {
  const [a, b, c] = [(1 - along) ** 2, 2 * along * (1 - along), along ** 2];
  return { x: a * start.x + b * middle.x + c * end.x, y: a * start.y + b * middle.y + c * end.y };
}

/** A colour between two that are written as `rgb(…)`. */
export function mixed(one: string, other: string, part: number): string {
  const [from, to] = [one, other].map((colour) => (colour.match(/[\d.]+/g) ?? []).map(Number));
  const channel = (place: number) =>
    Math.round((from?.[place] ?? 0) + part * ((to?.[place] ?? 0) - (from?.[place] ?? 0)));
  return `rgb(${channel(0)}, ${channel(1)}, ${channel(2)})`;
}
