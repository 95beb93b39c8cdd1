/** An event stream that reconnects with backoff and resumes after its last event.
 *
 * The browser's own reconnect is not used: it hides how long the stream has been lost and gives up on any status but
 * 200. All streams of all tabs share one connection (`shared_connection.ts`), which passes on the code of a refusal, so
 * that a stream does not retry an unknown event id for ever.
 */

import type { ReadonlySignal } from "@preact/signals";
import { signal } from "@preact/signals";

import type { JsonObject } from "./json";
import { parseJson } from "./json";
import { sharedConnection } from "./shared_connection";
import type { GapView } from "./types";

export type Connection =
  | { readonly kind: "connecting" }
  | { readonly kind: "live"; readonly since: number }
  | { readonly kind: "lost"; readonly since: number; readonly retryAt: number };

/** The used part of `EventSource`. An `error` has the code of a refusal as its data, or none; a `position` has the id after
 * which the stream begins. */
export interface Source {
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void;
  close(): void;
}

export interface StreamOptions {
  /** The URL of the stream after an event; `null` starts with new events. */
  readonly address: (after: string | null) => string;
  readonly after: string | null;
  /** The SSE event type of this stream; `event` by default. */
  readonly eventType?: string;
  readonly onEvent: (id: string, body: JsonObject) => void;
  readonly onGap?: (gap: GapView) => void;
  /** Called when a connection could not be opened. The reason is not known here; an ordinary request returns it. */
  readonly onRefused: () => void;
  readonly open?: (address: string) => Source;
  /** A random number in [0, 1) that spreads the retries of many pages. */
  readonly jitter?: () => number;
}

export const FIRST_DELAY_MS = 1_000;
export const MAX_DELAY_MS = 30_000;
const UNKNOWN_EVENT = "unknown_event_id";

/** The delay before a retry after `failures` consecutive failures: doubling, bounded, up to a quarter shorter by jitter. */
export function retryDelayMs(failures: number, jitter: number): number {
  const whole = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.max(0, failures - 1));
  return Math.round(whole * (1 - jitter / 4));
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

  /** Reconnect at once. */
  retryNow(): void {
    if (this.#connection.value.kind !== "lost") return;
    this.#stopTimer();
    this.#connect();
  }

  #connect(): void {
    const source = (this.#options.open ?? sharedConnection.open)(this.#options.address(this.#after));
    this.#source = source;
    let opened = false;
    source.addEventListener("open", () => {
      opened = true;
      this.#lostSince = null;
      this.#connection.value = { kind: "live", since: Date.now() };
    });
    source.addEventListener(this.#options.eventType ?? "event", (message) => {
      this.#received(message);
      this.#options.onEvent(message.lastEventId, parseJson(message.data) as JsonObject);
    });
    source.addEventListener("position", (message) => {
      this.#after = message.lastEventId;
    });
    source.addEventListener("gap", (message) => {
      this.#received(message);
      this.#options.onGap?.(parseJson(message.data) as unknown as GapView);
    });
    source.addEventListener("error", (message) => {
      if (this.#source === source) this.#fail(opened, message.data);
    });
  }

  #received(message: MessageEvent<string>): void {
    // Opening alone does not reset the backoff: a server may accept and drop at once.
    this.#failures = 0;
    if (message.lastEventId !== "") this.#after = message.lastEventId;
  }

  #fail(wasOpen: boolean, code: string): void {
    this.#source?.close();
    this.#source = null;
    this.#failures += 1;
    this.#lostSince ??= Date.now();
    const delay = retryDelayMs(this.#failures, (this.#options.jitter ?? Math.random)());
    this.#connection.value = { kind: "lost", since: this.#lostSince, retryAt: Date.now() + delay };
    this.#timer = setTimeout(() => this.#connect(), delay);
    if (code === UNKNOWN_EVENT) this.#dropPosition();
    if (!wasOpen) this.#options.onRefused();
  }

  /** The journal was replaced and does not have the event: report a gap and continue with new events. */
  #dropPosition(): void {
    if (this.#after === null) return;
    this.#options.onGap?.({ missed: null, after: this.#after, next: null });
    this.#after = null;
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
