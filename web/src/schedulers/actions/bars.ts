/** What was done when, as bars: segments that ran or run, waits before them, holds after an interrupt.
 *
 * The past comes from the events, the present from what the world says of its actions; nothing is guessed.
 */

import type { ActionView, WorldNow } from "../../api/types";
import { recordOf } from "../shared/engine";
import type { WorldEvent } from "./model";
import { meta, metaNumber, minuteOf } from "./model";

export type BarKind = "done" | "interrupted" | "running" | "waited" | "waiting" | "held" | "suspended";

export interface Bar {
  readonly key: string;
  readonly action: string;
  readonly actor: string;
  readonly verb: string;
  readonly segment: number;
  readonly kind: BarKind;
  readonly from: number;
  readonly to: number;
  readonly locks: readonly string[];
  readonly pc: boolean;
  /** Who interrupted it. */
  readonly by: string | null;
}

interface Open {
  readonly event: WorldEvent;
  readonly from: number;
}

/** All bars that can be told from `events` (oldest first) and the present, oldest first. */
export function barsOf(events: readonly WorldEvent[], now: WorldNow): Bar[] {
  const bars: Bar[] = [];
  const open = new Map<string, Open>();
  const interrupted = new Map<string, Open>();
  const close = (event: WorldEvent, at: number, kind: "done" | "interrupted") => {
    const id = event.action_id ?? "";
    const begun = open.get(id);
    open.delete(id);
    if (begun) bars.push(bar(begun.event, now, kind, begun.from, at, kind === "interrupted" ? by(event) : null));
    if (kind === "interrupted") interrupted.set(id, { event, from: at });
  };
  for (const event of events) {
    if (event.action_id === null) continue;
    const at = minuteOf(event, now);
    if (event.type === "start") {
      const waited = metaNumber(event, "waited");
      const broken = interrupted.get(event.action_id);
      if (broken && broken.from < at - waited)
        bars.push(bar(event, now, "held", broken.from, at - waited, by(broken.event)));
      if (waited > 0) bars.push(bar(event, now, "waited", at - waited, at));
      interrupted.delete(event.action_id);
      open.set(event.action_id, { event, from: at });
    } else if (event.type === "end") close(event, at, "done");
    else if (event.type === "interrupt") close(event, at, "interrupted");
  }
  bars.push(...now.actions.flatMap((action) => present(action, now, interrupted.get(action.id))));
  const known = new Set(now.actions.map((action) => action.id));
  // The stream may be ahead of the last look at the world.
  for (const [id, { event, from }] of open)
    if (!known.has(id) && recordOf(event.id) > now.n)
      bars.push(bar(event, now, "running", from, from + metaNumber(event, "d")));
  return bars.sort((one, other) => one.from - other.from || one.to - other.to || compare(one.key, other.key));
}

function present(action: ActionView, now: WorldNow, broken: Open | undefined): Bar[] {
  const { id, actor, verb, segment, stage, locks, pc } = action;
  const whose = { action: id, actor, verb, segment, locks, pc };
  const one = (kind: BarKind, from: number, to: number): Bar => ({
    ...whose,
    key: `${id}/${segment}/${kind}`,
    kind,
    from,
    to,
    by: broken ? by(broken.event) : null,
  });
  const since = broken?.from ?? now.t;
  switch (stage) {
    case "running":
      return [one("running", action.since ?? now.t, action.until ?? now.t)];
    case "waiting": {
      const from = action.since ?? now.t;
      const held = broken && broken.from < from ? [one("held", broken.from, from)] : [];
      return [...held, one("waiting", from, Math.max(now.t, from))];
    }
    case "held":
      return [one("held", since, action.until ?? now.t)];
    case "suspended":
      return [one("suspended", since, now.t)];
  }
}

function bar(
  event: WorldEvent,
  now: WorldNow,
  kind: BarKind,
  from: number,
  to: number,
  who: string | null = null,
): Bar {
  const segment = metaNumber(event, "segment");
  const verb = event.verb ?? "";
  return {
    key: `${event.action_id}/${segment}/${kind}`,
    action: event.action_id ?? "",
    actor: event.actor ?? "",
    verb,
    segment,
    kind,
    from,
    to,
    locks: now.locks_of[verb] ?? [],
    pc: event.pc,
    by: who,
  };
}

function by(event: WorldEvent): string | null {
  const who = meta(event)["by"];
  return typeof who === "string" ? who : null;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
