/** The journal of an engine, or of a run, as a time slider asks for it. */

import type { Api, JournalAddress } from "../../api/client";
import type { Moment, MomentView } from "../../api/types";
import type { FoundStop, Stop, StopSource } from "../../components/player";

type Asked = Pick<Api, "moments" | "moment" | "incident">;

export class EngineJournal implements StopSource {
  readonly #api: Asked;
  readonly #address: JournalAddress;

  constructor(api: Asked, address: JournalAddress) {
    this.#api = api;
    this.#address = address;
  }

  async spread(points: number): Promise<readonly Stop[]> {
    return (await this.#api.moments(this.#address, points)).moments.map(stopOf);
  }

  async atRecord(n: number): Promise<FoundStop> {
    return foundOf(await this.#api.moment(this.#address, { n }));
  }

  async atWall(ms: number): Promise<FoundStop> {
    return foundOf(await this.#api.moment(this.#address, { utc_ms: Math.max(0, Math.floor(ms)) }));
  }

  async incident(side: "after" | "before", n: number) {
    return (await this.#api.incident(this.#address, side === "after" ? { after: n } : { before: n })).incident;
  }
}

function stopOf({ n, t, at }: Moment): Stop {
  return { n, t, ms: at === null ? null : Date.parse(at) };
}

function foundOf({ moment, next }: MomentView): FoundStop {
  return { stop: moment === null ? null : stopOf(moment), next: next === null ? null : stopOf(next) };
}
