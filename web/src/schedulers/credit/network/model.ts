/** A credit network and its events.
 *
 * No amounts are computed here: positions and uses come from the server, in snapshots and in the patches of events.
 */

import type { Json, JsonObject } from "../../../api/json";
import { isList, isObject } from "../../../api/json";
import type { Link, Node, Snapshot } from "../../../api/types";

/** A line: `from` is the creditor, `to` the debtor. */
export interface LineEnds {
  readonly from: string;
  readonly to: string;
}

export type Selection = { readonly kind: "node"; readonly id: string } | ({ readonly kind: "line" } & LineEnds) | null;

const SEPARATOR = ">";

/** The selection for the URL: the id of a participant, or `creditor>debtor` for a line. */
export function formatSelection(chosen: Selection): string | null {
  if (chosen === null) return null;
  return chosen.kind === "node" ? chosen.id : `${chosen.from}${SEPARATOR}${chosen.to}`;
}

export function parseSelection(name: string | null): Selection {
  if (name === null) return null;
  const [from = "", to] = name.split(SEPARATOR, 2);
  return to === undefined ? { kind: "node", id: from } : { kind: "line", from, to };
}

/** The network of one equivalent; immutable, replaced on every change. */
export interface Network {
  readonly equivalent: string;
  readonly nodes: ReadonlyMap<string, Node>;
  readonly links: ReadonlyMap<string, Link>;
}

export type RunEvent =
  | {
      readonly kind: "payment";
      readonly id: string;
      readonly tick: number;
      readonly from: string;
      readonly to: string;
      readonly amount: string;
      readonly hops: readonly LineEnds[];
      readonly manual: boolean;
    }
  | {
      readonly kind: "refusal";
      readonly id: string;
      readonly tick: number;
      readonly from: string;
      readonly to: string;
      readonly amount: string;
      readonly code: string;
      readonly message: string;
      /** The code, or a more specific cause from the details. */
      readonly cause: string;
      readonly bottleneck: Bottleneck | null;
      readonly manual: boolean;
    }
  | {
      readonly kind: "clearing";
      readonly id: string;
      readonly tick: number;
      readonly reason: string;
      readonly cycles: number;
      readonly cleared: string;
      readonly reduction: string;
      /** The largest possible debt reduction; `null` if it was not computed. */
      readonly optimum: string | null;
      readonly edges: readonly LineEnds[];
    };

/** The line whose change would let a refused payment pass, and that change; empty if it is unknown. */
export interface Bottleneck extends LineEnds {
  readonly change: string;
}

export function lineKey({ from, to }: LineEnds): string {
  return `${from}\u0000${to}`;
}

export function networkOf({ equivalent, nodes, links }: Snapshot): Network {
  return {
    equivalent,
    nodes: new Map(nodes.map((node) => [node.id, node])),
    links: new Map(links.map((link) => [lineKey({ from: link.source, to: link.target }), link])),
  };
}

/** Apply the patches of events; returns the same network if there are none. */
export function applyPatches(network: Network, events: readonly JsonObject[]): Network {
  const nodes = new Map(network.nodes);
  const links = new Map(network.links);
  let changed = false;
  for (const event of events) {
    for (const patch of objects(event["node_patch"])) {
      const known = nodes.get(text(patch["id"]));
      if (known === undefined) continue;
      nodes.set(known.id, { ...known, ...(patch as unknown as Partial<Node>) });
      changed = true;
    }
    for (const patch of objects(event["edge_patch"])) {
      const key = lineKey({ from: text(patch["source"]), to: text(patch["target"]) });
      const known = links.get(key);
      if (known === undefined) continue;
      links.set(key, { ...known, ...(patch as unknown as Partial<Link>) });
      changed = true;
    }
  }
  return changed ? { ...network, nodes, links } : network;
}

