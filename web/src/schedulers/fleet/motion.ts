/** Trucks between two moments: each is drawn where it is likely to be, from where it was drawn last to where it was heard
 * of, over the time in which the next moment will come. Nothing is made anew with a frame: places are moved. */

import type { FleetNow, PointView, TruckNow } from "../../api/types";
import { between } from "./geometry";

/** A truck as it is drawn: where it is at this frame, and the truck that it waits for. */
export interface Shown {
  readonly truck: TruckNow;
  readonly at: PointView;
  readonly blocker: Shown | null;
}

interface Moving {
  readonly truck: TruckNow;
  readonly from: PointView | null;
  readonly to: PointView;
  at: PointView;
  blocker: Moving | null;
}

const LEAST_MS = 120;
const MOST_MS = 1_500;

export class Motion {
  #shown: readonly Moving[] = [];
  #now: FleetNow | null = null;
  #since = 0;
  #lasts = LEAST_MS;
  #arrived = true;

  /** Whether everybody is where they were heard: a frame more would show the same. */
  get arrived(): boolean {
    return this.#arrived;
  }

  /** A new moment, heard at `at` by the clock of this page; null shows it as it is, as the past is shown. */
  take(now: FleetNow, at: number | null): void {
    if (this.#now === now) return;
    if (at !== null) this.at(at);
    const drawn = new Map(at === null ? [] : this.#shown.map((one) => [one.truck.robot_id, one.at]));
    this.#shown = now.trucks.flatMap((truck) => {
      const from = drawn.get(truck.robot_id) ?? null;
      return truck.at === null ? [] : [{ truck, from, to: truck.at, at: from ?? truck.at, blocker: null }];
    });
    const shown = new Map(this.#shown.map((one) => [one.truck.robot_id, one]));
    for (const one of this.#shown) {
      one.blocker = one.truck.blocker === null ? null : (shown.get(one.truck.blocker) ?? null);
    }
    if (at !== null && this.#now !== null) this.#lasts = Math.min(Math.max(at - this.#since, LEAST_MS), MOST_MS);
    this.#since = at ?? 0;
    this.#now = now;
    this.#arrived = false;
  }

  at(time: number): readonly Shown[] {
    const part = (time - this.#since) / this.#lasts;
    this.#arrived = part >= 1;
    for (const one of this.#shown) one.at = between(one.from, one.to, part) ?? one.to;
    return this.#shown;
  }
}
