/** Animation of trucks between two moments, from the last painted to the reported position, over the expected time until
 * the next moment. Positions are updated in place, so that a frame allocates nothing. */

import type { FleetNow, PointView, TruckNow } from "../../api/types";
import { between } from "./geometry";

/** A truck in a frame, with the truck it waits for. */
export interface VisibleTruck {
  readonly truck: TruckNow;
  readonly at: PointView;
  readonly blocker: VisibleTruck | null;
}

interface Moving {
  readonly truck: TruckNow;
  readonly from: PointView | null;
  readonly to: PointView;
  at: PointView;
  blocker: Moving | null;
}

const MIN_MS = 120;
const MAX_MS = 1_500;

export class Motion {
  #shown: readonly Moving[] = [];
  #now: FleetNow | null = null;
  #since = 0;
  #duration = MIN_MS;
  #arrived = true;

  /** Whether all trucks are at their reported positions, so that a further frame would show the same. */
  get arrived(): boolean {
    return this.#arrived;
  }

  /** Set a new moment, received at `at` (`performance.now()`); `null` shows it without animation. */
  update(now: FleetNow, at: number | null): void {
    if (this.#now === now) return;
    if (at !== null) this.at(at);
    const painted = new Map(at === null ? [] : this.#shown.map((moving) => [moving.truck.robot_id, moving.at]));
    this.#shown = now.trucks.flatMap((truck) => {
      const from = painted.get(truck.robot_id) ?? null;
      return truck.at === null ? [] : [{ truck, from, to: truck.at, at: from ?? truck.at, blocker: null }];
    });
    const shown = new Map(this.#shown.map((moving) => [moving.truck.robot_id, moving]));
    for (const moving of this.#shown) {
      moving.blocker = moving.truck.blocker === null ? null : (shown.get(moving.truck.blocker) ?? null);
    }
    if (at !== null && this.#now !== null) this.#duration = Math.min(Math.max(at - this.#since, MIN_MS), MAX_MS);
    this.#since = at ?? 0;
    this.#now = now;
    this.#arrived = false;
  }

  at(time: number): readonly VisibleTruck[] {
    const part = (time - this.#since) / this.#duration;
    this.#arrived = part >= 1;
    for (const moving of this.#shown) moving.at = between(moving.from, moving.to, part) ?? moving.to;
    return this.#shown;
  }
}
