/** What shines in the picture for a moment: payments on their way, circles being cleared, the line where value stuck. */

import type { JsonObject } from "../../../api/json";
import { isList, isObject } from "../../../api/json";
import type { Happening, LineEnds } from "./model";

export type Glow = "payment" | "clearing" | "refusal";

/** One lit way from one participant to the next, between two moments of the page's clock. */
export interface Light extends LineEnds {
  readonly glow: Glow;
  readonly since: number;
  readonly until: number;
}

export const MOST_LIGHTS = 220;
const SHINES_MS: Readonly<Record<Glow, number>> = { payment: 1200, clearing: 2600, refusal: 1600 };
// Events of a tick come all at once; their lights go on one after the other.
const SPREAD_MS = 800;
const HOP_MS = 250;

/** The lights of what happened, beginning `now`; hops of a payment one after the other. */
export function lightsOf(happenings: readonly Happening[], now: number): Light[] {
  const spread = happenings.length > 1 ? SPREAD_MS / happenings.length : 0;
  return happenings.flatMap((one, place) => waysOf(one, now, now + spread * place));
}

function waysOf(one: Happening, now: number, since: number): Light[] {
  switch (one.kind) {
    case "payment":
      return one.hops.map((hop, at) => light("payment", hop, since + HOP_MS * at));
    case "refusal": {
      if (one.bottleneck === null) return [];
      // A hop goes the way that value wanted to go: from the debtor of the line to its creditor.
      const { from: creditor, to: debtor } = one.bottleneck;
      return [light("refusal", { from: debtor, to: creditor }, since)];
    }
    case "clearing":
      return one.edges.map((edge) => light("clearing", edge, now));
  }
}

/** The lights that the plan of a clearing asks for, each at its time. */
export function plannedLights(event: JsonObject, now: number): Light[] {
  const steps = event["steps"];
  if (event["type"] !== "clearing.plan" || steps === undefined || !isList(steps)) return [];
  return steps.filter(isObject).flatMap((step) => {
    const [edges, after] = [step["highlight_edges"], step["at_ms"]];
    if (edges === undefined || !isList(edges)) return [];
    return edges.filter(isObject).map((edge) => {
      const ends = { from: String(edge["from"]), to: String(edge["to"]) };
      return light("clearing", ends, now + (typeof after === "number" ? after : 0));
    });
  });
}

/** What still shines, old lights first to go where there are too many. */
export function shining(lights: readonly Light[], now: number): Light[] {
  return lights.filter(({ until }) => until > now).slice(-MOST_LIGHTS);
}

function light(glow: Glow, ends: LineEnds, since: number): Light {
  return { glow, from: ends.from, to: ends.to, since, until: since + SHINES_MS[glow] };
}
