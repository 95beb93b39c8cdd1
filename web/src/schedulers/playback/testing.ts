/** A player and its items, for tests. */

import type { ExposureView, ItemView, PlayerNow } from "../../api/types";

export function item(changes: Partial<ItemView> = {}): ItemView {
  return {
    id: 11,
    channel: "dawn",
    origin: "base",
    epoch_id: 0,
    ordinal: 3,
    ts: 1000,
    kind: 0,
    format: 0,
    flags: 0,
    dwell_ms: 4000,
    storage_key: "",
    payload: btoa(String.fromCharCode(...Array.from({ length: 32 }, (_, index) => index))),
    at: 0,
    ...changes,
  };
}

export function exposure(changes: Partial<ExposureView> = {}): ExposureView {
  return {
    channel: "dawn",
    weight: 49152,
    target_ppm: 750_000,
    shown: 2,
    actual_ppm: 666_666,
    records: 24,
    banned: 0,
    generation: 1,
    readable: true,
    paused: false,
    ...changes,
  };
}

/** A player that has shown its item for one second. */
export function player(changes: Partial<PlayerNow> = {}): PlayerNow {
  return {
    n: 7,
    t: 10_000,
    clock: 11_000,
    next_due: 14_000,
    broken: [],
    paused: false,
    item: item(),
    started_at: 10_000,
    started_utc: "2025-07-01T08:00:00Z",
    ends_at: 14_000,
    ends_utc: "2025-07-01T08:00:04Z",
    left_ms: null,
    epoch_id: 0,
    last_reset: null,
    coming: [],
    before: [],
    exposure: [],
    new_shown: 0,
    pool: [],
    probability_64: 0,
    bans: [],
    day_part: null,
    diagnostics: [],
    settings: {},
    dwell_ms: 4000,
    ...changes,
  };
}
