/** Bars of the timeline: segments, waits before them, and holds after an interrupt.
 *
 * The past is taken from events, the present from the actions of the world state.
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
  /** The source of the interrupt. */
  readonly by: string | null;
}

interface OpenSegment {
  readonly event: WorldEvent;
  readonly from: number;
}

/** The bars of `events` (oldest first) and of the present, oldest first. */
export function barsOf(events: readonly WorldEvent[], now: WorldNow): Bar[] {
  const bars: Bar[] = [];
  const open = new Map<string, OpenSegment>();
  const interrupted = new Map<string, OpenSegment>();
  const close = (event: WorldEvent, at: number, kind: "done" | "interrupted") => {
    const id = event.action_id ?? "";
    const segment = open.get(id);
    open.delete(id);
    if (segment) bars.push(bar(segment.event, now, kind, segment.from, at, kind === "interrupted" ? by(event) : null));
    if (kind === "interrupted") interrupted.set(id, { event, from: at });
  };
  for (const event of events) {
    if (event.action_id === null) continue;
    const at = minuteOf(event, now);
    if (event.type === "start") {
      const waited = metaNumber(event, "waited");
      const interruption = interrupted.get(event.action_id);
      if (interruption && interruption.from < at - waited)
        bars.push(bar(event, now, "held", interruption.from, at - waited, by(interruption.event)));
      if (waited > 0) bars.push(bar(event, now, "waited", at - waited, at));
      interrupted.delete(event.action_id);
      open.set(event.action_id, { event, from: at });
    } else if (event.type === "end") close(event, at, "done");
    else if (event.type === "interrupt") close(event, at, "interrupted");
  }
  bars.push(...now.actions.flatMap((action) => present(action, now, interrupted.get(action.id))));
  const known = new Set(now.actions.map((action) => action.id));
  // The stream may be ahead of the world state.
  for (const [id, { event, from }] of open)
    if (!known.has(id) && recordOf(event.id) > now.n)
      bars.push(bar(event, now, "running", from, from + metaNumber(event, "d")));
  return bars.sort((a, b) => a.from - b.from || a.to - b.to || compare(a.key, b.key));
}

function present(action: ActionView, now: WorldNow, interruption: OpenSegment | undefined): Bar[] {
  const { id, actor, verb, segment, stage, locks, pc } = action;
  const common = { action: id, actor, verb, segment, locks, pc };
  const barOf = (kind: BarKind, from: number, to: number): Bar => ({
    ...common,
    key: `${id}/${segment}/${kind}`,
    kind,
    from,
    to,
    by: interruption ? by(interruption.event) : null,
  });
  const since = interruption?.from ?? now.t;
  switch (stage) {
    case "running":
      return [barOf("running", action.since ?? now.t, action.until ?? now.t)];
    case "waiting": {
      const from = action.since ?? now.t;
      const held = interruption && interruption.from < from ? [barOf("held", interruption.from, from)] : [];
      return [...held, barOf("waiting", from, Math.max(now.t, from))];
    }
    case "held":
      return [barOf("held", since, action.until ?? now.t)];
    case "suspended":
      return [barOf("suspended", since, now.t)];
  }
}

function bar(
  event: WorldEvent,
  now: WorldNow,
  kind: BarKind,
  from: number,
  to: number,
  source: string | null = null,
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
    by: source,
  };
}

function by(event: WorldEvent): string | null {
  const source = meta(event)["by"];
  return typeof source === "string" ? source : null;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
