/** One event stream that stays up: it reconnects with growing pauses and resumes after the last event it saw.
 *
 * The browser's own reconnecting is not used: it hides how long the stream has been gone, and gives up for good on any
 * answer that is not 200. Nor does it say what that answer was: after a refusal the address is asked once more by an
 * ordinary call, because an event that the journal does not know must not be asked for for ever.
 */

import type { ReadonlySignal } from "@preact/signals";
import { signal } from "@preact/signals";

import type { JsonObject } from "./json";
import { isObject, parseJson } from "./json";
import type { GapView } from "./types";

export type Connection =
  | { readonly kind: "connecting" }
  | { readonly kind: "live"; readonly since: number }
  | { readonly kind: "lost"; readonly since: number; readonly retryAt: number };

/** The part of `EventSource` that is used. */
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
  /** The code with which the server refuses the address; `null` when it does not refuse, or does not answer. */
  readonly refusal?: (address: string) => Promise<string | null>;
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
  #everOpen = false;
  #closed = false;

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
    this.#closed = true;
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
    const source = (this.#options.open ?? openEventSource)(this.#options.address(this.#after));
    this.#source = source;
    let opened = false;
    source.addEventListener("open", () => {
      opened = true;
      this.#everOpen = true;
      this.#lostSince = null;
      this.#connection.value = { kind: "live", since: Date.now() };
    });
    source.addEventListener(this.#options.named ?? "event", (message) => {
      this.#seen(message);
      this.#options.onEvent(message.lastEventId, parseJson(message.data) as JsonObject);
    });
    source.addEventListener("gap", (message) => {
      this.#seen(message);
      this.#options.onGap?.(parseJson(message.data) as unknown as GapView);
    });
    source.addEventListener("error", () => {
      if (this.#source === source) this.#lose(opened);
    });
  }

  #seen(message: MessageEvent<string>): void {
    // Opening alone is no success: a server that accepts and drops at once must not be asked every second.
    this.#failures = 0;
    if (message.lastEventId !== "") this.#after = message.lastEventId;
  }

  #lose(wasOpen: boolean): void {
    this.#source?.close();
    this.#source = null;
    this.#failures += 1;
    // A starting point that was refused from the first may lie in a part of the journal that is gone: begin with now.
    if (!this.#everOpen) this.#after = null;
    this.#lostSince ??= Date.now();
    const pause = pauseMs(this.#failures, (this.#options.spread ?? Math.random)());
    this.#connection.value = { kind: "lost", since: this.#lostSince, retryAt: Date.now() + pause };
    this.#timer = setTimeout(() => this.#connect(), pause);
    if (wasOpen) return;
    if (this.#after !== null) void this.#askWhy(this.#after);
    this.#options.onRefused();
  }

  /** The journal may be another one by now, which never had the event: what was missed is told, then begin with now. */
  async #askWhy(after: string): Promise<void> {
    const code = await (this.#options.refusal ?? refusalAt)(this.#options.address(after));
    if (code !== UNKNOWN_EVENT || this.#after !== after || this.#connection.value.kind !== "lost" || this.#closed)
      return;
    this.#after = null;
    this.#options.onGap?.({ missed: null, after, next: null });
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

async function refusalAt(address: string): Promise<string | null> {
  const call = new AbortController();
  try {
    const response = await fetch(address, { credentials: "same-origin", cache: "no-store", signal: call.signal });
    if (response.ok) return null;
    const body = parseJson(await response.text());
    const error = isObject(body) ? body["error"] : undefined;
    return isObject(error) && typeof error["code"] === "string" ? error["code"] : null;
  } catch {
    // No answer, or one that is not the server's: nothing is known, and the retries go on as they are.
    return null;
  } finally {
    // An answer that is a stream never ends by itself.
    call.abort();
  }
}

function openEventSource(address: string): Source {
  return new EventSource(address);
}
