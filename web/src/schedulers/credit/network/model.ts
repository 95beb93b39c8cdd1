/** A credit network as the page knows it: who stands where, which line is used how far, and what has just happened.
 *
 * Nothing here computes money: positions and uses come from the server, in the picture and in the patches of events.
 */

import type { Json, JsonObject } from "../../../api/json";
import { isList, isObject } from "../../../api/json";
import type { Link, Node, Snapshot } from "../../../api/types";

/** A line is named by its ends: the creditor, who trusts, and the debtor. */
export interface LineEnds {
  readonly from: string;
  readonly to: string;
}

export type Chosen = { readonly kind: "node"; readonly id: string } | ({ readonly kind: "line" } & LineEnds) | null;

const TO = ">";

/** What is chosen as the address names it: a participant, or a line as `creditor>debtor`. */
export function nameOfChosen(chosen: Chosen): string | null {
  if (chosen === null) return null;
  return chosen.kind === "node" ? chosen.id : `${chosen.from}${TO}${chosen.to}`;
}

export function chosenFrom(name: string | null): Chosen {
  if (name === null) return null;
  const [from = "", to] = name.split(TO, 2);
  return to === undefined ? { kind: "node", id: from } : { kind: "line", from, to };
}

/** The network of one equivalent; a new object whenever anything in it has changed. */
export interface Network {
  readonly equivalent: string;
  readonly nodes: ReadonlyMap<string, Node>;
  readonly links: ReadonlyMap<string, Link>;
}

export type Happening =
  | {
      readonly kind: "payment";
      readonly id: string;
      readonly tick: number;
      readonly from: string;
      readonly to: string;
      readonly amount: string;
      readonly hops: readonly LineEnds[];
      readonly byHand: boolean;
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
      /** What it is counted under: its code, or what the details say more exactly. */
      readonly cause: string;
      readonly bottleneck: Bottleneck | null;
      readonly byHand: boolean;
    }
  | {
      readonly kind: "clearing";
      readonly id: string;
      readonly tick: number;
      readonly reason: string;
      readonly cycles: number;
      readonly cleared: string;
      readonly reduction: string;
      /** What the best clearing would have taken off; null where nobody asked for it. */
      readonly optimum: string | null;
      readonly edges: readonly LineEnds[];
    };

/** The line whose change would let a refused payment pass, and which change that is; empty where none is named. */
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

/** The network after the patches of some events; the same one where they had none. */
export function patched(network: Network, events: readonly JsonObject[]): Network {
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

/** What an event of the stream tells; null for those that tell of no payment and no clearing. */
export function happeningOf(event: JsonObject): Happening | null {
  const [id, tick] = [text(event["event_id"]), whole(event["tick_index"])];
  const ends = { from: text(event["from"]), to: text(event["to"]), amount: text(event["amount"]) };
  const byHand = event["seq"] === null;
  switch (event["type"]) {
    case "tx.updated":
      return { kind: "payment", id, tick, ...ends, hops: endsOf(event["edges"]), byHand };
    case "tx.failed": {
      const error = isObject(event["error"]) ? event["error"] : {};
      const [code, message] = [text(error["code"]), text(error["message"])];
      const details = error["details"];
      const told = { code, message, cause: causeOf(code, details), bottleneck: bottleneckOf(details) };
      return { kind: "refusal", id, tick, ...ends, ...told, byHand };
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

/** The line at which a refusal says that value got stuck: a hop goes from the debtor, the line from the creditor. */
export function bottleneckOf(details: Json | undefined): Bottleneck | null {
  const hop = isObject(details) ? details["bottleneck"] : undefined;
  if (!isObject(hop) || typeof hop["from"] !== "string" || typeof hop["to"] !== "string") return null;
  return { from: hop["to"], to: hop["from"], change: text(hop["change"]) };
}

/** The code of a refusal, or what its details say more exactly: a line that is closed has capacity enough. */
export function causeOf(code: string, details: Json | undefined): string {
  if (!isObject(details)) return code;
  const [limit, hop] = [details["limited_by"], bottleneckOf(details)];
  if (limit === "policy") return "LINE_CLOSED";
  if (limit === "capacity_and_policy" && hop !== null) return "CAPACITY_AND_LINE_CLOSED";
  return code;
}

/** How far a line is used, from 0 to 1; a line without a limit that somebody owes on is full. */
export function usedShare({ used, trust_limit }: Pick<Link, "used" | "trust_limit">): number {
  const [owed, limit] = [Number(used), Number(trust_limit)];
  if (limit <= 0) return owed > 0 ? 1 : 0;
  return Math.min(1, Math.max(0, owed / limit));
}

/** How far a participant stands from zero beside the one who stands farthest, from -1 to 1; 0 where nobody owes. */
export function standings(network: Network): Map<string, number> {
  const balances = [...network.nodes.values()].map(({ id, net_balance }) => [id, Number(net_balance)] as const);
  const most = Math.max(0, ...balances.map(([, balance]) => Math.abs(balance)));
  return new Map(balances.map(([id, balance]) => [id, most === 0 ? 0 : balance / most]));
}

export function nameOf(network: Network, id: string): string {
  return network.nodes.get(id)?.name ?? id;
}

/** A sentence of the engine with the names of participants where it has their ids. */
export function withNames(network: Network, sentence: string): string {
  return sentence.replace(/[\p{L}\p{N}_-]+/gu, (word) => nameOf(network, word));
}

/** The lines that a choice stands for: those of a participant, or the one that is chosen. */
export function chosenLines(network: Network, chosen: Chosen): ReadonlySet<string> {
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
