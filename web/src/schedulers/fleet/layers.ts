/** Cached layers below the trucks: the map, painted when the view changes, and on it zones, bands and stop lines, painted
 * for each moment. Each frame copies the result. */

import type { FleetNow } from "../../api/types";
import { resizeCanvas } from "../../canvas/context";
import type { Palette } from "../../canvas/palette";
import type { Size } from "./geometry";
import type { View } from "./paint";
import { paintGround, paintMoment } from "./paint";

export class Layers {
  readonly below = document.createElement("canvas");
  readonly #ground = document.createElement("canvas");
  readonly #size: Size;
  readonly #colours: Palette;
  #view: View | null = null;
  #now: FleetNow | null = null;

  constructor(size: Size, colours: Palette) {
    this.#size = size;
    this.#colours = colours;
    resizeCanvas(this.#ground, size);
    resizeCanvas(this.below, size);
  }

  /** Paint a moment in a view; returns false if it is already painted. */
  show(view: View, now: FleetNow): boolean {
    if (view === this.#view && now === this.#now) return false;
    if (view !== this.#view) this.#drawGround(view);
    const paint = this.below.getContext("2d");
    if (paint !== null) {
      const { width, height } = this.#size;
      paint.drawImage(this.#ground, 0, 0, width, height);
      paintMoment(paint, view, now.trucks, this.#colours);
    }
    [this.#view, this.#now] = [view, now];
    return true;
  }

  #drawGround(view: View): void {
    const paint = this.#ground.getContext("2d");
    if (paint !== null) paintGround(paint, view, this.#colours);
  }
}
