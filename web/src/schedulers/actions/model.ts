/** Events of a world and the format of its times. Times are minutes of the run. */

import type { Json, JsonObject } from "../../api/json";
import { inOneLine, isObject } from "../../api/json";
import type { EventView, Reason, WorldNow } from "../../api/types";

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

// Fixed names, since browsers format dates differently.
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** The implicit lock that lets an actor do one thing at a time. */
const ACTOR_PREFIX = "actor:";

export function isOfActor(lock: string): boolean {
  return lock.startsWith(ACTOR_PREFIX);
}

/** Replace implicit locks of actors by the actors in the sentences of a reason. */
export function withoutActorLocks(reason: Reason): Reason {
  return {
    ...reason,
    sentence: reason.sentence.replaceAll(/\bactor:(?=[\w-])/g, ""),
    because: reason.because.map(withoutActorLocks),
  };
}

export function readEvent({ id, event }: EventView): WorldEvent {
  const body = isObject(event) ? event : {};
  return {
    id,
    type: String(body["type"]),
    epoch: whole(body["epoch"]),
    t: whole(body["t"]),
    // An expiry belongs to no action.
    action_id: text(body["action_id"]) || null,
    actor: text(body["actor"]),
    verb: text(body["verb"]),
    pc: body["pc"] === true,
    body,
  };
}

/** The minute of the run of an event. */
export function minuteOf(event: WorldEvent, { epoch }: WorldNow): number {
  return epoch.starts + (event.epoch - epoch.index) * (epoch.ends - epoch.starts) + event.t;
}

/** A number in the meta of an event; 0 when it is missing. */
export function metaNumber(event: WorldEvent, name: string): number {
  return whole(meta(event)[name]);
}

export function meta(event: WorldEvent): JsonObject {
  const value = event.body["meta"];
  return isObject(value) ? value : {};
}

/** Converts minutes of the run to times of the world, which has no time zones. */
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

  /** `Tue 08:05`: enough to distinguish neighbouring days. */
  moment(minute: number): string {
    return `${this.day(minute).slice(0, 3)} ${this.time(minute)}`;
  }

  /** The first minute at or after `minute` at a multiple of `step` minutes of clock time. */
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

/** The parameters of an action in one line; empty when there are none. */
export function paramsOf(params: Json | undefined): string {
  const text = params === undefined || params === null ? "" : inOneLine(params);
  return text === "none" ? "" : text;
}

/** `45 min`, `2 h`, `2 h 05`. */
export function span(minutes: number): string {
  if (minutes < 60) return `${minutes} min`;
  const hours = `${Math.floor(minutes / 60)} h`;
  const rest = minutes % 60;
  return rest === 0 ? hours : `${hours} ${String(rest).padStart(2, "0")}`;
}

/** A verb with spaces: `mend_bridge` is `mend bridge`. */
export function words(verb: string): string {
  return verb.replaceAll("_", " ");
}

function whole(value: Json | undefined): number {
  return typeof value === "number" ? value : 0;
}

function text(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}
