import { beforeEach, expect, test } from "vitest";

import { causesOf, counted, NOTHING } from "../counts";
import { cleared, link, network, node, paid, refused } from "../testing";
import { amount, cause, short, simTime } from "../wording";
import { forgetPlaces, placesOf, settled } from "./layout";
import { lightsOf, MOST_LIGHTS, plannedLights, shining } from "./lit";
import type { Happening } from "./model";
import { chosenFrom, chosenLines, happeningOf, lineKey, nameOfChosen, patched, standings, usedShare } from "./model";
import { mixed, nodeAt, spotOf } from "./paint";

beforeEach(forgetPlaces);

function told(...events: Parameters<typeof happeningOf>[0][]): Happening[] {
  return events.map(happeningOf).filter((one) => one !== null);
}

test("patches change the one they name and leave the others as they are", () => {
  const before = network();
  const after = patched(before, [paid()]);

  expect(after.nodes.get("ann")).toMatchObject({ name: "ANN", net_balance: "4.00", net_sign: 1 });
  expect(after.links.get(lineKey({ from: "ann", to: "bob" }))).toMatchObject({ used: "4.00", status: "active" });
  expect(after.nodes.get("bob")).toBe(before.nodes.get("bob"));
  expect(before.nodes.get("ann")?.net_balance).toBe("0.00");
});

test("events without patches, or with patches of strangers, change nothing", () => {
  const before = network();

  expect(patched(before, [refused()])).toBe(before);
  expect(patched(before, [paid({ node_patch: [{ id: "zoe" }], edge_patch: [] })])).toBe(before);
});

test("a refusal names the line whose creditor value could not reach", () => {
  expect(happeningOf(refused())).toMatchObject({
    kind: "refusal",
    code: "ROUTING_NO_CAPACITY",
    bottleneck: { from: "ann", to: "bob" },
    byHand: false,
  });
  expect(happeningOf(refused({ error: { code: "X", message: "y" }, seq: null }))).toMatchObject({
    bottleneck: null,
    byHand: true,
  });
  expect(happeningOf({ type: "run_status" })).toBeNull();
});

test("a line is used by its share, and one without a limit is full as soon as anybody owes on it", () => {
  const shares = [
    link("a", "b", { used: "4.00" }),
    link("a", "b", { trust_limit: "0", used: "1" }),
    link("a", "b", { trust_limit: "0" }),
  ];

  expect(shares.map(usedShare)).toEqual([0.4, 1, 0]);
});

test("standings are shares of the farthest position, and nothing where nobody owes", () => {
  const nodes = [node("ann", { net_balance: "8.00" }), node("bob", { net_balance: "-4.00" }), node("cid")];

  expect([...standings(network({ nodes })).values()]).toEqual([1, -0.5, 0]);
  expect([...standings(network()).values()]).toEqual([0, 0, 0]);
});

test("a chosen participant stands for all its lines, a chosen line for itself", () => {
  expect([...chosenLines(network(), { kind: "node", id: "ann" })]).toEqual(["ann\u0000bob", "cid\u0000ann"]);
  expect([...chosenLines(network(), { kind: "line", from: "bob", to: "cid" })]).toEqual(["bob\u0000cid"]);
  expect(chosenLines(network(), null).size).toBe(0);
});

test("the same network is the same picture, whatever order it comes in and whoever owes", () => {
  const one = network();
  const other = network({ nodes: ["cid", "ann", "bob"].map((id) => node(id, { net_balance: "5.00" })) });

  expect(Object.fromEntries(settled(other))).toEqual(Object.fromEntries(settled(one)));
  for (const { x, y } of settled(one).values()) {
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x).toBeLessThanOrEqual(1);
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y).toBeLessThanOrEqual(1);
  }
});

test("who comes later gets a place and moves nobody", () => {
  const before = placesOf("three", network());
  const grown = network({
    nodes: ["ann", "bob", "cid", "dan"].map((id) => node(id)),
    links: [link("ann", "bob"), link("ann", "dan")],
  });
  const after = placesOf("three", grown);

  for (const id of ["ann", "bob", "cid"]) expect(after.get(id)).toBe(before.get(id));
  expect(after.has("dan")).toBe(true);
  expect(placesOf("three", grown)).toBe(after);
});

test("a pointer finds who stands under it, and nobody where nobody is", () => {
  const places = new Map([
    ["ann", { x: 0, y: 0 }],
    ["bob", { x: 1, y: 1 }],
    ["cid", { x: 1, y: 0 }],
  ]);
  const size = { width: 400, height: 300 };
  const { x, y } = spotOf(places, size, "bob");

  expect(nodeAt({ network: network(), places, size }, x + 3, y - 3)).toBe("bob");
  expect(nodeAt({ network: network(), places, size }, 200, 150)).toBeNull();
});

test("a payment lights its hops one after the other, a refusal the way that value wanted to go", () => {
  const hops = [
    { from: "bob", to: "ann" },
    { from: "ann", to: "cid" },
  ];
  const [first, second] = lightsOf(told(paid({ edges: hops })), 1000);

  expect([first?.since, second?.since]).toEqual([1000, 1250]);
  expect(lightsOf(told(refused()), 0)).toMatchObject([{ glow: "refusal", from: "bob", to: "ann" }]);
  expect(lightsOf(told(refused({ error: {} })), 0)).toEqual([]);
});

test("a clearing shines as its plan says, and lights go out", () => {
  const plan = { type: "clearing.plan", steps: [{ at_ms: 300, highlight_edges: [{ from: "ann", to: "bob" }] }] };
  const lights = plannedLights(plan, 1000);

  expect(lights).toMatchObject([{ glow: "clearing", from: "ann", to: "bob", since: 1300 }]);
  expect(plannedLights(paid(), 0)).toEqual([]);
  expect(shining(lights, 9999)).toEqual([]);
  expect(shining(Array.from({ length: 500 }, () => lights).flat(), 0)).toHaveLength(MOST_LIGHTS);
});

test("refusals are counted by tick and cause, clearings beside the best one", () => {
  const other = refused({ tick_index: 4, error: { code: "ROUTING_NO_ROUTE" } });
  const counts = counted(NOTHING, told(paid(), refused(), refused(), other, cleared(), cleared({ optimum: null })));

  expect(counts.ticks).toEqual([
    { tick: 3, made: 1, refused: { ROUTING_NO_CAPACITY: 2 } },
    { tick: 4, made: 0, refused: { ROUTING_NO_ROUTE: 1 } },
  ]);
  expect(counts.nearness).toEqual([{ tick: 25, percent: 75 }]);
  expect(causesOf(counts)).toEqual([
    ["ROUTING_NO_CAPACITY", 2],
    ["ROUTING_NO_ROUTE", 1],
  ]);
});

test("a run that begins again is counted from its beginning", () => {
  const before = counted(NOTHING, told(refused({ tick_index: 80 })));

  expect(counted(before, told(paid({ tick_index: 0 }))).ticks).toEqual([{ tick: 0, made: 1, refused: {} }]);
  expect(counted(before, [])).toBe(before);
});

test("amounts, causes and times are written for people", () => {
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

test("what is chosen comes back from the name that the address has for it", () => {
  const line = { kind: "line", from: "anna", to: "cafe" } as const;
  const node = { kind: "node", id: "anna" } as const;

  expect([line, node, null].map((chosen) => chosenFrom(nameOfChosen(chosen)))).toEqual([line, node, null]);
  expect(nameOfChosen(line)).toBe("anna>cafe");
});
