// @vitest-environment happy-dom

import { signal } from "@preact/signals";
import { beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import { api, session } from "../../api/server";
import { draw, find, interact, texts } from "../../testing/drawing";
import { ByHand } from "./ByHand";
import { Curves, nearnessOf, seriesOf, servedShare, smoothed } from "./Curves";
import { causesOf, counted, NOTHING } from "./counts";
import { Happened } from "./Happened";
import { forgetPlaces } from "./network/layout";
import { happeningOf, withNames } from "./network/model";
import { NetworkView, readingOrder, sentenceOf, stepped } from "./network/NetworkView";
import { RunControls } from "./RunControls";
import { RunSlider } from "./RunPast";
import { bodyOf, documentIn } from "./StartRun";
import { Stuck } from "./Stuck";
import { cleared, link, network, node, paid, refused, status } from "./testing";
import { rowsOf, verdictOf } from "./WhatIf";

beforeEach(() => {
  forgetPlaces();
  session.value = { kind: "open", session: { name: "local", role: "operator", tokens_required: false } };
});

function happenings(...events: Parameters<typeof happeningOf>[0][]) {
  return events.map(happeningOf).filter((one) => one !== null);
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  interact(() => undefined);
}

test("a participant is told with its position and how it is trusted", () => {
  const nodes = [node("ann", { net_balance: "-12345.00", net_sign: -1 }), node("bob"), node("cid")];
  const links = [link("bob", "ann", { used: "10.00", available: "0.00" }), link("ann", "cid")];
  const here = network({ nodes, links });

  expect(sentenceOf(here, { kind: "node", id: "ann" })).toBe(
    "ANN (person) owes 12\u202f345.00 HOUR more than it is owed. Trusted by 1, one line of these is full; trusts 1.",
  );
  expect(sentenceOf(here, { kind: "node", id: "bob" })).toContain("owes as much as it is owed");
  expect(sentenceOf(here, { kind: "node", id: "zoe" })).toBe("zoe is not here any more.");
});

test("a line is told with what is owed on it and what is left", () => {
  const here = network({ links: [link("ann", "bob", { used: "4.00", available: "6.00" })] });

  expect(sentenceOf(here, { kind: "line", from: "ann", to: "bob" })).toBe(
    "ANN trusts BOB with 10.00 HOUR; 4.00 is owed (40 %), 6.00 is left.",
  );
  expect(sentenceOf(here, { kind: "line", from: "bob", to: "ann" })).toBe("BOB trusts ANN with nothing now.");
});

test("arrow keys pass everybody once, in the order of reading", () => {
  const places = new Map([
    ["ann", { x: 0.9, y: 0.02 }],
    ["bob", { x: 0.1, y: 0.05 }],
    ["cid", { x: 0.5, y: 0.9 }],
  ]);
  const order = readingOrder(network(), places);
  const at = (id: string) => ({ kind: "node", id }) as const;

  expect(order).toEqual(["bob", "ann", "cid"]);
  expect([stepped(order, null, "ArrowRight"), stepped(order, null, "ArrowLeft")]).toEqual(["bob", "cid"]);
  expect([stepped(order, at("cid"), "ArrowDown"), stepped(order, at("ann"), "ArrowUp")]).toEqual(["bob", "bob"]);
  expect([stepped(order, at("ann"), "Home"), stepped(order, at("ann"), "End")]).toEqual(["bob", "cid"]);
  expect([stepped(order, at("ann"), "Escape"), stepped(order, at("ann"), "x")]).toEqual([null, undefined]);
});

test("the picture can be left for tables, which choose as the picture does", () => {
  const choose = vi.fn();
  const page = draw(
    <NetworkView name="three" network={network()} lights={signal([])} chosen={null} onChoose={choose} />,
  );
  expect(page.querySelector("[data-testid=participants]")).toBeNull();

  const fold = find<HTMLDetailsElement>(page, "[data-testid=network-tables]");
  interact(() => {
    fold.open = true;
    fold.dispatchEvent(new Event("toggle"));
  });

  expect(texts(page, "[data-testid=participants] tbody button")).toEqual(["ANN", "BOB", "CID"]);
  interact(() => find(page, "[data-testid=lines] tbody button").click());
  expect(choose).toHaveBeenCalledWith({ kind: "line", from: "ann", to: "bob" });
});

test("the buttons follow the state of the run and tell what comes of them", async () => {
  const post = vi.spyOn(api, "post").mockResolvedValue(status({ state: "paused" }) as never);
  const told = vi.fn();
  const shown = (state: string) =>
    draw(<RunControls status={status({ state })} details={null} onStatus={told} onOther={vi.fn()} />);

  interact(() => find(shown("running"), "[data-testid=run-pause]").click());
  await settle();

  expect(post).toHaveBeenCalledWith("/api/v1/simulator/runs/{run_id}/pause", { run_id: "run_1" });
  expect(told).toHaveBeenCalledWith(expect.objectContaining({ state: "paused" }));
  expect(find(shown("paused"), "[data-testid=run-resume]").textContent).toBe("Go on");
  expect(find<HTMLButtonElement>(shown("stopped"), "[data-testid=run-stop]").disabled).toBe(true);
  expect(find(shown("stopped"), "[data-testid=run-continue]").textContent).toBe("Go on as a new run");
});

test("who may only look finds the buttons closed", () => {
  session.value = { kind: "open", session: { name: "vi", role: "viewer", tokens_required: true } };
  const page = draw(<RunControls status={status()} details={null} onStatus={vi.fn()} onOther={vi.fn()} />);

  expect([...page.querySelectorAll("button")].map(({ disabled }) => disabled)).toEqual([true, true, true]);
});

test("a refused payment says why, in names, and shows its line", async () => {
  const details = { bottleneck: { from: "bob", to: "ann" } };
  const reason = {
    code: "bottleneck",
    sentence: "It would pass if ann trusted bob with 30.00 more.",
    facts: {},
    because: [],
  };
  const post = vi.spyOn(api, "post");
  post.mockRejectedValueOnce(new ApiError("ROUTING_NO_CAPACITY", "Only 10.00 of 40.00 found a way", 409, details));
  post.mockResolvedValueOnce({ code: "ROUTING_NO_CAPACITY", sentence: "…", facts: {}, because: [reason] } as never);
  const choose = vi.fn();
  const page = draw(
    <ByHand runId="run_1" network={network()} active chosen={{ kind: "node", id: "bob" }} onChoose={choose} />,
  );
  const payee = find<HTMLSelectElement>(page, "[data-testid=pay-to]");
  interact(() => {
    payee.value = "ann";
    payee.dispatchEvent(new Event("change", { bubbles: true }));
  });

  interact(() => find<HTMLFormElement>(page, "form").requestSubmit());
  await settle();

  expect(find<HTMLSelectElement>(page, "[data-testid=pay-from]").value).toBe("bob");
  expect(find(page, "[data-testid=refused]").textContent).toContain("Refused, no capacity: Only 10.00 of 40.00");
  expect(find(page, "[data-testid=refused-because]").textContent).toBe(
    "It would pass if ANN trusted BOB with 30.00 more.",
  );
  interact(() => find(page, "[data-testid=show-line]").click());
  expect(choose).toHaveBeenCalledWith({ kind: "line", from: "ann", to: "bob" });
});

test("names stand where sentences have ids, and other words stay", () => {
  expect(withNames(network(), "ann, bob's and anna: 3")).toBe("ANN, BOB's and anna: 3");
});

test("a bottleneck selects its line, and lets go of it", () => {
  const choose = vi.fn();
  const one = {
    target: { kind: "edge", from: "ann", to: "bob" },
    score: 0.75,
    reason_code: "FREQUENT_ABORTS",
    label: "bob → ann: 3 of 4 attempts failed",
    suggested_action: null,
  };
  const shown = (chosen: Parameters<typeof Stuck>[0]["chosen"]) =>
    draw(<Stuck bottlenecks={[one]} network={network()} chosen={chosen} onChoose={choose} />);

  interact(() => find(shown(null), "button").click());
  expect(choose).toHaveBeenLastCalledWith({ kind: "line", from: "ann", to: "bob" });
  const pressed = find(shown({ kind: "line", from: "ann", to: "bob" }), "button");
  expect([pressed.getAttribute("aria-pressed"), texts(pressed, ".stuck-told")[0]]).toEqual([
    "true",
    "3 of 4 attempts failed",
  ]);
  interact(() => pressed.click());
  expect(choose).toHaveBeenLastCalledWith(null);
});

test("a refusal because of a closed line says so, whatever is left on the line", () => {
  const closed = (change: string, limited_by = "policy") => ({
    code: "ROUTING_NO_CAPACITY",
    message: "Only 0.00 of 40.00 found a route",
    details: { limited_by, bottleneck: { from: "bob", to: "ann", available: "702.50", change } },
  });
  const refusals = [closed("allow_mediation"), closed("unblock"), closed("raise_limit", "capacity")];
  const happened = happenings(...refusals.map((error, place) => refused({ error, tick_index: place })));
  const choose = vi.fn();
  const page = draw(<Happened happened={happened} network={network()} onChoose={choose} />);

  expect(texts(page, "ol li")).toEqual([
    "2BOB → ANN 40.00 refused: no capacity from BOB to ANN",
    "1BOB → ANN 40.00 refused: the line of ANN to BOB blocks a participant on the way",
    "0BOB → ANN 40.00 refused: the line of ANN to BOB lets no payments pass through ANN",
  ]);
  expect(causesOf(counted(NOTHING, happened))).toEqual([
    ["LINE_CLOSED", 2],
    ["ROUTING_NO_CAPACITY", 1],
  ]);
  interact(() => find(page, "ol button").click());
  expect(choose).toHaveBeenCalledWith({ kind: "line", from: "ann", to: "bob" });
});

test("of what was wanted in ten points, the share that was paid is drawn", () => {
  const points = (...values: (string | null)[]) => values.map((v, place) => ({ t_ms: 1000 * place, v }));
  const series = [
    { key: "wanted", unit: "amount", points: points(null, "100.00", "300.00") },
    { key: "served", unit: "amount", points: points(null, "50.00", "50.00") },
  ];
  const metrics = { api_version: "", run_id: "", equivalent: "HOUR", from_ms: 0, to_ms: 2000, step_ms: 1000, series };
  const demand = { wanted: "400.00", served: "100.00", volume: "110.00", served_share: "25.00000000" };
  const page = draw(<Curves metrics={metrics} counts={NOTHING} equivalent="HOUR" demand={demand} />);

  expect(servedShare(metrics).map(({ value }) => value)).toEqual([null, 50, 25]);
  expect(find(page, "[data-testid=curve-served]").textContent).toContain("25 % in all");
});

test("what happens is told newest first, and refusals alone on demand", () => {
  const happened = happenings(paid({ seq: null }), refused(), cleared());
  const page = draw(<Happened happened={happened} network={network()} onChoose={vi.fn()} />);

  expect(texts(page, "ol li")).toEqual([
    "25Cleared 1\u00a0circle: debts less by 6.00 of at most 8.00",
    "3BOB → ANN 40.00 refused: no capacity from BOB to ANN",
    "3BOB → ANN 4.00, by hand",
  ]);
  interact(() => find(page, "[data-testid=happened-refusal]").click());
  expect(texts(page, "ol li")).toHaveLength(1);
});

test("curves are drawn of what is measured, and what is not there is said", () => {
  const series = [
    {
      key: "total_debt",
      unit: "amount",
      points: [
        { t_ms: 0, v: null },
        { t_ms: 1000, v: "20000.00" },
      ],
    },
  ];
  const metrics = { api_version: "", run_id: "", equivalent: "HOUR", from_ms: 0, to_ms: 1000, step_ms: 1000, series };
  const counts = counted(NOTHING, happenings(refused(), refused({ tick_index: 4 })));
  const page = draw(<Curves metrics={metrics} counts={counts} equivalent="HOUR" demand={null} />);

  expect(find(page, "[data-testid=curve-debt] svg").getAttribute("aria-label")).toContain("now 20k");
  expect(find(page, "[data-testid=curve-cleared]").textContent).toContain("Nothing was cleared yet.");
  expect(find(page, "[data-testid=curve-ROUTING_NO_CAPACITY]").textContent).toContain("2 in all");
  expect(seriesOf(metrics, "success_rate")).toEqual([]);
});

test("clearings lie on the axis of all ticks, and single ticks do not shake the curve", () => {
  const counts = counted(NOTHING, happenings(paid(), cleared(), paid({ tick_index: 30 })));

  expect(nearnessOf(counts)).toEqual([
    { at: 3, value: null },
    { at: 30, value: null },
    { at: 25, value: 75 },
  ]);
  expect(
    smoothed([
      { at: 0, value: null },
      { at: 1, value: 40 },
      { at: 2, value: 60 },
    ]),
  ).toEqual([
    { at: 0, value: null },
    { at: 1, value: 40 },
    { at: 2, value: 50 },
  ]);
});

test("a run is asked for with what was chosen and nothing else", () => {
  const wish = { scenario: "three", seed: "", cap: "500", policy: "static", intensity: 70 };

  expect(bodyOf(wish)).toEqual({
    scenario_id: "three",
    mode: "real",
    intensity_percent: 70,
    settings: { clearing_policy: "static", clearing_yardstick: "on", amount_cap: "500" },
  });
  expect(bodyOf({ ...wish, seed: "9", cap: "", policy: "off" })).toMatchObject({
    seed: 9,
    settings: { clearing_enabled: "off", clearing_yardstick: "on" },
  });
});

test("two ways are told side by side, and what parts them in a sentence", () => {
  const way = {
    attempts: 10,
    committed: 5,
    rejected: 5,
    metrics: { HOUR: { total_debt: "12.50000000" } },
    clearings: 1,
    debt_reduction: "6.00",
    tried_by_tick: [10],
    made_by_tick: [5],
  };
  const found = {
    api_version: "",
    run_id: "r",
    tick_index: 7,
    ticks: 1,
    settings: {},
    first_difference: 7,
    original: way,
  };

  expect(rowsOf(way, { ...way, committed: 8 }, "HOUR").map((row) => [row.original, row.fork])).toEqual([
    ["10", "10"],
    ["5 (50 %)", "8 (80 %)"],
    ["5", "5"],
    ["1", "1"],
    ["6.00", "6.00"],
    ["12.50", "12.50"],
  ]);
  expect(verdictOf({ ...found, fork: { ...way, committed: 8 } })).toBe(
    "The ways part at tick 7; 3 more payments would be made.",
  );
  expect(verdictOf({ ...found, fork: { ...way, committed: 4 } })).toContain("1 fewer");
  expect(verdictOf({ ...found, first_difference: null, fork: way })).toBe("Nothing would differ.");
});

test("a file that is no JSON is refused by its name before anything is sent", () => {
  expect(documentIn('{"a": 1}', "village.json")).toEqual({ a: 1 });
  expect(() => documentIn("participants:", "village.yaml")).toThrow(/^village.yaml is not JSON: /);
});

test("a run that has ended has a slider over its journal, and asks for its ends once", async () => {
  vi.useFakeTimers();
  const moments = vi.spyOn(api, "moments").mockResolvedValue({
    moments: [
      { n: 0, t: 0, at: null },
      { n: 40, t: 12, at: null },
    ],
  });
  const page = draw(<RunSlider runId="run_1" active={false} at={null} busy={false} onMove={vi.fn()} />);
  await settle();
  await vi.advanceTimersByTimeAsync(20_000);

  expect(find<HTMLInputElement>(page, "[data-testid=time-slider-input]").max).toBe("40");
  expect(moments.mock.calls.filter(([, points]) => points === 2)).toHaveLength(1);
  vi.useRealTimers();
});

test("a run that the server stopped says why", () => {
  const words = "the demonstration makes way for another run";
  const drawn = (stop_source: string) =>
    draw(
      <RunControls
        status={status({ state: "stopped", stop_source, stop_reason: words })}
        details={null}
        onStatus={vi.fn()}
        onOther={vi.fn()}
      />,
    );

  expect(find(drawn("server"), "[data-testid=run-stopped]").textContent).toBe(`Stopped by the server: ${words}.`);
  expect(drawn("ui").querySelector("[data-testid=run-stopped]")).toBeNull();
});
