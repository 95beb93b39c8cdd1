/** Painting of trucks for each frame: bodies and envelopes to scale, arrows to blockers, names.
 *
 * Everything that does not change between frames is cached: the layers below, shapes of profiles, and names as images,
 * since drawing text costs more than the rest of a frame.
 */

import type { Outline, ProfileView } from "../../api/types";
import type { Palette } from "../../canvas/palette";
import type { VisibleTruck } from "./motion";
import type { Paint, View } from "./paint";
import { isStopped } from "./wording";

interface Shapes {
  readonly envelope: Path2D;
  readonly body: Path2D;
  /** A triangle that marks the front. */
  readonly front: Path2D;
  readonly load: Path2D;
}

const ARROW_PX = 7 * 1.6;
const ARROW_ANGLE = 0.45;
const DASH = [6, 4];
const SOLID: number[] = [];
const NAME_PX = 12;
const NAME_ABOVE_PX = 13;
const NAME_MARGIN_PX = 4;
const ENVELOPE_ALPHA = 0.16;

export class TruckPainter {
  readonly #paint: Paint;
  readonly #colours: Palette;
  readonly #ratio: number;
  readonly #names = new Map<string, HTMLCanvasElement>();
  readonly #shapes = new Map<string, Shapes>();
  #profiles: readonly ProfileView[] | null = null;

  /** `ratio` is the device pixel ratio. */
  constructor(paint: Paint, colours: Palette, ratio: number) {
    this.#paint = paint;
    this.#colours = colours;
    this.#ratio = ratio;
  }

  /** Paint one frame: `below`, which has the size of the canvas, and the trucks on top. */
  paint(view: View, below: HTMLCanvasElement, shown: readonly VisibleTruck[], chosen: string | null): void {
    const paint = this.#paint;
    this.#cacheShapes(view.map.profiles);
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.drawImage(below, 0, 0);
    paint.lineJoin = "round";
    for (const visible of shown) this.#body(view, visible, visible.truck.robot_id === chosen);
    paint.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    this.#arrows(view, shown);
    paint.setTransform(1, 0, 0, 1, 0, 0);
    for (const visible of shown) this.#name(view, visible, visible.truck.robot_id === chosen);
  }

  #cacheShapes(profiles: readonly ProfileView[]): void {
    if (this.#profiles === profiles) return;
    this.#profiles = profiles;
    this.#shapes.clear();
    for (const profile of profiles) this.#shapes.set(profile.profile_id, shapesOf(profile));
  }

  #body(view: View, { truck, at }: VisibleTruck, chosen: boolean): void {
    const shapes = this.#shapes.get(truck.profile_id);
    if (shapes === undefined) return;
    const [paint, colours] = [this.#paint, this.#colours];
    const colour = isStopped(truck) ? colours.bad : truck.blocker === null ? colours.accent : colours.warn;
    const scale = view.camera.scale * this.#ratio;
    const [cos, sin] = [Math.cos(at.yaw / 1_000) * scale, Math.sin(at.yaw / 1_000) * scale];
    paint.setTransform(cos, -sin, sin, cos, xOf(view, at.x) * this.#ratio, yOf(view, at.y) * this.#ratio);
    paint.fillStyle = colour;
    paint.globalAlpha = ENVELOPE_ALPHA;
    paint.fill(shapes.envelope);
    paint.globalAlpha = 1;
    paint.lineWidth = (chosen ? 3 : 1) / view.camera.scale;
    paint.strokeStyle = chosen ? colours.ink : colour;
    paint.stroke(shapes.envelope);
    paint.fill(shapes.body);
    paint.fillStyle = colours.surface;
    paint.fill(shapes.front);
    if (!truck.load) return;
    paint.fillStyle = colours.brass;
    paint.fill(shapes.load);
  }

  /** Arrows from waiting trucks to their blockers. */
  #arrows(view: View, shown: readonly VisibleTruck[]): void {
    const paint = this.#paint;
    paint.strokeStyle = this.#colours.warn;
    paint.fillStyle = this.#colours.warn;
    paint.lineWidth = 1.75;
    paint.lineCap = "butt";
    // One path for all lines and one for all heads, since each stroke has a fixed cost.
    paint.setLineDash(DASH);
    paint.beginPath();
    for (const { at, blocker } of shown) {
      if (blocker === null) continue;
      paint.moveTo(xOf(view, at.x), yOf(view, at.y));
      paint.lineTo(xOf(view, blocker.at.x), yOf(view, blocker.at.y));
    }
    paint.stroke();
    paint.setLineDash(SOLID);
    paint.beginPath();
    for (const { at, blocker } of shown) if (blocker !== null) head(paint, view, at, blocker.at);
    paint.fill();
  }

