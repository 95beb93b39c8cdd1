/** The page's end of the common connection: streams that look like event sources of their own.
 *
 * The hub is in a shared worker, one for all tabs. Where there are none, it is in the page, and lets its connection go
 * while the page is hidden. A worker that is not heard any more is given up: its streams are lost, and the next ones go
 * through a new one.
 */

import type { FromHub, Port, ToHub } from "./hub";
import { Hub, LOOK_EVERY_MS } from "./hub";
import type { Source } from "./stream";

/** Longer than the hub waits for the server: what it has to say about that comes first. */
export const WORKER_SILENCE_MS = 25_000;

/** The way to a hub, and what ends it. */
export interface Way {
  readonly send: (message: ToHub) => void;
  readonly end: () => void;
}

/** Finds the way to a hub; `hear` is called with everything it says. */
export type Reach = (hear: (message: FromHub) => void) => Way;

export class Sharing {
  readonly #reach: Reach;
  readonly #open = new Map<number, SharedSource>();
  #way: Way | null = null;
  #keys = 0;
  #heard = 0;
  #looking: ReturnType<typeof setInterval> | null = null;

  constructor(reach: Reach) {
    this.#reach = reach;
  }

  readonly open = (address: string): Source => {
    const key = this.#keys++;
    const source = new SharedSource(() => this.#close(key));
    this.#open.set(key, source);
    this.#heard = Date.now();
    this.#looking ??= setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#reached().send({ kind: "open", key, address });
    return source;
  };

  /** Who we are has changed: the common connection is opened with what the browser sends from now on. */
  again(): void {
    this.#way?.send({ kind: "again" });
  }

  /** The page goes: the hub forgets it, and whatever was open is lost. */
  leave(): void {
    this.#way?.send({ kind: "bye" });
    this.#way?.end();
    this.#way = null;
    this.#loseAll();
  }

  #reached(): Way {
    this.#way ??= this.#reach((message) => this.#hear(message));
    return this.#way;
  }

  #hear(message: FromHub): void {
    this.#heard = Date.now();
    if (message.kind === "beat") return;
    const source = this.#open.get(message.key);
    if (message.type === "error") this.#forget(message.key);
    source?.say(message.type, message.data, message.id);
  }

  #close(key: number): void {
    if (this.#forget(key)) this.#way?.send({ kind: "close", key });
  }

  #forget(key: number): boolean {
    const known = this.#open.delete(key);
    if (this.#open.size === 0 && this.#looking !== null) {
      clearInterval(this.#looking);
      this.#looking = null;
    }
    return known;
  }

  #look(): void {
    if (Date.now() - this.#heard > WORKER_SILENCE_MS) this.leave();
  }

  #loseAll(): void {
    const lost = [...this.#open.values()];
    for (const key of [...this.#open.keys()]) this.#forget(key);
    for (const source of lost) source.say("error");
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

  say(type: string, data = "", lastEventId = ""): void {
    for (const listener of this.#listeners.get(type) ?? [])
      listener(new MessageEvent<string>(type, { data, lastEventId }));
  }
}

/** The hub in the worker that all tabs share. A lock, held as long as the page lives, tells the worker when it is gone,
 * also when it crashed; where a browser gives no locks, a page can only say so itself. */
function reachWorker(hear: (message: FromHub) => void): Way {
  const worker = new SharedWorker(new URL("./hub_worker.ts", import.meta.url), { type: "module", name: "pendula" });
  const held = new AbortController();
  worker.port.onmessage = (message: MessageEvent<FromHub>) => hear(message.data);
  const send = (message: ToHub) => worker.port.postMessage(message);
  const lock = `pendula-page-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  void navigator.locks?.request(lock, () => {
    send({ kind: "here", lock });
    return new Promise<void>((free) => held.signal.addEventListener("abort", () => free()));
  });
  return {
    send,
    end: () => {
      held.abort();
      worker.port.close();
    },
  };
}

/** A hub of the page's own. */
function reachHere(hear: (message: FromHub) => void): Way {
  const hub = new Hub((address) => new EventSource(address));
  const port: Port = { postMessage: hear };
  const onVisibility = () => (document.visibilityState === "hidden" ? hub.pause() : hub.resume());
  // A hidden page is not told anything, which is no reason to give its hub up.
  const beating = setInterval(() => hear({ kind: "beat" }), LOOK_EVERY_MS);
  document.addEventListener("visibilitychange", onVisibility);
  return {
    send: (message) => hub.take(port, message),
    end: () => {
      clearInterval(beating);
      document.removeEventListener("visibilitychange", onVisibility);
    },
  };
}

/** The streams of this page. */
export const sharing = new Sharing((hear) =>
  typeof SharedWorker === "undefined" ? reachHere(hear) : reachWorker(hear),
);
