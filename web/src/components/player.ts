/** Plays a journal at its recorded pace or up to 100 times faster.
 *
 * Playback follows the wall-clock times of the records, not engine time, so 1× is what a live page showed. It pauses while
 * the page is loading a moment; only idle time is skipped.
 */

import { signal } from "@preact/signals";

export const SPEEDS = [1, 2, 5, 10, 25, 100] as const;
const STEP_MS = 200;
/** A step that took longer counts as this much, so that playback does not jump. */
const MAX_STEP_MS = 1_000;
/** Idle time longer than this, as seen by the viewer, is skipped. */
const MAX_IDLE_MS = 2_000;
const MAX_FAILURES = 10;

/** A moment of a journal: record number, engine time, wall-clock time in milliseconds. */
export interface Stop {
  readonly n: number;
  readonly t: number | null;
  readonly ms: number | null;
}

export interface StopAndNext {
  readonly stop: Stop | null;
  readonly next: Stop | null;
}

/** The moments of a journal or an audit trail, for a time slider. */
export interface StopSource {
  /** The first and last moment and evenly spaced ones between them, `points` in all. */
  sample(points: number): Promise<readonly Stop[]>;
  atRecord(n: number): Promise<StopAndNext>;
  /** The last moment at or before a wall-clock time, or the first one. */
  atWall(ms: number): Promise<StopAndNext>;
  /** The next incident after a record, or the last one before it. */
  incident(side: "after" | "before", n: number): Promise<{ readonly n: number; readonly sentence: string } | null>;
}

export class Player {
  readonly on = signal(false);
  readonly speed = signal<number>(1);
  readonly #source: StopSource;
  readonly #move: (n: number | null) => void;
  readonly #isReady: () => boolean;
  #head = 0;
  #last = 0;
  #shown = -1;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** `isReady` is whether the page has loaded the moment it was last moved to. */
  constructor(source: StopSource, move: (n: number | null) => void, isReady: () => boolean) {
    this.#source = source;
    this.#move = move;
    this.#isReady = isReady;
  }

  /** Play from record `n`. */
  async start(n: number): Promise<void> {
    this.on.value = true;
    const { stop } = await this.#source.atRecord(n);
    this.#head = stop?.ms ?? 0;
    this.#last = Date.now();
    this.#scheduleStep();
  }

  stop(): void {
    this.on.value = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #scheduleStep(): void {
    if (!this.on.value) return;
    this.#timer = setTimeout(() => {
      this.#step().then(
        () => {
          this.#failures = 0;
          this.#scheduleStep();
        },
        () => {
          // A few failures are retried; many in a row stop the playback.
          this.#failures += 1;
          if (this.#failures < MAX_FAILURES) this.#scheduleStep();
          else this.stop();
        },
      );
    }, STEP_MS);
  }

  async #step(): Promise<void> {
    const now = Date.now();
    const elapsed = Math.min(now - this.#last, MAX_STEP_MS);
    this.#last = now;
    if (!this.#isReady()) return;
    this.#head += elapsed * this.speed.value;
    const { stop, next } = await this.#source.atWall(this.#head);
    if (!this.on.value) return;
    if (next === null) {
      this.stop();
      this.#move(null);
      return;
    }
    if (next.ms !== null && next.ms - this.#head > MAX_IDLE_MS * this.speed.value) this.#head = next.ms;
    if (stop !== null && stop.n !== this.#shown) {
      this.#shown = stop.n;
      this.#move(stop.n);
    }
  }
}
