/** A world as the server tells it, and how its times are written. Times are minutes of the run. */

import type { Reason } from "../../api/client";
import type { Json, JsonObject } from "../../api/json";
import type { Gap } from "../../api/stream";

export type Stage = "running" | "waiting" | "held" | "suspended";

export interface Epoch {
  readonly index: number;
  readonly start_at: string;
  readonly end_at: string;
  readonly starts: number;
  readonly ends: number;
  readonly slot: number;
  readonly slots: number;
  readonly slot_minutes: number;
}

export interface Action {
  readonly id: string;
  readonly actor: string;
  readonly verb: string;
  readonly stage: Stage;
  readonly segment: number;
  readonly admission: number;
  readonly priority: number;
  readonly remaining: number;
  readonly locks: readonly string[];
  readonly pc: boolean;
  readonly since: number | null;
  readonly until: number | null;
  readonly why: Reason | null;
}

export interface Coming {
  readonly kind: "submit" | "interrupt" | "cancel" | "resume";
  readonly action_id: string;
  readonly actor: string | null;
  readonly verb: string | null;
  readonly t: number;
  readonly at: string;
}

export interface Lock {
  readonly name: string;
  readonly held_by: string | null;
  readonly until: number | null;
  readonly queue: readonly string[];
  readonly waiting: number;
}

export interface Resource {
  readonly name: string;
  readonly available: number | bigint;
  readonly reserved: number | bigint;
  readonly consumed: number | bigint;
  readonly produced: number | bigint;
}

/** How a world stands after record `n`. */
export interface WorldNow {
  readonly n: number;
  readonly t: number;
  readonly at: string;
  readonly start_at: string;
  readonly next_due: number | null;
  readonly broken: readonly string[];
  readonly epoch: Epoch;
  readonly pc: string | null;
  readonly counts: Readonly<Record<string, number>>;
  readonly actions: readonly Action[];
  readonly coming: readonly Coming[];
  readonly locks: readonly Lock[];
  readonly resources: readonly Resource[];
  /** The locks that each verb needs. */
  readonly locks_of: Readonly<Record<string, readonly string[]>>;
}

/** One event with its id; `t` counts from the start of its epoch. */
export interface WorldEvent {
  readonly id: string;
  readonly type: string;
  readonly epoch: number;
  readonly t: number;
  readonly action_id: string | null;
  readonly actor: string | null;
  readonly verb: string | null;
  readonly pc: boolean;
  readonly body: JsonObject;
}

export interface EventsPart {
  readonly events: readonly { readonly id: string; readonly event: JsonObject }[];
  readonly next: string | null;
  readonly more: boolean;
  /** What was asked for and is no longer in the journal. */
  readonly gap: Gap | null;
}

// Browsers write dates each in their own way.
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** The implicit lock that lets an actor do one thing at a time. */
const OF_ACTOR = "actor:";

export function isOfActor(lock: string): boolean {
  return lock.startsWith(OF_ACTOR);
}

export function readEvent(id: string, body: JsonObject): WorldEvent {
  return {
    id,
    type: String(body["type"]),
    epoch: whole(body["epoch"]),
    t: whole(body["t"]),
    action_id: text(body["action_id"]),
    actor: text(body["actor"]),
    verb: text(body["verb"]),
    pc: body["pc"] === true,
    body,
  };
}

/** The minute of the run in which an event was. */
export function minuteOf(event: WorldEvent, { epoch }: WorldNow): number {
  return epoch.starts + (event.epoch - epoch.index) * (epoch.ends - epoch.starts) + event.t;
}

/** A number in the meta of an event; 0 when it has none. */
export function metaNumber(event: WorldEvent, name: string): number {
  return whole(meta(event)[name]);
}

export function meta(event: WorldEvent): JsonObject {
  const found = event.body["meta"];
  return found !== null && typeof found === "object" && !Array.isArray(found) ? (found as JsonObject) : {};
}

/** The clock of a world: minutes of the run into times of its days. It knows no zones, as the world knows none. */
export class Clock {
  readonly #start: number;

  constructor(startAt: string) {
    this.#start = Date.parse(`${startAt.slice(0, 19)}Z`);
  }

  /** `08:05` */
  time(minute: number): string {
    return this.#iso(minute).slice(11, 16);
  }

  /** `Tue 1 Jul` */
  day(minute: number): string {
    const date = new Date(this.#ms(minute));
    return `${WEEKDAYS[date.getUTCDay()]} ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  }

  /** `Tue 08:05`: enough where neighbouring days are told apart. */
  moment(minute: number): string {
    return `${this.day(minute).slice(0, 3)} ${this.time(minute)}`;
  }

  /** The first minute from `minute` on at which the clock shows a multiple of `step` minutes. */
  nextTick(minute: number, step: number): number {
    const past = (((this.#ms(minute) / 60_000) % step) + step) % step;
    return past === 0 ? minute : minute + step - past;
  }

  #ms(minute: number): number {
    return this.#start + minute * 60_000;
  }

  #iso(minute: number): string {
    return new Date(this.#ms(minute)).toISOString();
  }
}

/** `45 min`, `2 h`, `2 h 05`. */
export function span(minutes: number): string {
  if (minutes < 60) return `${minutes} min`;
  const hours = `${Math.floor(minutes / 60)} h`;
  const rest = minutes % 60;
  return rest === 0 ? hours : `${hours} ${String(rest).padStart(2, "0")}`;
}

/** A verb as words: `mend_bridge` is `mend bridge`. */
export function words(verb: string): string {
  return verb.replaceAll("_", " ");
}

function whole(value: Json | undefined): number {
  return typeof value === "number" ? value : 0;
}

function text(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}
