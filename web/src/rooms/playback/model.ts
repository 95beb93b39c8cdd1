/** A player as the server tells it, and how its times and shares are written. Times are milliseconds of the player. */

import type { Reason } from "../../api/client";
import type { JsonObject } from "../../api/json";

export type Origin = "base" | "nae" | "nae_fallback";

export interface Item {
  readonly id: number | bigint;
  readonly channel: string | null;
  readonly origin: Origin;
  readonly epoch_id: number | bigint;
  readonly ordinal: number;
  readonly ts: number | bigint;
  readonly kind: number;
  readonly format: number;
  readonly flags: number;
  readonly dwell_ms: number;
  readonly storage_key: string;
  /** 32 bytes in base64. */
  readonly payload: string;
  /** The place of the record in its channel, 0 for the newest. */
  readonly at: number | null;
}

export interface Exposure {
  readonly channel: string;
  /** Of 65536. */
  readonly weight: number;
  readonly target_ppm: number;
  readonly shown: number;
  readonly actual_ppm: number | null;
  readonly records: number;
  readonly banned: number;
  readonly generation: number | bigint;
  readonly readable: boolean;
}

export interface Pooled {
  readonly id: number | bigint;
  readonly number: number;
  readonly priority_64: number;
  readonly ts: number | bigint;
  readonly payload: string;
}

export interface Diagnostic {
  readonly code: string;
  readonly sentence: string;
  readonly facts: JsonObject;
}

/** How a player stands after record `n`. */
export interface PlayerNow {
  readonly n: number;
  readonly t: number;
  /** What its clock said when this was told. */
  readonly clock: number;
  readonly next_due: number | null;
  readonly broken: readonly string[];
  readonly paused: boolean;
  readonly item: Item | null;
  readonly started_at: number;
  readonly started_utc: string | null;
  readonly ends_at: number | null;
  readonly ends_utc: string | null;
  readonly left_ms: number | null;
  readonly epoch_id: number | bigint;
  readonly last_reset: string | null;
  /** The next one first. */
  readonly coming: readonly Item[];
  /** The last one first. */
  readonly before: readonly Item[];
  readonly exposure: readonly Exposure[];
  readonly pool: readonly Pooled[];
  readonly probability_64: number;
  readonly diagnostics: readonly Diagnostic[];
  readonly dwell_ms: number;
}

export interface ItemWhy {
  readonly item: Item | null;
  readonly why: Reason;
}

const ORIGINS: Readonly<Record<Origin, string>> = {
  base: "its channel's turn",
  nae: "new artwork",
  nae_fallback: "instead of new artwork",
};

export function originOf({ origin }: Item): string {
  return ORIGINS[origin] ?? origin;
}

export function channelOf({ channel }: Item): string {
  return channel ?? "new artwork";
}

/** One item among all that were ever shown: numbers begin anew with each epoch. */
export function keyOf({ epoch_id, ordinal }: Item): string {
  return `${epoch_id}.${ordinal}`;
}

/** How much of its time an item has had at a moment of the player's clock, from 0 to 1. */
export function progressAt(now: PlayerNow, clock: number): number {
  if (now.item === null) return 0;
  const whole = now.item.dwell_ms;
  const left = now.ends_at === null ? (now.left_ms ?? whole) : now.ends_at - clock;
  return Math.min(1, Math.max(0, 1 - left / whole));
}

/** What is left of an item's time, in milliseconds; null where it stays until somebody says otherwise. */
export function leftAt(now: PlayerNow, clock: number): number | null {
  return now.ends_at === null ? now.left_ms : Math.max(0, now.ends_at - clock);
}

/** `4 s`, `2 min 05`, `1 h 30`. */
export function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const [large, small, unit] =
    seconds < 3600
      ? [Math.floor(seconds / 60), seconds % 60, "min"]
      : [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), "h"];
  return `${large} ${unit}${small === 0 ? "" : ` ${String(small).padStart(2, "0")}`}`;
}

/** Millionths as `33.3 %`. */
export function percent(ppm: number): string {
  return `${(ppm / 10_000).toFixed(1)} %`;
}

/** The time of day of a wall-clock moment, to the second; nothing where it is not known. */
export function timeOfDay(utc: string | null): string {
  return utc === null ? "" : new Date(utc).toLocaleTimeString("en-GB");
}
