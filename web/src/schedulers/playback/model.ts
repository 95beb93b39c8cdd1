/** A player as the server tells it, and how its times and shares are written. Times are milliseconds of the player. */

import type { JsonObject } from "../../api/json";
import type { ItemView, PlayerNow } from "../../api/types";

const ORIGINS: Readonly<Record<string, string>> = {
  base: "its channel's turn",
  nae: "new artwork",
  nae_fallback: "instead of new artwork",
  pinned: "somebody wanted to see it",
};

export function originOf({ origin }: ItemView): string {
  return ORIGINS[origin] ?? origin;
}

export function channelOf({ channel, origin }: ItemView): string {
  return channel ?? (origin === "pinned" ? "pinned" : "new artwork");
}

/** One item among all that were ever shown: numbers begin anew with each epoch, and what is pinned has none. */
export function keyOf({ epoch_id, ordinal, id }: ItemView): string {
  return ordinal === 0 ? `${epoch_id}.pin.${id}` : `${epoch_id}.${ordinal}`;
}

/** The wish to see an item next. */
export function showNext({ id, ts, kind, format, flags, dwell_ms, storage_key, payload }: ItemView): JsonObject {
  return { type: "show_next", id, ts, kind, format, flags, dwell_ms, storage_key, payload };
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
