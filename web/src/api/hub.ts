/** One connection for the streams of many pages. It is reopened whenever the set of streams changes.
 *
 * Every stream resumes after its last event, so a reconnect loses nothing and pages do not notice it. A connection
 * without any message, not even a server heartbeat, for `SILENCE_MS` counts as lost, whatever the socket says: each of
 * its streams ends with an error, and the pages open them again.
 */

import { isObject, parseJson } from "./json";
import type { Source } from "./stream";

export const STREAM = "/api/v1/stream";
export const MAX_STREAMS = 64;
/** Streams opened within this time share one reconnect. */
export const GATHER_MS = 25;
export const CHECK_EVERY_MS = 5_000;
/** Three server heartbeats. */
export const SILENCE_MS = 15_000;

/** Messages from a page; `key` is the page's own number for a stream. */
export type ToHub =
  | { readonly kind: "open"; readonly key: number; readonly address: string }
  | { readonly kind: "close"; readonly key: number }
  /** The page holds this lock as long as it lives; when the lock is free, the page is gone. */
  | { readonly kind: "lock"; readonly lock: string }
  /** The session has changed: reconnect, so that the browser sends the new cookie. */
  | { readonly kind: "reconnect" }
  | { readonly kind: "leave" };

/** Messages to a page: a message of a stream (`open`, `position` and `error` are about the stream itself), or a heartbeat. */
export type FromHub =
  | {
      readonly kind: "message";
      readonly key: number;
      readonly type: string;
      readonly id: string;
      readonly data: string;
    }
  | { readonly kind: "beat" };

export interface Port {
  postMessage(message: FromHub): void;
}

interface Subscription {
  readonly port: Port;
  readonly key: number;
  readonly address: string;
  after: string | null;
  opened: boolean;
}

export class Hub {
  readonly #open: (address: string) => Source;
  readonly #pages = new Set<Port>();
  #subscriptions: Subscription[] = [];
  #source: Source | null = null;
  #lastMessage = 0;
  #paused = false;
  #reconnectTimer: ReturnType<typeof setTimeout> | null = null;
  #silenceTimer: ReturnType<typeof setInterval> | null = null;

  constructor(open: (address: string) => Source) {
    this.#open = open;
  }

  receive(port: Port, message: ToHub): void {
    this.#pages.add(port);
    switch (message.kind) {
      case "open":
        this.#subscriptions.push({ port, key: message.key, address: message.address, after: null, opened: false });
        this.#scheduleReconnect();
        break;
      case "close":
        this.#unsubscribe((subscription) => subscription.port === port && subscription.key === message.key);
        break;
      case "lock":
        void globalThis.navigator?.locks?.request(message.lock, () => this.#removePage(port));
        break;
      case "reconnect":
        this.#scheduleReconnect();
        break;
      case "leave":
        this.#removePage(port);
        break;
    }
  }

  /** Close the connection while the page is hidden; `resume` continues after the last events. */
  pause(): void {
    this.#paused = true;
    this.#disconnect();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#scheduleReconnect();
  }

  #removePage(port: Port): void {
    this.#pages.delete(port);
    this.#unsubscribe((subscription) => subscription.port === port);
  }

  #unsubscribe(matches: (subscription: Subscription) => boolean): void {
    const remaining = this.#subscriptions.filter((subscription) => !matches(subscription));
    if (remaining.length === this.#subscriptions.length) return;
    this.#subscriptions = remaining;
    this.#scheduleReconnect();
  }

  #scheduleReconnect(): void {
    this.#reconnectTimer ??= setTimeout(() => {
      this.#reconnectTimer = null;
      if (!this.#paused) this.#connect();
    }, GATHER_MS);
  }

  #connect(): void {
    this.#disconnect();
    for (const excess of this.#subscriptions.slice(MAX_STREAMS)) this.#fail(excess, "too_many_streams");
    const order = [...this.#subscriptions];
    if (order.length === 0) return;
    const source = this.#open(addressOf(order));
    this.#source = source;
    this.#lastMessage = Date.now();
    this.#silenceTimer = setInterval(() => this.#checkSilence(), CHECK_EVERY_MS);
    const listen = (type: string, handle: (subscription: Subscription, lines: readonly string[]) => void) =>
      source.addEventListener(type, (message) => {
        if (this.#source !== source) return;
        this.#lastMessage = Date.now();
        const [number, ...lines] = message.data.split("\n");
        const subscription = order[Number(number)];
        if (subscription !== undefined && this.#subscriptions.includes(subscription)) handle(subscription, lines);
      });
    listen("opened", (subscription) => this.#opened(subscription));
    listen("data", (subscription, lines) => this.#forward(subscription, lines));
    listen("refused", (subscription, lines) => this.#fail(subscription, codeOf(lines.join("\n"))));
    listen("ended", (subscription) => this.#fail(subscription, ""));
    listen("beat", () => undefined);
    source.addEventListener("error", () => {
      if (this.#source === source) this.#failAll();
    });
  }

  #disconnect(): void {
    this.#source?.close();
    this.#source = null;
    if (this.#silenceTimer !== null) clearInterval(this.#silenceTimer);
    this.#silenceTimer = null;
  }

  #checkSilence(): void {
    if (Date.now() - this.#lastMessage > SILENCE_MS) this.#failAll();
    else for (const port of this.#pages) port.postMessage({ kind: "beat" });
  }

  #opened(subscription: Subscription): void {
    // Reconnects for the sake of other streams are not reported.
    if (!subscription.opened) post(subscription, "open");
    subscription.opened = true;
  }

  #forward(subscription: Subscription, lines: readonly string[]): void {
    const { event, id, data } = fieldsOf(lines);
    if (id !== undefined) subscription.after = id;
    // An id without data is the position at which the stream begins.
    post(subscription, data === undefined ? "position" : (event ?? "message"), data, id);
  }

  #fail(subscription: Subscription, code: string): void {
    this.#subscriptions = this.#subscriptions.filter((other) => other !== subscription);
    post(subscription, "error", code);
  }

  #failAll(): void {
    this.#disconnect();
    for (const subscription of [...this.#subscriptions]) this.#fail(subscription, "");
  }
}

function post({ port, key }: Subscription, type: string, data = "", id = ""): void {
  port.postMessage({ kind: "message", key, type, id, data });
}

function addressOf(subscriptions: readonly Subscription[]): string {
  const streams = subscriptions.map(({ after, address }) => (after === null ? address : `${after} ${address}`));
  return `${STREAM}?${streams.map((stream) => `of=${encodeURIComponent(stream)}`).join("&")}`;
}

/** The fields of one server-sent event, wrapped in a message of the shared connection. */
function fieldsOf(lines: readonly string[]): { readonly [name: string]: string | undefined } {
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(": ");
      return colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 2)];
    }),
  );
}

function codeOf(text: string): string {
  try {
    const body = parseJson(text);
    const error = isObject(body) ? (body["error"] ?? body) : undefined;
    return isObject(error) && typeof error["code"] === "string" ? error["code"] : "";
  } catch {
    return "";
  }
}
