/** Trucks between two moments: each is drawn where it is likely to be, from where it was drawn last to where it was heard
 * of, over the time in which the next moment will come. */

import type { FleetNow, PointView } from "../../api/types";
import { between } from "./geometry";
import type { Shown } from "./paint";

const LEAST_MS = 120;
const MOST_MS = 1_500;

export class Motion {
  #from = new Map<string, PointView>();
  #now: FleetNow | null = null;
  #since = 0;
  #lasts = LEAST_MS;

  /** A new moment, heard at `at` by the clock of this page; null shows it as it is, as the past is shown. */
  take(now: FleetNow, at: number | null): void {
    if (this.#now === now) return;
    const drawn = at === null ? [] : this.at(at);
    this.#from = new Map(drawn.map(({ truck, at: place }) => [truck.robot_id, place]));
    if (at !== null && this.#now !== null) this.#lasts = Math.min(Math.max(at - this.#since, LEAST_MS), MOST_MS);
    this.#since = at ?? 0;
    this.#now = now;
  }

  at(time: number): readonly Shown[] {
    const part = (time - this.#since) / this.#lasts;
    return (this.#now?.trucks ?? []).flatMap((truck) => {
      const at = between(this.#from.get(truck.robot_id) ?? null, truck.at, part);
      return at === null ? [] : [{ truck, at }];
    });
  }
}
