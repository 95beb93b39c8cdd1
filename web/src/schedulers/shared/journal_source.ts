/** The journal of an engine or a run as the source of a time slider. */

import type { Api, JournalAddress } from "../../api/client";
import type { Moment, MomentView } from "../../api/types";
import type { Stop, StopAndNext, StopSource } from "../../components/player";

type MomentsApi = Pick<Api, "moments" | "moment" | "incident">;

export class EngineJournal implements StopSource {
  readonly #api: MomentsApi;
  readonly #address: JournalAddress;

  constructor(api: MomentsApi, address: JournalAddress) {
    this.#api = api;
    this.#address = address;
  }

  async sample(points: number): Promise<readonly Stop[]> {
    return (await this.#api.moments(this.#address, points)).moments.map(stopOf);
  }

  async atRecord(n: number): Promise<StopAndNext> {
    return stopAndNext(await this.#api.moment(this.#address, { n }));
  }

  async atWall(ms: number): Promise<StopAndNext> {
    return stopAndNext(await this.#api.moment(this.#address, { utc_ms: Math.max(0, Math.floor(ms)) }));
  }

  async incident(side: "after" | "before", n: number) {
    return (await this.#api.incident(this.#address, side === "after" ? { after: n } : { before: n })).incident;
  }
}

function stopOf({ n, t, at }: Moment): Stop {
  return { n, t, ms: at === null ? null : Date.parse(at) };
}

function stopAndNext({ moment, next }: MomentView): StopAndNext {
  return { stop: moment === null ? null : stopOf(moment), next: next === null ? null : stopOf(next) };
}
