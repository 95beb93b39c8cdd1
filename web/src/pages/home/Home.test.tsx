// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";

import { api, readiness, schedulerList } from "../../api/server";
import type { SchedulerView } from "../../api/types";
import { schedulerHref } from "../../route";
import { doing, draw, find, texts } from "../../testing/drawing";
import { Home } from "./Home";

const SCHEDULER: SchedulerView = {
  name: "actions",
  title: "Actions",
  sentence: "…",
  state: "ready",
  reason: null,
  engines: [],
};
const CLOCK = { ahead_sec: 0, agrees_in_sec: 0 };
const TALLY = { name: "demo", time_unit: "min", now: 73_440, commands: 9, broken: null };

const list = (...schedulers: SchedulerView[]) => ({ version: "0.1.0", demo: false, schedulers });

afterEach(() => {
  schedulerList.value = null;
  readiness.value = null;
});

test("only schedulers of engines are told to have none", () => {
  vi.spyOn(api, "get").mockRejectedValue(new Error("nothing here"));
  schedulerList.value = list(SCHEDULER, { ...SCHEDULER, name: "jobs", title: "Jobs" });
  const page = draw(<Home />);

  expect(find(page, "[data-testid=scheduler-card-actions]").textContent).toContain("No engine runs in this scheduler.");
  expect(find(page, "[data-testid=scheduler-card-jobs]").textContent).not.toContain("engine");
});

test("the time of an engine is told in human units", async () => {
  schedulerList.value = list({ ...SCHEDULER, name: "tally", engines: [TALLY] });
  const page = draw(<Home />);
  await vi.waitFor(() => doing(() => find(page, "[data-testid=figures]")));

  expect(texts(page, ".card-figures dd")).toEqual(["51 d", "9"]);
  expect(page.textContent).not.toContain("73");
});

test("where nothing needs a person one line says so, and no panel is empty", () => {
  schedulerList.value = list({ ...SCHEDULER, name: "tally", engines: [TALLY] });
  readiness.value = { status: "ready", checks: [{ name: "tokens", ok: true, reason: null, note: null }], clock: CLOCK };
  const page = draw(<Home />);

  expect(find(page, "[data-testid=needs]").textContent).toContain("Nothing needs a person.");
  expect(page.querySelectorAll(".panel")).toHaveLength(0);
});

test("a note of a check that holds is listed with a link to its engine", () => {
  schedulerList.value = list({ ...SCHEDULER, name: "tally", title: "Tally", engines: [TALLY] });
  const note = "Journal: record 4 has a checksum that does not hold.";
  readiness.value = { status: "ready", checks: [{ name: "tally/demo", ok: true, reason: null, note }], clock: CLOCK };
  const page = draw(<Home />);

  const link = find(page, "[data-testid=need] a");
  expect(link.textContent).toBe(`tally/demo: ${note}`);
  expect(link.getAttribute("href")).toBe(schedulerHref("tally", "demo"));
});

test("what is broken leads to its engine, and its failing check does not tell it twice", () => {
  const engine = { ...TALLY, broken: "the disk is full" };
  schedulerList.value = list({ ...SCHEDULER, name: "tally", title: "Tally", state: "broken", engines: [engine] });
  readiness.value = {
    status: "unready",
    checks: [
      { name: "tally/demo", ok: false, reason: "disk_full", note: null },
      { name: "tokens", ok: false, reason: "unreadable", note: null },
    ],
    clock: CLOCK,
  };
  const page = draw(<Home />);
  const needs = [...page.querySelectorAll("[data-testid=need] a")];

  expect(needs.map((one) => [one.textContent, one.getAttribute("href")])).toEqual([
    ["Tally demo: the disk is full", "#/schedulers/tally/demo"],
    ["The check tokens fails: unreadable", "#/"],
  ]);
});
