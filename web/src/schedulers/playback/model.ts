/** Labels, times and shares of a player. Times are milliseconds of the player's clock. */

import type { JsonObject } from "../../api/json";
import type { ItemView, PlayerNow } from "../../api/types";

const ORIGINS: Readonly<Record<string, string>> = {
  base: "channel turn",
  nae: "new artwork",
  nae_fallback: "in place of new artwork",
  pinned: "requested by a viewer",
};

export function originOf({ origin }: ItemView): string {
  return ORIGINS[origin] ?? origin;
}

export function channelOf({ channel, origin }: ItemView): string {
  return channel ?? (origin === "pinned" ? "pinned" : "new artwork");
}

/** A unique key of a shown item. Ordinals restart with each epoch, and pinned items have none. */
export function keyOf({ epoch_id, ordinal, id }: ItemView): string {
  return ordinal === 0 ? `${epoch_id}.pin.${id}` : `${epoch_id}.${ordinal}`;
}

/** The command that shows an item next. */
export function showNext({ id, ts, kind, format, flags, dwell_ms, storage_key, payload }: ItemView): JsonObject {
  return { type: "show_next", id, ts, kind, format, flags, dwell_ms, storage_key, payload };
}

/** The elapsed part of the current item's time, from 0 to 1. */
export function progressAt(now: PlayerNow, clock: number): number {
  if (now.item === null) return 0;
  const whole = now.item.dwell_ms;
  const left = now.ends_at === null ? (now.left_ms ?? whole) : now.ends_at - clock;
  return Math.min(1, Math.max(0, 1 - left / whole));
}

/** The remaining milliseconds of the current item; `null` when it has no end. */
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

/** The local time of day, to the second; empty for `null`. */
export function timeOfDay(utc: string | null): string {
  return utc === null ? "" : new Date(utc).toLocaleTimeString("en-GB");
}
