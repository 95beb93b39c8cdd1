/** One event stream that stays up: it reconnects with growing pauses and resumes after the last event it saw.
 *
 * The browser's own reconnecting is not used: it hides how long the stream has been gone, and gives up for good on any
 * answer that is not 200. All streams of all tabs go by one connection (`sharing.ts`), which says why one was refused:
 * an event that the journal does not know must not be asked for for ever.
 */

import type { ReadonlySignal } from "@preact/signals";
import { signal } from "@preact/signals";

import type { JsonObject } from "./json";
import { parseJson } from "./json";
import { sharing } from "./sharing";
import type { GapView } from "./types";

export type Connection =
  | { readonly kind: "connecting" }
  | { readonly kind: "live"; readonly since: number }
  | { readonly kind: "lost"; readonly since: number; readonly retryAt: number };

/** The part of `EventSource` that is used. An `error` carries the code of a refusal, where there is one; a `place` is the
 * id after which a stream begins. */
export interface Source {
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void;
  close(): void;
}

export interface StreamOptions {
  /** The address of the stream from after an event on; `null` means from now on. */
  readonly address: (after: string | null) => string;
  readonly after: string | null;
  /** What the server calls an event on this stream; `event` where it is not told. */
  readonly named?: string;
  readonly onEvent: (id: string, body: JsonObject) => void;
  readonly onGap?: (gap: GapView) => void;
  /** Called when a connection could not be opened: the reason is not visible here, an ordinary call will tell it. */
  readonly onRefused: () => void;
  readonly open?: (address: string) => Source;
  /** A number in [0, 1) that spreads the retries of many pages. */
  readonly spread?: () => number;
}

export const FIRST_PAUSE_MS = 1_000;
export const LONGEST_PAUSE_MS = 30_000;
const UNKNOWN_EVENT = "unknown_event_id";

/** How long to wait before the retry that follows `failures` failures in a row: doubling, bounded, spread by a quarter. */
export function pauseMs(failures: number, spread: number): number {
  const whole = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, failures - 1));
  return Math.round(whole * (1 - spread / 4));
}

export class EventStream {
  readonly #options: StreamOptions;
  readonly #connection = signal<Connection>({ kind: "connecting" });
  #after: string | null;
  #source: Source | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #failures = 0;
  #lostSince: number | null = null;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#after = options.after;
    this.#connect();
  }

  get connection(): ReadonlySignal<Connection> {
    return this.#connection;
  }

  /** The id of the last event seen. */
  get after(): string | null {
    return this.#after;
  }

  close(): void {
    this.#stopTimer();
    this.#source?.close();
    this.#source = null;
  }

  /** Try again at once instead of waiting out the pause. */
  retryNow(): void {
    if (this.#connection.value.kind !== "lost") return;
    this.#stopTimer();
    this.#connect();
  }

  #connect(): void {
    const source = (this.#options.open ?? sharing.open)(this.#options.address(this.#after));
    this.#source = source;
    let opened = false;
    source.addEventListener("open", () => {
      opened = true;
      this.#lostSince = null;
      this.#connection.value = { kind: "live", since: Date.now() };
    });
    source.addEventListener(this.#options.named ?? "event", (message) => {
      this.#seen(message);
      this.#options.onEvent(message.lastEventId, parseJson(message.data) as JsonObject);
    });
    source.addEventListener("place", (message) => {
      this.#after = message.lastEventId;
    });
    source.addEventListener("gap", (message) => {
      this.#seen(message);
      this.#options.onGap?.(parseJson(message.data) as unknown as GapView);
    });
    source.addEventListener("error", (message) => {
      if (this.#source === source) this.#lose(opened, message.data);
    });
  }

  #seen(message: MessageEvent<string>): void {
    // Opening alone is no success: a server that accepts and drops at once must not be asked every second.
    this.#failures = 0;
    if (message.lastEventId !== "") this.#after = message.lastEventId;
  }

  #lose(wasOpen: boolean, code: string): void {
    this.#source?.close();
    this.#source = null;
    this.#failures += 1;
    this.#lostSince ??= Date.now();
    const pause = pauseMs(this.#failures, (this.#options.spread ?? Math.random)());
    this.#connection.value = { kind: "lost", since: this.#lostSince, retryAt: Date.now() + pause };
    this.#timer = setTimeout(() => this.#connect(), pause);
    if (code === UNKNOWN_EVENT) this.#forget();
    if (!wasOpen) this.#options.onRefused();
  }

  /** The journal is another one by now, which never had the event: what was missed is told, then begin with now. */
  #forget(): void {
    if (this.#after === null) return;
    this.#options.onGap?.({ missed: null, after: this.#after, next: null });
    this.#after = null;
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
