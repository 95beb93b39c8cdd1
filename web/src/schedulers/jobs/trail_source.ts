/** The audit trail of jobs as the source of a time slider. */

import type { Api } from "../../api/client";
import type { SchedulerEvent } from "../../api/types";
import type { Stop, StopAndNext, StopSource } from "../../components/player";
import { eventId, eventNumber, readable } from "./model";

const PAGE = 200;
const MAX_PAGES = 50;
const INCIDENT_STATES = new Set<unknown>(["dead_letter", "failed"]);

type AuditApi = Pick<Api, "get">;

export class TrailSource implements StopSource {
  readonly #api: AuditApi;
  readonly #ends: () => { readonly first: number; readonly last: number };
  /** The last events fetched, in order; playback reads them one after the other. */
  #buffer: readonly SchedulerEvent[] = [];

  constructor(api: AuditApi, ends: () => { readonly first: number; readonly last: number }) {
    this.#api = api;
    this.#ends = ends;
  }

  async sample(points: number): Promise<readonly Stop[]> {
    const { first, last } = this.#ends();
    const numbers = Array.from({ length: points }, (_, k) => Math.round(first + ((last - first) * k) / (points - 1)));
    const pages = await Promise.all([...new Set(numbers)].map((n) => this.#after(n - 1, 1)));
    return pages.flatMap(([event]) => (event === undefined ? [] : [stopOf(event)]));
  }

  async atRecord(n: number): Promise<StopAndNext> {
    this.#buffer = await this.#after(n - 1, PAGE);
    const [event, next] = this.#buffer;
    return { stop: event === undefined ? null : stopOf(event), next: next === undefined ? null : stopOf(next) };
  }

  async atWall(ms: number): Promise<StopAndNext> {
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const index = this.#buffer.findLastIndex((event) => Date.parse(event.timestamp) <= ms);
      const stop = this.#buffer[Math.max(0, index)];
      const next = this.#buffer[index + 1];
      if (stop !== undefined && next !== undefined) return { stop: stopOf(stop), next: stopOf(next) };
      const more = await this.#after(stop === undefined ? this.#ends().first - 1 : numberOf(stop), PAGE);
      if (more.length === 0) return { stop: stop === undefined ? null : stopOf(stop), next: null };
      this.#buffer = stop === undefined ? more : [stop, ...more];
    }
    const last = this.#buffer.at(-1);
    return { stop: last === undefined ? null : stopOf(last), next: null };
  }

  async incident(side: "after" | "before", n: number) {
    if (side === "before" && n <= 1) return null;
    const step = side === "after" ? PAGE : -PAGE;
    let from = side === "after" ? n : n - 1 - PAGE;
    for (let page = 0; page < MAX_PAGES; page += 1, from += step) {
      const events = await this.#after(Math.max(0, from), Math.min(PAGE, PAGE + from));
      const incidents = events.filter((event) => INCIDENT_STATES.has(event.after["status"]));
      const incident = side === "after" ? incidents[0] : incidents.at(-1);
      if (incident !== undefined) return { n: numberOf(incident), sentence: sentenceOf(incident) };
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
  return `${object_type} ${object_id}, ${readable(String(after["status"]))}: ${reason}`;
}
