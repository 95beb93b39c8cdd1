/** Trucks on a canvas, with every frame: bodies and envelopes true to scale, arrows to who is in the way, names.
 *
 * What does not change between two frames is made once: the picture below them, shapes of profiles, names as small
 * pictures. Writing text anew costs more than all the rest of a frame.
 */

import type { Outline, ProfileView } from "../../api/types";
import type { Palette } from "../../canvas/palette";
import type { Shown } from "./motion";
import type { Paint, View } from "./paint";
import { isStopped } from "./wording";

interface Shapes {
  readonly envelope: Path2D;
  readonly body: Path2D;
  /** The front, so that everybody sees where it looks; a load behind it. */
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
const WASH = 0.16;

export class TruckPainter {
  readonly #paint: Paint;
  readonly #colours: Palette;
  readonly #ratio: number;
  readonly #names = new Map<string, HTMLCanvasElement>();
  readonly #shapes = new Map<string, Shapes>();
  #profiles: readonly ProfileView[] | null = null;

  /** `ratio`: how many pixels of the screen a pixel of the page is. */
  constructor(paint: Paint, colours: Palette, ratio: number) {
    this.#paint = paint;
    this.#colours = colours;
    this.#ratio = ratio;
  }

  /** One frame: the picture below, which has the size of the canvas, and everybody on it. */
  paint(view: View, below: HTMLCanvasElement, shown: readonly Shown[], chosen: string | null): void {
    const paint = this.#paint;
    this.#learn(view.map.profiles);
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.drawImage(below, 0, 0);
    paint.lineJoin = "round";
    for (const one of shown) this.#body(view, one, one.truck.robot_id === chosen);
    paint.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    this.#arrows(view, shown);
    paint.setTransform(1, 0, 0, 1, 0, 0);
    for (const one of shown) this.#name(view, one, one.truck.robot_id === chosen);
  }

  #learn(profiles: readonly ProfileView[]): void {
    if (this.#profiles === profiles) return;
    this.#profiles = profiles;
    this.#shapes.clear();
    for (const one of profiles) this.#shapes.set(one.profile_id, shapesOf(one));
  }

  #body(view: View, { truck, at }: Shown, chosen: boolean): void {
    const shapes = this.#shapes.get(truck.profile_id);
    if (shapes === undefined) return;
    const [paint, colours] = [this.#paint, this.#colours];
    const colour = isStopped(truck) ? colours.bad : truck.blocker === null ? colours.accent : colours.warn;
    const scale = view.camera.scale * this.#ratio;
    const [cos, sin] = [Math.cos(at.yaw / 1_000) * scale, Math.sin(at.yaw / 1_000) * scale];
    paint.setTransform(cos, -sin, sin, cos, xOf(view, at.x) * this.#ratio, yOf(view, at.y) * this.#ratio);
    paint.fillStyle = colour;
    paint.globalAlpha = WASH;
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

  /** From who waits to who is in the way. */
  #arrows(view: View, shown: readonly Shown[]): void {
    const paint = this.#paint;
    paint.strokeStyle = this.#colours.warn;
    paint.fillStyle = this.#colours.warn;
    paint.lineWidth = 1.75;
    paint.lineCap = "butt";
    // All lines at once, then all heads: a stroke costs more than what is in it.
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

  #name(view: View, { truck, at }: Shown, chosen: boolean): void {
    const picture = this.#named(truck.robot_id, chosen);
    const x = xOf(view, at.x) * this.#ratio - picture.width / 2;
    const y = (yOf(view, at.y) - NAME_ABOVE_PX - NAME_PX - NAME_MARGIN_PX) * this.#ratio;
    // On whole pixels a picture is copied, between them it would be blurred.
    this.#paint.drawImage(picture, Math.round(x), Math.round(y));
  }

  #named(name: string, chosen: boolean): HTMLCanvasElement {
    const key = chosen ? `${name} chosen` : name;
    let picture = this.#names.get(key);
    if (picture === undefined) {
      picture = this.#written(name, chosen);
      this.#names.set(key, picture);
    }
    return picture;
  }

  #written(name: string, chosen: boolean): HTMLCanvasElement {
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

function head(paint: Paint, view: View, from: Shown["at"], to: Shown["at"]): void {
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

/** North is up on a map, down on a screen. */
function yOf({ camera, size }: View, y: number): number {
  return size.height / 2 - (y - camera.y) * camera.scale;
}
