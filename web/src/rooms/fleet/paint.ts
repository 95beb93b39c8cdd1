/** The map and its trucks on a canvas: the ground is drawn when the view changes, the trucks with every frame.
 *
 * Colours never stand alone: what is occupied is wide, granted narrower, requested dashed; what waits is hatched by its
 * arrow and told in words beside the picture.
 */

import type { MapEdge, MapView, Outline, PointView, ProfileView, TruckNow } from "../../api/types";
import type { Palette } from "../../canvas/palette";
import type { Camera, Point, Size } from "./geometry";
import { onScreen, scaleBar, stretch } from "./geometry";

export interface View {
  readonly map: MapView;
  readonly camera: Camera;
  readonly size: Size;
}

/** A truck as it is drawn: where it is at this frame. */
export interface Shown {
  readonly truck: TruckNow;
  readonly at: PointView;
}

const NAMES_FROM_SCALE = 0.012;
const ARROW_PX = 7;

type Paint = CanvasRenderingContext2D;

export function paintGround(paint: Paint, view: View, colours: Palette): void {
  const { map, size } = view;
  paint.clearRect(0, 0, size.width, size.height);
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
  const named = view.camera.scale >= NAMES_FROM_SCALE;
  paint.font = `11px ${colours.font}`;
  paint.textAlign = "center";
  for (const node of view.map.nodes) {
    const { x, y } = onScreen(view.camera, view.size, node);
    if (x < -20 || y < -20 || x > view.size.width + 20 || y > view.size.height + 20) continue;
    paint.fillStyle = node.station ? colours.accent : node.parking ? colours.brass : colours["line-strong"];
    paint.beginPath();
    if (node.station) paint.rect(x - 4, y - 4, 8, 8);
    else paint.arc(x, y, node.parking ? 4.5 : 2, 0, 2 * Math.PI);
    paint.fill();
    if (named && (node.station || node.parking)) {
      paint.fillStyle = colours["ink-quiet"];
      paint.fillText(node.id, x, y + 17);
    }
  }
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

/** Everything that moves or changes with a tick. */
export function paintTrucks(
  paint: Paint,
  view: View,
  shown: readonly Shown[],
  chosen: string | null,
  colours: Palette,
): void {
  paint.clearRect(0, 0, view.size.width, view.size.height);
  paint.lineCap = "butt";
  paint.lineJoin = "round";
  const profiles = new Map(view.map.profiles.map((one) => [one.profile_id, one]));
  for (const one of shown) zones(paint, view, one.truck, colours);
  for (const one of shown) bands(paint, view, one.truck, colours);
  for (const one of shown) stopLine(paint, view, one.truck, colours);
  for (const one of shown)
    body(paint, view, one, profiles.get(one.truck.profile_id), one.truck.robot_id === chosen, colours);
  arrows(paint, view, shown, colours);
  names(paint, view, shown, chosen, colours);
}

function zones(paint: Paint, view: View, { zones: held }: TruckNow, colours: Palette): void {
  paint.fillStyle = colours["accent-wash"];
  for (const number of held) {
    const node = view.map.nodes[number];
    if (node === undefined || node.radius === 0) continue;
    const { x, y } = onScreen(view.camera, view.size, node);
    paint.beginPath();
    paint.arc(x, y, node.radius * view.camera.scale, 0, 2 * Math.PI);
    paint.fill();
  }
}

function bands(paint: Paint, view: View, { bands: told }: TruckNow, colours: Palette): void {
  const kinds = [
    { stretches: told.requested, width: 2, colour: colours["ink-quiet"], dash: [4, 5] },
    { stretches: told.granted, width: 5, colour: colours.accent, dash: [] },
    { stretches: told.occupied, width: 9, colour: colours.brass, dash: [] },
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
    const { x, y } = onScreen(view.camera, view.size, stop);
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
    const { x, y } = onScreen(view.camera, view.size, refuge);
    paint.strokeStyle = colours.accent;
    paint.lineWidth = 1.5;
    paint.beginPath();
    paint.arc(x, y, 4, 0, 2 * Math.PI);
    paint.stroke();
  }
}

function body(
  paint: Paint,
  view: View,
  { truck, at }: Shown,
  profile: ProfileView | undefined,
  chosen: boolean,
  colours: Palette,
): void {
  if (profile === undefined) return;
  const ill = truck.health !== "HEALTHY" || truck.paused;
  const colour = ill ? colours.bad : truck.blocker === null ? colours.accent : colours.warn;
  paint.save();
  const { x, y } = onScreen(view.camera, view.size, at);
  paint.translate(x, y);
  paint.rotate(-at.yaw / 1_000);
  paint.scale(view.camera.scale, view.camera.scale);
  box(paint, profile.envelope);
  paint.globalAlpha = 0.16;
  paint.fillStyle = colour;
  paint.fill();
  paint.globalAlpha = 1;
  paint.lineWidth = (chosen ? 3 : 1) / view.camera.scale;
  paint.strokeStyle = chosen ? colours.ink : colour;
  paint.stroke();
  box(paint, profile.body);
  paint.fillStyle = colour;
  paint.fill();
  // The front, so that everybody sees where it looks; a load behind it.
  const { front, side } = profile.body;
  paint.fillStyle = colours.surface;
  paint.beginPath();
  paint.moveTo(front * 0.9, 0);
  paint.lineTo(front * 0.3, side * 0.6);
  paint.lineTo(front * 0.3, -side * 0.6);
  paint.fill();
  if (truck.load) {
    paint.fillStyle = colours.brass;
    paint.fillRect(-profile.body.rear * 0.8, -side * 0.6, profile.body.rear * 0.7, side * 1.2);
  }
  paint.restore();
}

function box(paint: Paint, { front, rear, side }: Outline): void {
  paint.beginPath();
  paint.rect(-rear, -side, front + rear, 2 * side);
}

/** From who waits to who is in the way. */
function arrows(paint: Paint, view: View, shown: readonly Shown[], colours: Palette): void {
  const places = new Map(shown.map(({ truck, at }) => [truck.robot_id, onScreen(view.camera, view.size, at)]));
  paint.strokeStyle = colours.warn;
  paint.fillStyle = colours.warn;
  paint.lineWidth = 1.75;
  for (const { truck } of shown) {
    const [from, to] = [places.get(truck.robot_id), truck.blocker === null ? undefined : places.get(truck.blocker)];
    if (from === undefined || to === undefined) continue;
    arrow(paint, from, to);
  }
}

function arrow(paint: Paint, from: Point, to: Point): void {
  const angle = Math.atan2(to.y - from.y, to.x - from.x);
  paint.setLineDash([6, 4]);
  paint.beginPath();
  paint.moveTo(from.x, from.y);
  paint.lineTo(to.x, to.y);
  paint.stroke();
  paint.setLineDash([]);
  paint.beginPath();
  paint.moveTo(to.x, to.y);
  for (const side of [-0.45, 0.45]) {
    paint.lineTo(to.x - ARROW_PX * 1.6 * Math.cos(angle + side), to.y - ARROW_PX * 1.6 * Math.sin(angle + side));
  }
  paint.fill();
}

function names(paint: Paint, view: View, shown: readonly Shown[], chosen: string | null, colours: Palette): void {
  paint.textAlign = "center";
  for (const { truck, at } of shown) {
    const { x, y } = onScreen(view.camera, view.size, at);
    paint.font = `${truck.robot_id === chosen ? "700 " : "600 "}12px ${colours.font}`;
    paint.lineWidth = 3;
    paint.strokeStyle = colours.surface;
    paint.strokeText(truck.robot_id, x, y - 13);
    paint.fillStyle = colours.ink;
    paint.fillText(truck.robot_id, x, y - 13);
  }
}

function along(paint: Paint, view: View, number: number, from: number, to: number): void {
  const edge: MapEdge | undefined = view.map.edges[number];
  if (edge !== undefined) trace(paint, view, stretch(edge, from, to));
}

function trace(paint: Paint, { camera, size }: View, points: readonly Point[]): void {
  points.forEach((point, number) => {
    const { x, y } = onScreen(camera, size, point);
    if (number === 0) paint.moveTo(x, y);
    else paint.lineTo(x, y);
  });
}

function asPoint([x, y]: readonly [number, number]): Point {
  return { x, y };
}
