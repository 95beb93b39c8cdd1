/** A small world and its events for tests. */

import type { JsonObject } from "../../api/json";
import type { ActionView, WorldNow } from "../../api/types";
import type { WorldEvent } from "./model";
import { readEvent } from "./model";

/** A world at 08:20 of its second day. */
export function world(changes: Partial<WorldNow> = {}): WorldNow {
  return {
    n: 40,
    t: 1940,
    at: "2025-07-02T08:20:00",
    start_at: "2025-07-01T00:00:00",
    next_due: 1980,
    broken: [],
    epoch: {
      index: 1,
      start_at: "2025-07-02T00:00:00",
      end_at: "2025-07-03T00:00:00",
      starts: 1440,
      ends: 2880,
      slot: 8,
      slots: 24,
      slot_minutes: 60,
    },
    pc: "mira",
    counts: { running: 0, waiting: 0, held: 0, suspended: 0, coming: 0, locks: 0 },
    actions: [],
    coming: [],
    locks: [],
    resources: [],
    locks_of: { bake: ["oven"] },
    places: {},
    ...changes,
  };
}

export function action(changes: Partial<ActionView> = {}): ActionView {
  return {
    id: "bread",
    actor: "bruno",
    verb: "bake",
    stage: "running",
    segment: 0,
    admission: 0,
    priority: 0,
    remaining: 40,
    locks: ["oven"],
    pc: false,
    since: 1900,
    until: 1980,
    why: null,
    params: null,
    ...changes,
  };
}

let number = 0;

/** An event of bruno's bread at a minute of the run. */
export function event(type: string, minute: number, meta: JsonObject = {}, changes: JsonObject = {}): WorldEvent {
  number += 1;
  const body = {
    type,
    action_id: "bread",
    actor: "bruno",
    verb: "bake",
    epoch: Math.floor(minute / 1440),
    t: minute % 1440,
    pc: false,
    meta: { segment: 0, ...meta },
    ...changes,
  };
  return readEvent({ id: `${number}.0`, event: body });
}
