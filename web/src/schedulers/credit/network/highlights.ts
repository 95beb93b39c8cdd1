/** Short-lived highlights in the network graph: payments, cleared cycles, and the bottlenecks of refusals. */

import type { JsonObject } from "../../../api/json";
import { isList, isObject } from "../../../api/json";
import type { LineEnds, RunEvent } from "./model";

export type HighlightKind = "payment" | "clearing" | "refusal";

/** A highlight from one participant to the next, between two times of `performance.now()`. */
export interface Highlight extends LineEnds {
  readonly kind: HighlightKind;
  readonly since: number;
  readonly until: number;
}

export const MAX_HIGHLIGHTS = 220;
const DURATION_MS: Readonly<Record<HighlightKind, number>> = { payment: 1200, clearing: 2600, refusal: 1600 };
// The events of a tick arrive together; their highlights start one after the other.
const SPREAD_MS = 800;
const HOP_MS = 250;

/** The highlights of events, starting at `now`; the hops of a payment start one after the other. */
export function highlightsOf(events: readonly RunEvent[], now: number): Highlight[] {
  const spread = events.length > 1 ? SPREAD_MS / events.length : 0;
  return events.flatMap((event, index) => highlightsOfEvent(event, now, now + spread * index));
}

function highlightsOfEvent(event: RunEvent, now: number, since: number): Highlight[] {
  switch (event.kind) {
    case "payment":
      return event.hops.map((hop, index) => highlight("payment", hop, since + HOP_MS * index));
    case "refusal": {
      if (event.bottleneck === null) return [];
      // The hop points in the direction of the payment: from the debtor of the line to its creditor.
      const { from: creditor, to: debtor } = event.bottleneck;
      return [highlight("refusal", { from: debtor, to: creditor }, since)];
    }
    case "clearing":
      return event.edges.map((edge) => highlight("clearing", edge, now));
  }
}

/** The highlights in the plan of a clearing, each at its time. */
export function plannedHighlights(event: JsonObject, now: number): Highlight[] {
  const steps = event["steps"];
  if (event["type"] !== "clearing.plan" || steps === undefined || !isList(steps)) return [];
  return steps.filter(isObject).flatMap((step) => {
    const [edges, after] = [step["highlight_edges"], step["at_ms"]];
    if (edges === undefined || !isList(edges)) return [];
    return edges.filter(isObject).map((edge) => {
      const ends = { from: String(edge["from"]), to: String(edge["to"]) };
      return highlight("clearing", ends, now + (typeof after === "number" ? after : 0));
    });
  });
}

/** The highlights that are still active, at most the newest `MAX_HIGHLIGHTS`. */
export function activeHighlights(highlights: readonly Highlight[], now: number): Highlight[] {
  return highlights.filter(({ until }) => until > now).slice(-MAX_HIGHLIGHTS);
}

function highlight(kind: HighlightKind, ends: LineEnds, since: number): Highlight {
  return { kind, from: ends.from, to: ends.to, since, until: since + DURATION_MS[kind] };
}
