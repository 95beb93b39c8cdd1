import { beforeEach, expect, test } from "vitest";

import { addEvents, causesOf, NO_COUNTS } from "../counts";
import { cleared, link, network, node, paid, refused } from "../testing";
import { amount, cause, short, simTime } from "../wording";
import { activeHighlights, highlightsOf, MAX_HIGHLIGHTS, plannedHighlights } from "./highlights";
import { clearPositions, computeLayout, positionsOf } from "./layout";
import type { RunEvent } from "./model";
import {
  applyPatches,
  formatSelection,
  lineKey,
  parseSelection,
  relativePositions,
  runEventOf,
  selectedLines,
  usedShare,
} from "./model";
import { mixed, nodeAt, pixelOf } from "./paint";

beforeEach(clearPositions);

function runEvents(...events: Parameters<typeof runEventOf>[0][]): RunEvent[] {
  return events.map(runEventOf).filter((event) => event !== null);
}

test("patches change only the nodes and lines they name", () => {
  const before = network();
  const after = applyPatches(before, [paid()]);

  expect(after.nodes.get("ann")).toMatchObject({ name: "ANN", net_balance: "4.00", net_sign: 1 });
  expect(after.links.get(lineKey({ from: "ann", to: "bob" }))).toMatchObject({ used: "4.00", status: "active" });
  expect(after.nodes.get("bob")).toBe(before.nodes.get("bob"));
  expect(before.nodes.get("ann")?.net_balance).toBe("0.00");
});

test("events without patches, or with patches of unknown nodes, change nothing", () => {
  const before = network();

  expect(applyPatches(before, [refused()])).toBe(before);
  expect(applyPatches(before, [paid({ node_patch: [{ id: "zoe" }], edge_patch: [] })])).toBe(before);
});

test("a refusal has its bottleneck line", () => {
  expect(runEventOf(refused())).toMatchObject({
    kind: "refusal",
    code: "ROUTING_NO_CAPACITY",
    bottleneck: { from: "ann", to: "bob" },
    manual: false,
  });
  expect(runEventOf(refused({ error: { code: "X", message: "y" }, seq: null }))).toMatchObject({
    bottleneck: null,
    manual: true,
  });
  expect(runEventOf({ type: "run_status" })).toBeNull();
});

test("the use of a line is its share of the limit; a line with limit 0 and debt is full", () => {
  const shares = [
    link("a", "b", { used: "4.00" }),
    link("a", "b", { trust_limit: "0", used: "1" }),
    link("a", "b", { trust_limit: "0" }),
  ];

  expect(shares.map(usedShare)).toEqual([0.4, 1, 0]);
});

test("positions are relative to the largest one, and 0 without debt", () => {
  const nodes = [node("ann", { net_balance: "8.00" }), node("bob", { net_balance: "-4.00" }), node("cid")];

  expect([...relativePositions(network({ nodes })).values()]).toEqual([1, -0.5, 0]);
  expect([...relativePositions(network()).values()]).toEqual([0, 0, 0]);
});

test("a selected participant selects all its lines, a selected line only itself", () => {
  expect([...selectedLines(network(), { kind: "node", id: "ann" })]).toEqual(["ann\u0000bob", "cid\u0000ann"]);
  expect([...selectedLines(network(), { kind: "line", from: "bob", to: "cid" })]).toEqual(["bob\u0000cid"]);
  expect(selectedLines(network(), null).size).toBe(0);
});

test("the layout does not depend on the order of nodes or on debts", () => {
  const original = network();
  const other = network({ nodes: ["cid", "ann", "bob"].map((id) => node(id, { net_balance: "5.00" })) });

  expect(Object.fromEntries(computeLayout(other))).toEqual(Object.fromEntries(computeLayout(original)));
  for (const { x, y } of computeLayout(original).values()) {
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x).toBeLessThanOrEqual(1);
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y).toBeLessThanOrEqual(1);
  }
});

test("a new participant is placed without moving the others", () => {
  const before = positionsOf("three", network());
  const grown = network({
    nodes: ["ann", "bob", "cid", "dan"].map((id) => node(id)),
    links: [link("ann", "bob"), link("ann", "dan")],
  });
  const after = positionsOf("three", grown);

  for (const id of ["ann", "bob", "cid"]) expect(after.get(id)).toBe(before.get(id));
  expect(after.has("dan")).toBe(true);
  expect(positionsOf("three", grown)).toBe(after);
});

