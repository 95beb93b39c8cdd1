/** One connection for the streams of many pages: it is opened anew whenever a page wants another set of streams.
 *
 * Every stream goes on after the last event that came of it, so a reopening loses nothing and its pages do not notice.
 * A connection on which nothing is heard, not even the beat of the server, counts as lost, whatever the socket says:
 * every stream on it ends with an error, and it is for the pages to ask for it again.
 */

import { isObject, parseJson } from "./json";
import type { Source } from "./stream";

export const STREAM = "/api/v1/stream";
export const MOST_STREAMS = 64;
/** Pages that open together are gathered into one connection. */
export const GATHER_MS = 25;
export const LOOK_EVERY_MS = 5_000;
/** Three beats of the server. */
export const SILENCE_MS = 15_000;

/** What a page asks for; `key` is the page's own number for a stream. */
export type ToHub =
  | { readonly kind: "open"; readonly key: number; readonly address: string }
  | { readonly kind: "close"; readonly key: number }
  /** Whoever holds the lock is there; once it is free, the page is gone. */
  | { readonly kind: "here"; readonly lock: string }
  /** Who we are has changed: ask again with what the browser sends now. */
  | { readonly kind: "again" }
  | { readonly kind: "bye" };

/** What a page is told: a message of a stream (`open`, `place` and `error` are said about it), or that the hub is alive. */
export type FromHub =
  | { readonly kind: "said"; readonly key: number; readonly type: string; readonly id: string; readonly data: string }
  | { readonly kind: "beat" };

export interface Port {
  postMessage(message: FromHub): void;
}

interface Followed {
  readonly port: Port;
  readonly key: number;
  readonly address: string;
  after: string | null;
  opened: boolean;
}

export class Hub {
  readonly #open: (address: string) => Source;
  readonly #pages = new Set<Port>();
  #followed: Followed[] = [];
  #source: Source | null = null;
  #heard = 0;
  #paused = false;
  #gathering: ReturnType<typeof setTimeout> | null = null;
  #looking: ReturnType<typeof setInterval> | null = null;

  constructor(open: (address: string) => Source) {
    this.#open = open;
  }

  take(port: Port, message: ToHub): void {
    this.#pages.add(port);
    switch (message.kind) {
      case "open":
        this.#followed.push({ port, key: message.key, address: message.address, after: null, opened: false });
        this.#changed();
        break;
      case "close":
        this.#drop((one) => one.port === port && one.key === message.key);
        break;
      case "here":
        void globalThis.navigator?.locks?.request(message.lock, () => this.#gone(port));
        break;
      case "again":
        this.#changed();
        break;
      case "bye":
        this.#gone(port);
        break;
    }
  }

  /** Nobody looks: the connection is given back, and taken again where it was by `resume`. */
  pause(): void {
    this.#paused = true;
    this.#disconnect();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#changed();
  }

  #gone(port: Port): void {
    this.#pages.delete(port);
    this.#drop((one) => one.port === port);
  }

  #drop(which: (one: Followed) => boolean): void {
    const left = this.#followed.filter((one) => !which(one));
    if (left.length === this.#followed.length) return;
    this.#followed = left;
    this.#changed();
  }

  #changed(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = null;
      if (!this.#paused) this.#connect();
    }, GATHER_MS);
  }

  #connect(): void {
    this.#disconnect();
    for (const one of this.#followed.slice(MOST_STREAMS)) this.#lose(one, "too_many_streams");
    const order = [...this.#followed];
    if (order.length === 0) return;
    const source = this.#open(addressOf(order));
    this.#source = source;
    this.#heard = Date.now();
    this.#looking = setInterval(() => this.#look(), LOOK_EVERY_MS);
    const listen = (type: string, act: (one: Followed, lines: readonly string[]) => void) =>
      source.addEventListener(type, (message) => {
        if (this.#source !== source) return;
        this.#heard = Date.now();
        const [number, ...lines] = message.data.split("\n");
        const one = order[Number(number)];
        if (one !== undefined && this.#followed.includes(one)) act(one, lines);
      });
    listen("opened", (one) => this.#opened(one));
    listen("told", (one, lines) => this.#told(one, lines));
    listen("refused", (one, lines) => this.#lose(one, codeOf(lines.join("\n"))));
    listen("ended", (one) => this.#lose(one, ""));
    listen("beat", () => undefined);
    source.addEventListener("error", () => {
      if (this.#source === source) this.#loseAll();
    });
  }

  #disconnect(): void {
    this.#source?.close();
    this.#source = null;
    if (this.#looking !== null) clearInterval(this.#looking);
    this.#looking = null;
  }

  #look(): void {
    if (Date.now() - this.#heard > SILENCE_MS) this.#loseAll();
    else for (const port of this.#pages) port.postMessage({ kind: "beat" });
  }

  #opened(one: Followed): void {
    // A page does not hear of reopenings that only others wanted.
    if (!one.opened) say(one, "open");
    one.opened = true;
  }

  #told(one: Followed, lines: readonly string[]): void {
    const { event, id, data } = fieldsOf(lines);
    if (id !== undefined) one.after = id;
    // An id alone says where the stream begins.
    say(one, data === undefined ? "place" : (event ?? "message"), data, id);
  }

  #lose(one: Followed, code: string): void {
    this.#followed = this.#followed.filter((other) => other !== one);
    say(one, "error", code);
  }

  #loseAll(): void {
    this.#disconnect();
    for (const one of [...this.#followed]) this.#lose(one, "");
  }
}

function say(one: Followed, type: string, data = "", id = ""): void {
  one.port.postMessage({ kind: "said", key: one.key, type, id, data });
}

function addressOf(followed: readonly Followed[]): string {
  const wanted = followed.map(({ after, address }) => (after === null ? address : `${after} ${address}`));
  return `${STREAM}?${wanted.map((one) => `of=${encodeURIComponent(one)}`).join("&")}`;
}

/** The fields of a message of server-sent events, as it came by the common connection. */
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
