/** Plays a journal: one moment after another at the pace at which they came, or up to a hundred times faster.
 *
 * Time runs by the clock on the wall, not by that of the engine, so that 1× is what one would have seen. It stands
 * while a picture is on its way: what cannot be shown that fast is played slower, and nothing is skipped but quiet.
 */

import { signal } from "@preact/signals";

export const SPEEDS = [1, 2, 5, 10, 25, 100] as const;
const STEP_MS = 200;
/** A step that took longer does not make time leap. */
const LONGEST_STEP_MS = 1_000;
/** Where nothing happens for longer than this, as the one who looks feels it, time goes on to what comes next. */
const LONGEST_QUIET_MS = 2_000;
const MOST_FAILURES = 10;

/** A moment of a journal: its record, the time of the engine then, the time of the wall. */
export interface Stop {
  readonly n: number;
  readonly t: number | null;
  readonly ms: number | null;
}

export interface FoundStop {
  readonly stop: Stop | null;
  readonly next: Stop | null;
}

/** What a time slider asks of a journal, or of a trail. */
export interface StopSource {
  /** The first moment, the last, and others evenly between them. */
  spread(points: number): Promise<readonly Stop[]>;
  atRecord(n: number): Promise<FoundStop>;
  /** The last moment not after a time of the wall, or the first one. */
  atWall(ms: number): Promise<FoundStop>;
  /** What went wrong next after a record, or last before one. */
  incident(side: "after" | "before", n: number): Promise<{ readonly n: number; readonly sentence: string } | null>;
}

export class Playing {
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

  /** `isReady` says whether the picture that was asked for last is there. */
  constructor(source: StopSource, move: (n: number | null) => void, isReady: () => boolean) {
    this.#source = source;
    this.#move = move;
    this.#isReady = isReady;
  }

  /** Play from record `n` on. */
  async start(n: number): Promise<void> {
    this.on.value = true;
    const { stop } = await this.#source.atRecord(n);
    this.#head = stop?.ms ?? 0;
    this.#last = Date.now();
    this.#again();
  }

  stop(): void {
    this.on.value = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #again(): void {
    if (!this.on.value) return;
    this.#timer = setTimeout(() => {
      this.#step().then(
        () => {
          this.#failures = 0;
          this.#again();
        },
        () => {
          // A server that is busy is asked again; one that does not answer is not.
          this.#failures += 1;
          if (this.#failures < MOST_FAILURES) this.#again();
          else this.stop();
        },
      );
    }, STEP_MS);
  }

  async #step(): Promise<void> {
    const now = Date.now();
    const passed = Math.min(now - this.#last, LONGEST_STEP_MS);
    this.#last = now;
    if (!this.#isReady()) return;
    this.#head += passed * this.speed.value;
    const { stop, next } = await this.#source.atWall(this.#head);
    if (!this.on.value) return;
    if (next === null) {
      this.stop();
      this.#move(null);
      return;
    }
    if (next.ms !== null && next.ms - this.#head > LONGEST_QUIET_MS * this.speed.value) this.#head = next.ms;
    if (stop !== null && stop.n !== this.#shown) {
      this.#shown = stop.n;
      this.#move(stop.n);
    }
  }
}
