/** Event sources whose messages come from the test. */

import type { Source } from "../api/stream";

export class ScriptedSource implements Source {
  readonly address: string;
  closed = false;
  readonly #listeners: Record<string, ((event: MessageEvent<string>) => void)[]> = {};

  constructor(address: string) {
    this.address = address;
  }

  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void {
    this.#listeners[type] = [...(this.#listeners[type] ?? []), listener];
  }

  close(): void {
    this.closed = true;
  }

  emit(type: string, data = "", lastEventId = ""): void {
    for (const listener of this.#listeners[type] ?? []) listener(new MessageEvent<string>(type, { data, lastEventId }));
  }
}

/** Opens scripted sources and records them in order. */
export class ScriptedSources {
  readonly opened: ScriptedSource[] = [];

  readonly open = (address: string): Source => {
    const source = new ScriptedSource(address);
    this.opened.push(source);
    return source;
  };

  get newest(): ScriptedSource {
    const source = this.opened.at(-1);
    if (source === undefined) throw new Error("no source was opened");
    return source;
  }
}
