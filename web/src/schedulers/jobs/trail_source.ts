/** The trail of jobs as a time slider asks for it: events have numbers, and times of the wall. */

import type { Api } from "../../api/client";
import type { SchedulerEvent } from "../../api/types";
import type { Stop, StopAndNext, StopSource } from "../../components/player";
import { eventId, eventNumber, said } from "./model";

const PAGE = 200;
const MOST_PAGES = 50;
const TROUBLE = new Set<unknown>(["dead_letter", "failed"]);

type Asked = Pick<Api, "get">;

export class TrailSource implements StopSource {
  readonly #api: Asked;
  readonly #ends: () => { readonly first: number; readonly last: number };
  /** Events in a row, the last that were read: whoever plays asks for the next moment and the next. */
  #read: readonly SchedulerEvent[] = [];

  constructor(api: Asked, ends: () => { readonly first: number; readonly last: number }) {
    this.#api = api;
    this.#ends = ends;
  }

  async sample(points: number): Promise<readonly Stop[]> {
    const { first, last } = this.#ends();
    const places = Array.from({ length: points }, (_, k) => Math.round(first + ((last - first) * k) / (points - 1)));
    const found = await Promise.all([...new Set(places)].map((n) => this.#after(n - 1, 1)));
    return found.flatMap(([event]) => (event === undefined ? [] : [stopOf(event)]));
  }

  async atRecord(n: number): Promise<StopAndNext> {
    this.#read = await this.#after(n - 1, PAGE);
    const [event, next] = this.#read;
    return { stop: event === undefined ? null : stopOf(event), next: next === undefined ? null : stopOf(next) };
  }

  async atWall(ms: number): Promise<StopAndNext> {
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const place = this.#read.findLastIndex((event) => Date.parse(event.timestamp) <= ms);
      const stop = this.#read[Math.max(0, place)];
      const next = this.#read[place + 1];
      if (stop !== undefined && next !== undefined) return { stop: stopOf(stop), next: stopOf(next) };
      const more = await this.#after(stop === undefined ? this.#ends().first - 1 : numberOf(stop), PAGE);
      if (more.length === 0) return { stop: stop === undefined ? null : stopOf(stop), next: null };
      this.#read = stop === undefined ? more : [stop, ...more];
    }
    const last = this.#read.at(-1);
    return { stop: last === undefined ? null : stopOf(last), next: null };
  }

  async incident(side: "after" | "before", n: number) {
    if (side === "before" && n <= 1) return null;
    const step = side === "after" ? PAGE : -PAGE;
    let from = side === "after" ? n : n - 1 - PAGE;
    for (let page = 0; page < MOST_PAGES; page += 1, from += step) {
      const events = await this.#after(Math.max(0, from), Math.min(PAGE, PAGE + from));
      const troubles = events.filter((event) => TROUBLE.has(event.after["status"]));
      const found = side === "after" ? troubles[0] : troubles.at(-1);
      if (found !== undefined) return { n: numberOf(found), sentence: sentenceOf(found) };
      if (events.length === 0 || from <= 0) return null;
    }
    return null;
  }

  async #after(n: number, limit: number): Promise<readonly SchedulerEvent[]> {
    const query = { after: n < 1 ? null : eventId(n), limit };
    return (await this.#api.get("/scheduler/audit", {}, query)).events;
  }
}

function numberOf({ id }: SchedulerEvent): number {
  return eventNumber(id);
}

function stopOf(event: SchedulerEvent): Stop {
  return { n: numberOf(event), t: null, ms: Date.parse(event.timestamp) };
}

function sentenceOf({ object_type, object_id, reason, after }: SchedulerEvent): string {
  return `${object_type} ${object_id}, ${said(String(after["status"]))}: ${reason}`;
}
