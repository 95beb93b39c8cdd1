// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";

import { api, readiness, schedulerList } from "../../api/server";
import type { SchedulerView } from "../../api/types";
import { schedulerHref } from "../../route";
import { draw, find, interact, texts } from "../../testing/drawing";
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

test("only schedulers of engines show that they have none", () => {
  vi.spyOn(api, "get").mockRejectedValue(new Error("nothing here"));
  schedulerList.value = list(SCHEDULER, { ...SCHEDULER, name: "jobs", title: "Jobs" });
  const page = draw(<Home />);

  expect(find(page, "[data-testid=scheduler-card-actions]").textContent).toContain("No engine yet.");
  expect(find(page, "[data-testid=scheduler-card-jobs]").textContent).not.toContain("engine");
});

test("engine time is shown in human units", async () => {
  schedulerList.value = list({ ...SCHEDULER, name: "tally", engines: [TALLY] });
  const page = draw(<Home />);
  await vi.waitFor(() => interact(() => find(page, "[data-testid=figures]")));

  expect(texts(page, ".card-figures dd")).toEqual(["51 d", "9"]);
  expect(page.textContent).not.toContain("73");
});

test("when nothing needs attention there is one line and no empty panel", () => {
  schedulerList.value = list({ ...SCHEDULER, name: "tally", engines: [TALLY] });
  readiness.value = { status: "ready", checks: [{ name: "tokens", ok: true, reason: null, note: null }], clock: CLOCK };
  const page = draw(<Home />);

  expect(find(page, "[data-testid=needs]").textContent).toContain("Nothing needs attention.");
  expect(page.querySelectorAll(".panel")).toHaveLength(0);
});

test("the note of a passing check is listed with a link to its engine", () => {
  schedulerList.value = list({ ...SCHEDULER, name: "tally", title: "Tally", engines: [TALLY] });
  const note = "Journal: record 4 has a checksum that does not hold.";
  readiness.value = { status: "ready", checks: [{ name: "tally/demo", ok: true, reason: null, note }], clock: CLOCK };
  const page = draw(<Home />);

  const link = find(page, "[data-testid=need] a");
  expect(link.textContent).toBe(`tally/demo: ${note}`);
  expect(link.getAttribute("href")).toBe(schedulerHref("tally", "demo"));
});

test("a broken engine is listed once, not again for its failing check", () => {
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

  expect(needs.map((link) => [link.textContent, link.getAttribute("href")])).toEqual([
    ["Tally demo: the disk is full", "#/schedulers/tally/demo"],
    ["Check tokens failed: unreadable", "#/"],
  ]);
});