  #name(view: View, { truck, at }: VisibleTruck, chosen: boolean): void {
    const picture = this.#nameImage(truck.robot_id, chosen);
    const x = xOf(view, at.x) * this.#ratio - picture.width / 2;
    const y = (yOf(view, at.y) - NAME_ABOVE_PX - NAME_PX - NAME_MARGIN_PX) * this.#ratio;
    // Whole pixels, because an image at a fractional position is blurred.
    this.#paint.drawImage(picture, Math.round(x), Math.round(y));
  }

  #nameImage(name: string, chosen: boolean): HTMLCanvasElement {
    const key = chosen ? `${name} chosen` : name;
    let picture = this.#names.get(key);
    if (picture === undefined) {
      picture = this.#renderName(name, chosen);
      this.#names.set(key, picture);
    }
    return picture;
  }

  #renderName(name: string, chosen: boolean): HTMLCanvasElement {
    const picture = document.createElement("canvas");
    const paint = picture.getContext("2d");
    if (paint === null) return picture;
    const font = `${chosen ? "700" : "600"} ${NAME_PX}px ${this.#colours.font}`;
    paint.font = font;
    const width = Math.ceil(paint.measureText(name).width) + 2 * NAME_MARGIN_PX;
    const height = 2 * NAME_PX;
    picture.width = width * this.#ratio;
    picture.height = height * this.#ratio;
    paint.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    paint.font = font;
    paint.textAlign = "center";
    paint.lineJoin = "round";
    paint.lineWidth = 3;
    paint.strokeStyle = this.#colours.surface;
    paint.strokeText(name, width / 2, NAME_PX + NAME_MARGIN_PX);
    paint.fillStyle = this.#colours.ink;
    paint.fillText(name, width / 2, NAME_PX + NAME_MARGIN_PX);
    return picture;
  }
}

function shapesOf({ envelope, body }: ProfileView): Shapes {
  const { front, rear, side } = body;
  const nose = new Path2D();
  nose.moveTo(front * 0.9, 0);
  nose.lineTo(front * 0.3, side * 0.6);
  nose.lineTo(front * 0.3, -side * 0.6);
  const load = new Path2D();
  load.rect(-rear * 0.8, -side * 0.6, rear * 0.7, side * 1.2);
  return { envelope: box(envelope), body: box(body), front: nose, load };
}

function box({ front, rear, side }: Outline): Path2D {
  const path = new Path2D();
  path.rect(-rear, -side, front + rear, 2 * side);
  return path;
}

function head(paint: Paint, view: View, from: VisibleTruck["at"], to: VisibleTruck["at"]): void {
  const [x, y] = [xOf(view, to.x), yOf(view, to.y)];
  const angle = Math.atan2(y - yOf(view, from.y), x - xOf(view, from.x));
  paint.moveTo(x, y);
  paint.lineTo(x - ARROW_PX * Math.cos(angle - ARROW_ANGLE), y - ARROW_PX * Math.sin(angle - ARROW_ANGLE));
  paint.lineTo(x - ARROW_PX * Math.cos(angle + ARROW_ANGLE), y - ARROW_PX * Math.sin(angle + ARROW_ANGLE));
  paint.closePath();
}

function xOf({ camera, size }: View, x: number): number {
  return size.width / 2 + (x - camera.x) * camera.scale;
}

/** The y axis points north on the map and down on the screen. */
function yOf({ camera, size }: View, y: number): number {
  return size.height / 2 - (y - camera.y) * camera.scale;
}