/** Convert an event of the stream; `null` for events other than payments, refusals and clearings. */
export function runEventOf(event: JsonObject): RunEvent | null {
  const [id, tick] = [text(event["event_id"]), whole(event["tick_index"])];
  const ends = { from: text(event["from"]), to: text(event["to"]), amount: text(event["amount"]) };
  const manual = event["seq"] === null;
  switch (event["type"]) {
    case "tx.updated":
      return { kind: "payment", id, tick, ...ends, hops: endsOf(event["edges"]), manual };
    case "tx.failed": {
      const error = isObject(event["error"]) ? event["error"] : {};
      const [code, message] = [text(error["code"]), text(error["message"])];
      const details = error["details"];
      const failure = { code, message, cause: causeOf(code, details), bottleneck: bottleneckOf(details) };
      return { kind: "refusal", id, tick, ...ends, ...failure, manual };
    }
    case "clearing.done":
      return {
        kind: "clearing",
        id,
        tick,
        reason: text(event["reason"]),
        cycles: whole(event["cleared_cycles"]),
        cleared: text(event["cleared_amount"]),
        reduction: text(event["debt_reduction"]),
        optimum: typeof event["optimum"] === "string" ? event["optimum"] : null,
        edges: endsOf(event["cycle_edges"]),
      };
    default:
      return null;
  }
}

/** The bottleneck in the details of a refusal. A hop points from debtor to creditor, a line from creditor to debtor. */
export function bottleneckOf(details: Json | undefined): Bottleneck | null {
  const hop = isObject(details) ? details["bottleneck"] : undefined;
  if (!isObject(hop) || typeof hop["from"] !== "string" || typeof hop["to"] !== "string") return null;
  return { from: hop["to"], to: hop["from"], change: text(hop["change"]) };
}

/** The cause of a refusal: its code, or from the details that a line with capacity is closed. */
export function causeOf(code: string, details: Json | undefined): string {
  if (!isObject(details)) return code;
  const [limit, hop] = [details["limited_by"], bottleneckOf(details)];
  if (limit === "policy") return "LINE_CLOSED";
  if (limit === "capacity_and_policy" && hop !== null) return "CAPACITY_AND_LINE_CLOSED";
  return code;
}

/** The use of a line from 0 to 1; a line with limit 0 and debt is full. */
export function usedShare({ used, trust_limit }: Pick<Link, "used" | "trust_limit">): number {
  const [owed, limit] = [Number(used), Number(trust_limit)];
  if (limit <= 0) return owed > 0 ? 1 : 0;
  return Math.min(1, Math.max(0, owed / limit));
}

/** Net positions relative to the largest one, from -1 to 1; all 0 when there is no debt. */
export function relativePositions(network: Network): Map<string, number> {
  const balances = [...network.nodes.values()].map(({ id, net_balance }) => [id, Number(net_balance)] as const);
  const largest = Math.max(0, ...balances.map(([, balance]) => Math.abs(balance)));
  return new Map(balances.map(([id, balance]) => [id, largest === 0 ? 0 : balance / largest]));
}

export function nameOf(network: Network, id: string): string {
  return network.nodes.get(id)?.name ?? id;
}

/** Replace the ids of participants in a sentence by their names. */
export function withNames(network: Network, sentence: string): string {
  return sentence.replace(/[\p{L}\p{N}_-]+/gu, (word) => nameOf(network, word));
}

/** The keys of the selected lines: all lines of a participant, or the selected one. */
export function selectedLines(network: Network, chosen: Selection): ReadonlySet<string> {
  if (chosen === null) return new Set();
  if (chosen.kind === "line") return new Set([lineKey(chosen)]);
  const own = [...network.links].filter(([, { source, target }]) => source === chosen.id || target === chosen.id);
  return new Set(own.map(([key]) => key));
}

function endsOf(edges: Json | undefined): LineEnds[] {
  return objects(edges).map((edge) => ({ from: text(edge["from"]), to: text(edge["to"]) }));
}

function objects(value: Json | undefined): JsonObject[] {
  return value !== undefined && isList(value) ? value.filter(isObject) : [];
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

function whole(value: Json | undefined): number {
  return typeof value === "number" ? value : 0;
}
