/** Painting of the map and of the resources that trucks hold.
 *
 * Colour is never the only sign: occupied bands are wide, granted ones narrower, requested ones dashed; waiting trucks
 * have an arrow to their blocker and a text in the table.
 */

import type { MapEdge, MapView, TruckNow } from "../../api/types";
import type { Palette } from "../../canvas/palette";
import type { Camera, Mark, Point, Size } from "./geometry";
import { freeSides, placeNames, SOUTH, scaleBar, stretch, toScreen } from "./geometry";

export interface View {
  readonly map: MapView;
  readonly camera: Camera;
  readonly size: Size;
}

// From this scale on all names with free space are shown; below it, names are shown only if most of them fit.
const NAMES_FROM_SCALE = 0.012;
const MIN_FITTING_NAMES = 0.75;
const MAX_NAMES = 200;

export type Paint = CanvasRenderingContext2D;

export function paintGround(paint: Paint, view: View, colours: Palette): void {
  const { map, size } = view;
  // Opaque, so that the layers above need no blending with the page.
  paint.fillStyle = colours.sunken;
  paint.fillRect(0, 0, size.width, size.height);
  paint.lineCap = "round";
  paint.lineJoin = "round";
  sections(paint, view, colours);
  paint.strokeStyle = colours["line-strong"];
  paint.lineWidth = 1.25;
  paint.beginPath();
  for (const edge of map.edges) trace(paint, view, edge.points.map(asPoint));
  paint.stroke();
  nodes(paint, view, colours);
  scale(paint, view, colours);
}

function sections(paint: Paint, view: View, colours: Palette): void {
  paint.strokeStyle = colours["warn-wash"];
  paint.lineWidth = Math.max(8, 1_600 * view.camera.scale);
  paint.beginPath();
  for (const { stretches } of view.map.sections) {
    for (const [edge, from, to] of stretches) along(paint, view, edge, from, to);
  }
  paint.stroke();
}

function nodes(paint: Paint, view: View, colours: Palette): void {
  const free = freeSides(view.map);
  const marks: Mark[] = [];
  for (const [number, node] of view.map.nodes.entries()) {
    const { x, y } = toScreen(view.camera, view.size, node);
    if (x < -20 || y < -20 || x > view.size.width + 20 || y > view.size.height + 20) continue;
    paint.fillStyle = node.station ? colours.accent : node.parking ? colours.brass : colours["line-strong"];
    paint.beginPath();
    if (node.station) paint.rect(x - 4, y - 4, 8, 8);
    else paint.arc(x, y, node.parking ? 4.5 : 2, 0, 2 * Math.PI);
    paint.fill();
    if (node.station || node.parking) marks.push({ x, y, name: node.id, side: free[number] ?? SOUTH });
  }
  names(paint, view, marks, colours);
}

/** Names of stations and parking, without overlaps. */
function names(paint: Paint, view: View, marks: readonly Mark[], colours: Palette): void {
  const near = view.camera.scale >= NAMES_FROM_SCALE;
  if (!near && marks.length > MAX_NAMES) return;
  paint.font = `11px ${colours.font}`;
  paint.fillStyle = colours["ink-quiet"];
  paint.textAlign = "left";
  paint.textBaseline = "top";
  const boxes = placeNames(marks, (name) => paint.measureText(name).width);
  const placed = boxes.filter((box) => box !== null).length;
  if (near || placed >= MIN_FITTING_NAMES * marks.length) {
    for (const [number, box] of boxes.entries()) {
      if (box !== null) paint.fillText(marks[number]?.name ?? "", box.left, box.top);
    }
  }
  paint.textBaseline = "alphabetic";
}

function scale(paint: Paint, { camera, size }: View, colours: Palette): void {
  const { metres, pixels } = scaleBar(camera.scale, 140);
  const [x, y] = [16, size.height - 14];
  paint.strokeStyle = colours["ink-quiet"];
  paint.lineWidth = 1.5;
  paint.beginPath();
  paint.moveTo(x, y - 4);
  paint.lineTo(x, y);
  paint.lineTo(x + pixels, y);
  paint.lineTo(x + pixels, y - 4);
  paint.stroke();
  paint.fillStyle = colours["ink-quiet"];
  paint.textAlign = "left";
  paint.font = `11px ${colours.font}`;
  paint.fillText(`${metres} m`, x + pixels + 6, y);
}

/** Paint what changes with a moment but not with each frame. */
export function paintMoment(paint: Paint, view: View, trucks: readonly TruckNow[], colours: Palette): void {
  paint.lineCap = "butt";
  paint.lineJoin = "round";
  for (const truck of trucks) zones(paint, view, truck, colours);
  for (const truck of trucks) bands(paint, view, truck, colours);
  for (const truck of trucks) stopLine(paint, view, truck, colours);
}

function zones(paint: Paint, view: View, { zones: held }: TruckNow, colours: Palette): void {
  paint.fillStyle = colours["accent-wash"];
  for (const number of held) {
    const node = view.map.nodes[number];
    if (node === undefined || node.radius === 0) continue;
    const { x, y } = toScreen(view.camera, view.size, node);
    paint.beginPath();
    paint.arc(x, y, node.radius * view.camera.scale, 0, 2 * Math.PI);
    paint.fill();
  }
}

function bands(
  paint: Paint,
  view: View,
  { bands: { requested, granted, occupied } }: TruckNow,
  colours: Palette,
): void {
  const kinds = [
    { stretches: requested, width: 2, colour: colours["ink-quiet"], dash: [4, 5] },
    { stretches: granted, width: 5, colour: colours.accent, dash: [] },
    { stretches: occupied, width: 9, colour: colours["line-strong"], dash: [] },
  ];
  for (const { stretches, width, colour, dash } of kinds) {
    paint.setLineDash(dash);
    paint.strokeStyle = colour;
    paint.lineWidth = width;
    paint.beginPath();
    for (const [edge, from, to] of stretches) along(paint, view, edge, from, to);
    paint.stroke();
  }
  paint.setLineDash([]);
}

function stopLine(paint: Paint, view: View, { stop, refuge }: TruckNow, colours: Palette): void {
  if (stop !== null) {
    const { x, y } = toScreen(view.camera, view.size, stop);
    const half = Math.max(7, 700 * view.camera.scale);
    const yaw = stop.yaw / 1_000;
    paint.strokeStyle = colours.bad;
    paint.lineWidth = 2.5;
    paint.beginPath();
    paint.moveTo(x - Math.sin(yaw) * half, y - Math.cos(yaw) * half);
    paint.lineTo(x + Math.sin(yaw) * half, y + Math.cos(yaw) * half);
    paint.stroke();
  }
  if (refuge !== null) {
    const { x, y } = toScreen(view.camera, view.size, refuge);
    paint.strokeStyle = colours.accent;
    paint.lineWidth = 1.5;
    paint.beginPath();
    paint.arc(x, y, 4, 0, 2 * Math.PI);
    paint.stroke();
  }
}

function along(paint: Paint, view: View, number: number, from: number, to: number): void {
  const edge: MapEdge | undefined = view.map.edges[number];
  if (edge !== undefined) trace(paint, view, stretch(edge, from, to));
}

function trace(paint: Paint, { camera, size }: View, points: readonly Point[]): void {
  points.forEach((point, number) => {
    const { x, y } = toScreen(camera, size, point);
    if (number === 0) paint.moveTo(x, y);
    else paint.lineTo(x, y);
  });
}

function asPoint([x, y]: readonly [number, number]): Point {
  return { x, y };
}