test("a pointer hits the participant under it, or none", () => {
  const positions = new Map([
    ["ann", { x: 0, y: 0 }],
    ["bob", { x: 1, y: 1 }],
    ["cid", { x: 1, y: 0 }],
  ]);
  const size = { width: 400, height: 300 };
  const { x, y } = pixelOf(positions, size, "bob");

  expect(nodeAt({ network: network(), positions, size }, x + 3, y - 3)).toBe("bob");
  expect(nodeAt({ network: network(), positions, size }, 200, 150)).toBeNull();
});

test("a payment highlights its hops one after the other, a refusal the direction of the payment", () => {
  const hops = [
    { from: "bob", to: "ann" },
    { from: "ann", to: "cid" },
  ];
  const [first, second] = highlightsOf(runEvents(paid({ edges: hops })), 1000);

  expect([first?.since, second?.since]).toEqual([1000, 1250]);
  expect(highlightsOf(runEvents(refused()), 0)).toMatchObject([{ kind: "refusal", from: "bob", to: "ann" }]);
  expect(highlightsOf(runEvents(refused({ error: {} })), 0)).toEqual([]);
});

test("a clearing is highlighted as planned, and highlights expire", () => {
  const plan = { type: "clearing.plan", steps: [{ at_ms: 300, highlight_edges: [{ from: "ann", to: "bob" }] }] };
  const highlights = plannedHighlights(plan, 1000);

  expect(highlights).toMatchObject([{ kind: "clearing", from: "ann", to: "bob", since: 1300 }]);
  expect(plannedHighlights(paid(), 0)).toEqual([]);
  expect(activeHighlights(highlights, 9999)).toEqual([]);
  expect(activeHighlights(Array.from({ length: 500 }, () => highlights).flat(), 0)).toHaveLength(MAX_HIGHLIGHTS);
});

test("refusals are counted by tick and cause, clearings relative to their optimum", () => {
  const other = refused({ tick_index: 4, error: { code: "ROUTING_NO_ROUTE" } });
  const counts = addEvents(
    NO_COUNTS,
    runEvents(paid(), refused(), refused(), other, cleared(), cleared({ optimum: null })),
  );

  expect(counts.ticks).toEqual([
    { tick: 3, committed: 1, refused: { ROUTING_NO_CAPACITY: 2 } },
    { tick: 4, committed: 0, refused: { ROUTING_NO_ROUTE: 1 } },
  ]);
  expect(counts.efficiency).toEqual([{ tick: 25, percent: 75 }]);
  expect(causesOf(counts)).toEqual([
    ["ROUTING_NO_CAPACITY", 2],
    ["ROUTING_NO_ROUTE", 1],
  ]);
});

test("a restarted run is counted from its start", () => {
  const before = addEvents(NO_COUNTS, runEvents(refused({ tick_index: 80 })));

  expect(addEvents(before, runEvents(paid({ tick_index: 0 }))).ticks).toEqual([{ tick: 0, committed: 1, refused: {} }]);
  expect(addEvents(before, [])).toBe(before);
});

test("amounts, causes and times are formatted for display", () => {
  expect([amount("1234.50"), amount("-12345.00"), amount("7")]).toEqual(["1234.50", "-12\u202f345.00", "7"]);
  expect([cause("ROUTING_NO_CAPACITY"), cause("SOMETHING_NEW")]).toEqual(["no capacity", "something new"]);
  expect([simTime(0), simTime(61_000), simTime(3_725_000)]).toEqual(["0:00", "1:01", "1:02:05"]);
  expect([short(7), short(7.25), short(1234), short(294_861), short(2_500_000)]).toEqual([
    "7",
    "7.3",
    "1.2k",
    "295k",
    "2.5M",
  ]);
});

test("colours are mixed channel by channel", () => {
  expect(mixed("rgb(0, 100, 200)", "rgb(100, 200, 0)", 0.5)).toBe("rgb(50, 150, 100)");
});

test("a selection survives a round trip through the URL", () => {
  const line = { kind: "line", from: "anna", to: "cafe" } as const;
  const node = { kind: "node", id: "anna" } as const;

  expect([line, node, null].map((chosen) => parseSelection(formatSelection(chosen)))).toEqual([line, node, null]);
  expect(formatSelection(line)).toBe("anna>cafe");
});
