// @vitest-environment happy-dom

import { beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import { api, session } from "../../api/server";
import type { SchedulerShownObject, SchedulerWhyObject } from "../../api/types";
import { draw, find, interact, texts } from "../../testing/drawing";
import { typedName } from "./acting";
import { Deed } from "./Deed";
import { amendmentOf, ObjectDeeds, refsIn } from "./ObjectDeeds";
import { after, governed } from "./testing";

const OBJECT = governed({ version: 7 });
const SHOWN: SchedulerShownObject = { object: OBJECT, gates: [], decision_traces: [], rollbacks: [] };
const ASKED = { job_id: null, object_type: "lamp", object_id: "hall", asked_at: after(-9), reason: "forged" };
const OPEN_ROLLBACK = { ...ASKED, rollback_id: "rb_1", finished_at: null };
const WHY = {
  object: OBJECT,
  next_action: "press",
  ways_out: [
    { action: "press", finding: "pressed", leads_to: "on" },
    { action: "press", finding: "bang", leads_to: "broken" },
  ],
} as unknown as SchedulerWhyObject;

beforeEach(() => {
  session.value = { kind: "open", session: { name: "local", role: "operator", tokens_required: false } };
  typedName.value = "Ada";
});

function type(page: HTMLElement, testId: string, text: string): void {
  const field = find<HTMLInputElement>(page, `[data-testid=${testId}]`);
  field.value = text;
  interact(() => void field.dispatchEvent(new Event("input", { bubbles: true })));
}

function ask(page: HTMLElement, deed: string): void {
  interact(() => find<HTMLFormElement>(page, `[data-testid=${deed}] form`).requestSubmit());
}

function press(page: HTMLElement, testId: string): void {
  interact(() => find(page, `[data-testid=${testId}]`).click());
}

function deeds(shown: SchedulerShownObject = SHOWN, onDone: () => void = () => undefined): HTMLElement {
  return draw(<ObjectDeeds shown={shown} why={WHY} onDone={onDone} />);
}

test("nothing is done before it is asked once more, and a no does nothing", async () => {
  const act = vi.fn().mockResolvedValue("It is done.");
  const done = vi.fn();
  const page = draw(<Deed title="Do" testId="deed" question="Really?" act={act} onDone={done} />);
  type(page, "deed-reason", " it has to be ");

  ask(page, "deed");
  expect(page.textContent).toContain("Really?");
  press(page, "deed-no");
  expect(act).not.toHaveBeenCalled();
  expect(page.textContent).not.toContain("Really?");

  ask(page, "deed");
  press(page, "deed-yes");
  await vi.waitFor(() => expect(done).toHaveBeenCalledOnce());
  expect(act).toHaveBeenCalledWith("it has to be", "Ada");
  expect(find(page, "[data-testid=deed-told]").textContent).toBe("It is done.");
});

test("a deed that is refused says why, and its reason can be used again", async () => {
  const act = vi.fn().mockRejectedValue(new ApiError("gate_closed", "risk_gate blocks it.", 409));
  const page = draw(<Deed title="Do" testId="deed" question="Really?" act={act} onDone={() => undefined} />);
  type(page, "deed-reason", "still true");

  ask(page, "deed");
  press(page, "deed-yes");

  await vi.waitFor(() => expect(page.textContent).toContain("risk_gate blocks it."));
  expect(find<HTMLInputElement>(page, "[data-testid=deed-reason]").value).toBe("still true");
});

test("viewers see what could be done and that it is not theirs to do", () => {
  session.value = { kind: "open", session: { name: "eve", role: "viewer", tokens_required: true } };
  const page = draw(<Deed title="Do" testId="deed" question="Really?" act={vi.fn()} onDone={() => undefined} />);

  expect(find<HTMLButtonElement>(page, "[data-testid=deed-ask]").disabled).toBe(true);
  expect(page.textContent).toContain("needs the role operator");
});

test("a decision goes the way that was chosen, about the version that was looked at", async () => {
  const answer = { outcome: "transitioned", object: governed({ status: "broken" }), reason: "bang" };
  const post = vi.spyOn(api, "post").mockResolvedValue(answer as never);
  const page = deeds();
  const way = find<HTMLSelectElement>(page, "[data-testid=deed-decide-way]");
  way.value = "1";
  interact(() => void way.dispatchEvent(new Event("change", { bubbles: true })));
  type(page, "deed-decide-refs", "note:1, ,note:2");
  type(page, "deed-decide-reason", "it fell");

  ask(page, "deed-decide");
  expect(page.textContent).toContain("hall is off and is to become broken, in your name?");
  press(page, "deed-decide-yes");

  await vi.waitFor(() => expect(page.textContent).toContain("hall is broken."));
  expect(post.mock.lastCall?.slice(2)).toEqual([
    { action: "press", finding: "bang", reason: "it fell", evidence_refs: ["note:1", "note:2"], version: 7 },
    "Ada",
  ]);
});

test("an amendment sends what was filled in and nothing else, about the version that was looked at", async () => {
  const post = vi.spyOn(api, "post").mockResolvedValue({ object: OBJECT, followup_job_id: null });
  const page = deeds();
  type(page, "deed-amend-expires_at", "2027-01-01T12:30");
  type(page, "deed-amend-reason", "it ends with the year");

  ask(page, "deed-amend");
  expect(page.textContent).toContain("Change expires at of hall?");
  press(page, "deed-amend-yes");

  await vi.waitFor(() => expect(page.textContent).toContain("hall is amended."));
  const moment = new Date("2027-01-01T12:30").toISOString();
  expect(post.mock.lastCall?.[2]).toEqual({ expires_at: moment, reason: "it ends with the year", version: 7 });
  expect(amendmentOf({ expires_at: "", review_due_at: "" }, " it burns ")).toEqual({ falsify_if: "it burns" });
});

test("a budget is refilled with as many units as were asked for", async () => {
  const answer = { object: governed({ verify_budget_left: 5 }), followup_job_id: null };
  const post = vi.spyOn(api, "post").mockResolvedValue(answer);
  const page = deeds();
  type(page, "deed-refill-units", "5");
  type(page, "deed-refill-reason", "a new method");

  ask(page, "deed-refill");
  press(page, "deed-refill-yes");

  await vi.waitFor(() => expect(page.textContent).toContain("hall has 5\u00a0verifications left."));
  expect(post.mock.lastCall?.[2]).toEqual({ reason: "a new method", budget: 5 });
});

test("evidence is attached, and what kind of not knowing it is can be said where it is unknown", async () => {
  const post = vi.spyOn(api, "post").mockResolvedValue({ object: OBJECT, followup_job_id: null });
  const unsure = { ...SHOWN, object: governed({ unknown_type: "multipath" }) };
  const page = deeds(unsure);
  const kind = find<HTMLSelectElement>(page, "[data-testid=deed-evidence-unknown]");
  kind.value = "out_of_scope";
  interact(() => void kind.dispatchEvent(new Event("change", { bubbles: true })));
  type(page, "deed-evidence-refs", "photo:3");
  type(page, "deed-evidence-reason", "found in the attic");

  ask(page, "deed-evidence");
  press(page, "deed-evidence-yes");

  await vi.waitFor(() => expect(post).toHaveBeenCalled());
  expect(post.mock.lastCall?.[2]).toEqual({
    evidence_refs: ["photo:3"],
    reason: "found in the attic",
    unknown_type: "out_of_scope",
  });
  expect(deeds().querySelector("[data-testid=deed-evidence-unknown]")).toBeNull();
});

test("a rollback is reported finished only where one is waited for", () => {
  expect(texts(deeds(), "summary")).not.toContain("Report the rollback finished");
  expect(texts(deeds({ ...SHOWN, rollbacks: [OPEN_ROLLBACK] }), "summary")).toContain("Report the rollback finished");
  expect(refsIn(" a , b,,")).toEqual(["a", "b"]);
});
