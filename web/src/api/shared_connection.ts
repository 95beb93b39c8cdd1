/** The page's end of the shared connection: each stream looks like an event source of its own.
 *
 * The hub runs in a shared worker, one for all tabs. In browsers without shared workers it runs in the page and closes
 * its connection while the page is hidden. A silent worker is dropped: its streams end with an error, and the next ones
 * use a new worker.
 */

import type { FromHub, Port, ToHub } from "./hub";
import { CHECK_EVERY_MS, Hub } from "./hub";
import type { Source } from "./stream";

/** Longer than the hub's own `SILENCE_MS`, so that the hub reports a lost server first. */
export const WORKER_SILENCE_MS = 25_000;

/** An open link to a hub. */
export interface HubLink {
  readonly send: (message: ToHub) => void;
  readonly close: () => void;
}

/** Opens a link to a hub; `receive` is called with each of its messages. */
export type OpenLink = (receive: (message: FromHub) => void) => HubLink;

export class SharedConnection {
  readonly #openLink: OpenLink;
  readonly #sources = new Map<number, SharedSource>();
  #link: HubLink | null = null;
  #nextKey = 0;
  #lastMessage = 0;
  #silenceTimer: ReturnType<typeof setInterval> | null = null;

  constructor(openLink: OpenLink) {
    this.#openLink = openLink;
  }

  readonly open = (address: string): Source => {
    const key = this.#nextKey++;
    const source = new SharedSource(() => this.#close(key));
    this.#sources.set(key, source);
    this.#lastMessage = Date.now();
    this.#silenceTimer ??= setInterval(() => this.#checkSilence(), CHECK_EVERY_MS);
    this.#hub().send({ kind: "open", key, address });
    return source;
  };

  /** Reopen the connection after a change of session, so that the browser sends the new cookie. */
  reconnect(): void {
    this.#link?.send({ kind: "reconnect" });
  }

  /** Leave the hub; open streams end with an error. */
  leave(): void {
    this.#link?.send({ kind: "leave" });
    this.#link?.close();
    this.#link = null;
    this.#failAll();
  }

  #hub(): HubLink {
    this.#link ??= this.#openLink((message) => this.#receive(message));
    return this.#link;
  }

  #receive(message: FromHub): void {
    this.#lastMessage = Date.now();
    if (message.kind === "beat") return;
    const source = this.#sources.get(message.key);
    if (message.type === "error") this.#forget(message.key);
    source?.dispatch(message.type, message.data, message.id);
  }

  #close(key: number): void {
    if (this.#forget(key)) this.#link?.send({ kind: "close", key });
  }

  #forget(key: number): boolean {
    const known = this.#sources.delete(key);
    if (this.#sources.size === 0 && this.#silenceTimer !== null) {
      clearInterval(this.#silenceTimer);
      this.#silenceTimer = null;
    }
    return known;
  }

  #checkSilence(): void {
    if (Date.now() - this.#lastMessage > WORKER_SILENCE_MS) this.leave();
  }

  #failAll(): void {
    const sources = [...this.#sources.values()];
    for (const key of [...this.#sources.keys()]) this.#forget(key);
    for (const source of sources) source.dispatch("error");
  }
}

class SharedSource implements Source {
  readonly close: () => void;
  readonly #listeners = new Map<string, ((event: MessageEvent<string>) => void)[]>();

  constructor(close: () => void) {
    this.close = close;
  }

  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  dispatch(type: string, data = "", lastEventId = ""): void {
    for (const listener of this.#listeners.get(type) ?? [])
      listener(new MessageEvent<string>(type, { data, lastEventId }));
  }
}

/** Link to the hub in the shared worker. The page holds a lock while it lives, so the worker notices also a crash; without
 * locks only the `leave` message tells that a page is gone. */
function linkToWorker(receive: (message: FromHub) => void): HubLink {
  const worker = new SharedWorker(new URL("./hub_worker.ts", import.meta.url), { type: "module", name: "pendula" });
  const held = new AbortController();
  worker.port.onmessage = (message: MessageEvent<FromHub>) => receive(message.data);
  const send = (message: ToHub) => worker.port.postMessage(message);
  const lock = `pendula-page-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  void navigator.locks?.request(lock, () => {
    send({ kind: "lock", lock });
    return new Promise<void>((free) => held.signal.addEventListener("abort", () => free()));
  });
  return {
    send,
    close: () => {
      held.abort();
      worker.port.close();
    },
  };
}

/** Link to a hub in this page. */
function linkInPage(receive: (message: FromHub) => void): HubLink {
  const hub = new Hub((address) => new EventSource(address));
  const port: Port = { postMessage: receive };
  const onVisibility = () => (document.visibilityState === "hidden" ? hub.pause() : hub.resume());
  // A paused hub sends nothing; without these heartbeats it would be dropped as silent.
  const heartbeat = setInterval(() => receive({ kind: "beat" }), CHECK_EVERY_MS);
  document.addEventListener("visibilitychange", onVisibility);
  return {
    send: (message) => hub.receive(port, message),
    close: () => {
      clearInterval(heartbeat);
      document.removeEventListener("visibilitychange", onVisibility);
    },
  };
}

export const sharedConnection = new SharedConnection((receive) =>
  typeof SharedWorker === "undefined" ? linkInPage(receive) : linkToWorker(receive),
);
