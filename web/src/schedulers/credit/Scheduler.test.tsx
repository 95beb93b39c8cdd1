// @vitest-environment happy-dom

import { signal } from "@preact/signals";
import { beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import { api, session } from "../../api/server";
import { draw, find, interact, texts } from "../../testing/drawing";
import { Bottlenecks } from "./Bottlenecks";
import { Curves, efficiencyOf, seriesOf, servedShare, smoothed } from "./Curves";
import { addEvents, causesOf, NO_COUNTS } from "./counts";
import { ManualPayment } from "./ManualPayment";
import { clearPositions } from "./network/layout";
import { runEventOf, withNames } from "./network/model";
import { NetworkView, nextNode, readingOrder, sentenceOf } from "./network/NetworkView";
import { RunSlider } from "./PastRun";
import { RunControls } from "./RunControls";
import { RunEvents } from "./RunEvents";
import { bodyOf, parseDocument } from "./StartRun";
import { cleared, link, network, node, paid, refused, status } from "./testing";
import { rowsOf, verdictOf } from "./WhatIf";

beforeEach(() => {
  clearPositions();
  session.value = { kind: "open", session: { name: "local", role: "operator", tokens_required: false } };
});

function runEvents(...events: Parameters<typeof runEventOf>[0][]) {
  return events.map(runEventOf).filter((event) => event !== null);
}

async function settle(): Promise<void> {
  for (let round = 0; round < 5; round += 1) await Promise.resolve();
  interact(() => undefined);
}

test("a participant is described with its net position and its lines", () => {
  const nodes = [node("ann", { net_balance: "-12345.00", net_sign: -1 }), node("bob"), node("cid")];
  const links = [link("bob", "ann", { used: "10.00", available: "0.00" }), link("ann", "cid")];
  const drawn = network({ nodes, links });

  expect(sentenceOf(drawn, { kind: "node", id: "ann" })).toBe(
    "ANN (person) owes 12\u202f345.00 HOUR net. Trusted by 1 (1 line full), trusts 1.",
  );
  expect(sentenceOf(drawn, { kind: "node", id: "bob" })).toContain("has a net position of zero");
  expect(sentenceOf(drawn, { kind: "node", id: "zoe" })).toBe("zoe is no longer in the network.");
});

test("a line is described with its debt and what is left", () => {
  const drawn = network({ links: [link("ann", "bob", { used: "4.00", available: "6.00" })] });

  expect(sentenceOf(drawn, { kind: "line", from: "ann", to: "bob" })).toBe(
    "ANN trusts BOB up to 10.00 HOUR; 4.00 owed (40 %), 6.00 left.",
  );
  expect(sentenceOf(drawn, { kind: "line", from: "bob", to: "ann" })).toBe("BOB has no line to ANN now.");
});

test("arrow keys visit every participant once, in reading order", () => {
  const positions = new Map([
    ["ann", { x: 0.9, y: 0.02 }],
    ["bob", { x: 0.1, y: 0.05 }],
    ["cid", { x: 0.5, y: 0.9 }],
  ]);
  const order = readingOrder(network(), positions);
  const at = (id: string) => ({ kind: "node", id }) as const;

  expect(order).toEqual(["bob", "ann", "cid"]);
  expect([nextNode(order, null, "ArrowRight"), nextNode(order, null, "ArrowLeft")]).toEqual(["bob", "cid"]);
  expect([nextNode(order, at("cid"), "ArrowDown"), nextNode(order, at("ann"), "ArrowUp")]).toEqual(["bob", "bob"]);
  expect([nextNode(order, at("ann"), "Home"), nextNode(order, at("ann"), "End")]).toEqual(["bob", "cid"]);
  expect([nextNode(order, at("ann"), "Escape"), nextNode(order, at("ann"), "x")]).toEqual([null, undefined]);
});

test("the tables select like the graph does", () => {
  const choose = vi.fn();
  const page = draw(
    <NetworkView name="three" network={network()} highlights={signal([])} chosen={null} onChoose={choose} />,
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

test("the buttons depend on the state of the run and report the new status", async () => {
  const post = vi.spyOn(api, "post").mockResolvedValue(status({ state: "paused" }) as never);
  const onStatus = vi.fn();
  const shown = (state: string) =>
    draw(<RunControls status={status({ state })} details={null} onStatus={onStatus} onOther={vi.fn()} />);

  interact(() => find(shown("running"), "[data-testid=run-pause]").click());
  await settle();

  expect(post).toHaveBeenCalledWith("/api/v1/simulator/runs/{run_id}/pause", { run_id: "run_1" });
  expect(onStatus).toHaveBeenCalledWith(expect.objectContaining({ state: "paused" }));
  expect(find(shown("paused"), "[data-testid=run-resume]").textContent).toBe("Resume");
  expect(find<HTMLButtonElement>(shown("stopped"), "[data-testid=run-stop]").disabled).toBe(true);
  expect(find(shown("stopped"), "[data-testid=run-continue]").textContent).toBe("Continue as a new run");
});

test("the buttons are disabled for viewers", () => {
  session.value = { kind: "open", session: { name: "vi", role: "viewer", tokens_required: true } };
  const page = draw(<RunControls status={status()} details={null} onStatus={vi.fn()} onOther={vi.fn()} />);

  expect([...page.querySelectorAll("button")].map(({ disabled }) => disabled)).toEqual([true, true, true]);
});

test("a refused payment shows the reason with names, and its bottleneck line", async () => {
  const details = { bottleneck: { from: "bob", to: "ann" } };
  const reason = {
    code: "bottleneck",
    sentence: "It would pass if ann trusted bob with 30.00 more.",
    facts: {},
    because: [],
  };
  const post = vi.spyOn(api, "post");
  post.mockRejectedValueOnce(new ApiError("ROUTING_NO_CAPACITY", "No route for 30.00 of 40.00", 409, details));
  post.mockResolvedValueOnce({ code: "ROUTING_NO_CAPACITY", sentence: "…", facts: {}, because: [reason] } as never);
  const choose = vi.fn();
  const page = draw(
    <ManualPayment runId="run_1" network={network()} active chosen={{ kind: "node", id: "bob" }} onChoose={choose} />,
  );
  const payee = find<HTMLSelectElement>(page, "[data-testid=pay-to]");
  interact(() => {
    payee.value = "ann";
    payee.dispatchEvent(new Event("change", { bubbles: true }));
  });

  interact(() => find<HTMLFormElement>(page, "form").requestSubmit());
  await settle();

  expect(find<HTMLSelectElement>(page, "[data-testid=pay-from]").value).toBe("bob");
  expect(find(page, "[data-testid=refused]").textContent).toContain(
    "Refused (no capacity): No route for 30.00 of 40.00",
  );
  expect(find(page, "[data-testid=refused-because]").textContent).toBe(
    "It would pass if ANN trusted BOB with 30.00 more.",
  );
  interact(() => find(page, "[data-testid=show-line]").click());
  expect(choose).toHaveBeenCalledWith({ kind: "line", from: "ann", to: "bob" });
});

test("ids in sentences are replaced by names, other words stay", () => {
  expect(withNames(network(), "ann, bob's and anna: 3")).toBe("ANN, BOB's and anna: 3");
});

test("a bottleneck selects and deselects its line", () => {
  const choose = vi.fn();
  const bottleneck = {
    target: { kind: "edge", from: "ann", to: "bob" },
    score: 0.75,
    reason_code: "FREQUENT_ABORTS",
    label: "bob → ann: 3 of 4 attempts failed",
    suggested_action: null,
  };
  const shown = (chosen: Parameters<typeof Bottlenecks>[0]["chosen"]) =>
    draw(<Bottlenecks bottlenecks={[bottleneck]} network={network()} chosen={chosen} onChoose={choose} />);

  interact(() => find(shown(null), "button").click());
  expect(choose).toHaveBeenLastCalledWith({ kind: "line", from: "ann", to: "bob" });
  const pressed = find(shown({ kind: "line", from: "ann", to: "bob" }), "button");
  expect([pressed.getAttribute("aria-pressed"), texts(pressed, ".bottleneck-count")[0]]).toEqual([
    "true",
    "3 of 4 attempts failed",
  ]);
  interact(() => pressed.click());
  expect(choose).toHaveBeenLastCalledWith(null);
});

test("a refusal because of a closed line says so, even if the line has capacity left", () => {
  const closed = (change: string, limited_by = "policy") => ({
    code: "ROUTING_NO_CAPACITY",
    message: "Only 0.00 of 40.00 found a route",
    details: { limited_by, bottleneck: { from: "bob", to: "ann", available: "702.50", change } },
  });
  const refusals = [closed("allow_mediation"), closed("unblock"), closed("raise_limit", "capacity")];
  const events = runEvents(...refusals.map((error, index) => refused({ error, tick_index: index })));
  const choose = vi.fn();
  const page = draw(<RunEvents events={events} network={network()} onChoose={choose} />);

  expect(texts(page, "ol li")).toEqual([
    "2BOB → ANN 40.00 refused: no capacity from BOB to ANN",
    "1BOB → ANN 40.00 refused: line ANN → BOB blocks a participant on the route",
    "0BOB → ANN 40.00 refused: line ANN → BOB does not forward payments through ANN",
  ]);
  expect(causesOf(addEvents(NO_COUNTS, events))).toEqual([
    ["LINE_CLOSED", 2],
    ["ROUTING_NO_CAPACITY", 1],
  ]);
  interact(() => find(page, "ol button").click());
  expect(choose).toHaveBeenCalledWith({ kind: "line", from: "ann", to: "bob" });
});

test("served demand is averaged over ten points", () => {
  const points = (...values: (string | null)[]) => values.map((v, index) => ({ t_ms: 1000 * index, v }));
  const series = [
    { key: "wanted", unit: "amount", points: points(null, "100.00", "300.00") },
    { key: "served", unit: "amount", points: points(null, "50.00", "50.00") },
  ];
  const metrics = { api_version: "", run_id: "", equivalent: "HOUR", from_ms: 0, to_ms: 2000, step_ms: 1000, series };
  const demand = { wanted: "400.00", served: "100.00", volume: "110.00", served_share: "25.00000000" };
  const page = draw(<Curves metrics={metrics} counts={NO_COUNTS} equivalent="HOUR" demand={demand} />);

  expect(servedShare(metrics).map(({ value }) => value)).toEqual([null, 50, 25]);
  expect(find(page, "[data-testid=curve-served]").textContent).toContain("25 % in total");
});

test("events are listed newest first and filtered by kind", () => {
  const events = runEvents(paid({ seq: null }), refused(), cleared());
  const page = draw(<RunEvents events={events} network={network()} onChoose={vi.fn()} />);

  expect(texts(page, "ol li")).toEqual([
    "25Cleared 1\u00a0cycle: debt reduced by 6.00 of at most 8.00",
    "3BOB → ANN 40.00 refused: no capacity from BOB to ANN",
    "3BOB → ANN 4.00, manual",
  ]);
  interact(() => find(page, "[data-testid=events-refusal]").click());
  expect(texts(page, "ol li")).toHaveLength(1);
});

test("curves show measured values, or a text when there are none", () => {
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
  const counts = addEvents(NO_COUNTS, runEvents(refused(), refused({ tick_index: 4 })));
  const page = draw(<Curves metrics={metrics} counts={counts} equivalent="HOUR" demand={null} />);

  expect(find(page, "[data-testid=curve-debt] svg").getAttribute("aria-label")).toContain("now 20k");
  expect(find(page, "[data-testid=curve-cleared]").textContent).toContain("Nothing cleared yet.");
  expect(find(page, "[data-testid=curve-ROUTING_NO_CAPACITY]").textContent).toContain("2 in total");
  expect(seriesOf(metrics, "success_rate")).toEqual([]);
});

test("clearing efficiency shares the axis of all ticks, and curves are smoothed", () => {
  const counts = addEvents(NO_COUNTS, runEvents(paid(), cleared(), paid({ tick_index: 30 })));

  expect(efficiencyOf(counts)).toEqual([
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

test("the request for a run has only the chosen settings", () => {
  const settings = { scenario: "three", seed: "", cap: "500", policy: "static", intensity: 70 };

  expect(bodyOf(settings)).toEqual({
    scenario_id: "three",
    mode: "real",
    intensity_percent: 70,
    settings: { clearing_policy: "static", clearing_yardstick: "on", amount_cap: "500" },
  });
  expect(bodyOf({ ...settings, seed: "9", cap: "", policy: "off" })).toMatchObject({
    seed: 9,
    settings: { clearing_enabled: "off", clearing_yardstick: "on" },
  });
});

test("two branches are compared in a table and summarised in a sentence", () => {
  const branch = {
    attempts: 10,
    committed: 5,
    rejected: 5,
    metrics: { HOUR: { total_debt: "12.50000000" } },
    clearings: 1,
    debt_reduction: "6.00",
    tried_by_tick: [10],
    made_by_tick: [5],
  };
  const comparison = {
    api_version: "",
    run_id: "r",
    tick_index: 7,
    ticks: 1,
    settings: {},
    first_difference: 7,
    original: branch,
  };

  expect(rowsOf(branch, { ...branch, committed: 8 }, "HOUR").map((row) => [row.original, row.fork])).toEqual([
    ["10", "10"],
    ["5 (50 %)", "8 (80 %)"],
    ["5", "5"],
    ["1", "1"],
    ["6.00", "6.00"],
    ["12.50", "12.50"],
  ]);
  expect(verdictOf({ ...comparison, fork: { ...branch, committed: 8 } })).toBe(
    "The runs diverge at tick 7; 3 more payments with the change.",
  );
  expect(verdictOf({ ...comparison, fork: { ...branch, committed: 4 } })).toContain("1 fewer");
  expect(verdictOf({ ...comparison, first_difference: null, fork: branch })).toBe("No difference.");
});

test("an invalid scenario file is rejected with its name before the upload", () => {
  expect(parseDocument('{"a": 1}', "village.json")).toEqual({ a: 1 });
  expect(() => parseDocument("participants:", "village.yaml")).toThrow(/^village.yaml is not JSON: /);
});

test("a finished run has a slider over its journal and fetches its ends once", async () => {
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

test("a run stopped by the server shows the reason", () => {
  const reason = "another run was started";
  const drawn = (stop_source: string) =>
    draw(
      <RunControls
        status={status({ state: "stopped", stop_source, stop_reason: reason })}
        details={null}
        onStatus={vi.fn()}
        onOther={vi.fn()}
      />,
    );

  expect(find(drawn("server"), "[data-testid=run-stopped]").textContent).toBe(`Stopped by the server: ${reason}.`);
  expect(drawn("ui").querySelector("[data-testid=run-stopped]")).toBeNull();
});
