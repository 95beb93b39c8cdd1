// @vitest-environment happy-dom

import { beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import { api, session } from "../../api/server";
import type { SchedulerShownObject, SchedulerWhyObject } from "../../api/types";
import { draw, find, interact, texts } from "../../testing/drawing";
import { typedName } from "./acting_user";
import { amendmentOf, ObjectActions, refsIn } from "./ObjectActions";
import { OperatorAction } from "./OperatorAction";
import { after, governed } from "./testing";

const OBJECT = governed({ version: 7 });
const SHOWN: SchedulerShownObject = { object: OBJECT, gates: [], decision_traces: [], rollbacks: [] };
const REQUESTED = { job_id: null, object_type: "lamp", object_id: "hall", asked_at: after(-9), reason: "forged" };
const OPEN_ROLLBACK = { ...REQUESTED, rollback_id: "rb_1", finished_at: null };
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

function submit(page: HTMLElement, action: string): void {
  interact(() => find<HTMLFormElement>(page, `[data-testid=${action}] form`).requestSubmit());
}

function press(page: HTMLElement, testId: string): void {
  interact(() => find(page, `[data-testid=${testId}]`).click());
}

function actions(shown: SchedulerShownObject = SHOWN, onDone: () => void = () => undefined): HTMLElement {
  return draw(<ObjectActions shown={shown} why={WHY} onDone={onDone} />);
}

test("an action is sent only after its confirmation", async () => {
  const act = vi.fn().mockResolvedValue("Done.");
  const done = vi.fn();
  const page = draw(<OperatorAction title="Do" testId="action" question="Really?" act={act} onDone={done} />);
  type(page, "action-reason", " it has to be ");

  submit(page, "action");
  expect(page.textContent).toContain("Really?");
  press(page, "action-dismiss");
  expect(act).not.toHaveBeenCalled();
  expect(page.textContent).not.toContain("Really?");

  submit(page, "action");
  press(page, "action-confirm");
  await vi.waitFor(() => expect(done).toHaveBeenCalledOnce());
  expect(act).toHaveBeenCalledWith("it has to be", "Ada");
  expect(find(page, "[data-testid=action-status]").textContent).toBe("Done.");
});

test("a refused action shows the error and keeps its reason", async () => {
  const act = vi.fn().mockRejectedValue(new ApiError("gate_closed", "risk_gate blocks it.", 409));
  const page = draw(
    <OperatorAction title="Do" testId="action" question="Really?" act={act} onDone={() => undefined} />,
  );
  type(page, "action-reason", "still true");

  submit(page, "action");
  press(page, "action-confirm");

  await vi.waitFor(() => expect(page.textContent).toContain("risk_gate blocks it."));
  expect(find<HTMLInputElement>(page, "[data-testid=action-reason]").value).toBe("still true");
});

test("viewers see the actions as disabled", () => {
  session.value = { kind: "open", session: { name: "eve", role: "viewer", tokens_required: true } };
  const page = draw(
    <OperatorAction title="Do" testId="action" question="Really?" act={vi.fn()} onDone={() => undefined} />,
  );

  expect(find<HTMLButtonElement>(page, "[data-testid=action-ask]").disabled).toBe(true);
  expect(page.textContent).toContain("needs the operator role");
});

test("a decision sends the chosen finding and the version shown", async () => {
  const answer = { outcome: "transitioned", object: governed({ status: "broken" }), reason: "bang" };
  const post = vi.spyOn(api, "post").mockResolvedValue(answer as never);
  const page = actions();
  const way = find<HTMLSelectElement>(page, "[data-testid=action-decide-finding]");
  way.value = "1";
  interact(() => void way.dispatchEvent(new Event("change", { bubbles: true })));
  type(page, "action-decide-refs", "note:1, ,note:2");
  type(page, "action-decide-reason", "it fell");

  submit(page, "action-decide");
  expect(page.textContent).toContain("Change hall from off to broken?");
  press(page, "action-decide-confirm");

  await vi.waitFor(() => expect(page.textContent).toContain("hall is now broken."));
  expect(post.mock.lastCall?.slice(2)).toEqual([
    { action: "press", finding: "bang", reason: "it fell", evidence_refs: ["note:1", "note:2"], version: 7 },
    "Ada",
  ]);
});

test("an amendment sends only the filled-in fields and the version shown", async () => {
  const post = vi.spyOn(api, "post").mockResolvedValue({ object: OBJECT, followup_job_id: null });
  const page = actions();
  type(page, "action-amend-expires_at", "2027-01-01T12:30");
  type(page, "action-amend-reason", "it ends with the year");

  submit(page, "action-amend");
  expect(page.textContent).toContain("Change expires at of hall?");
  press(page, "action-amend-confirm");

  await vi.waitFor(() => expect(page.textContent).toContain("Amended hall."));
  const moment = new Date("2027-01-01T12:30").toISOString();
  expect(post.mock.lastCall?.[2]).toEqual({ expires_at: moment, reason: "it ends with the year", version: 7 });
  expect(amendmentOf({ expires_at: "", review_due_at: "" }, " it burns ")).toEqual({ falsify_if: "it burns" });
});

test("a refill sets the given number of verifications", async () => {
  const answer = { object: governed({ verify_budget_left: 5 }), followup_job_id: null };
  const post = vi.spyOn(api, "post").mockResolvedValue(answer);
  const page = actions();
  type(page, "action-refill-units", "5");
  type(page, "action-refill-reason", "a new method");

  submit(page, "action-refill");
  press(page, "action-refill-confirm");

  await vi.waitFor(() => expect(page.textContent).toContain("hall has 5\u00a0verifications left."));
  expect(post.mock.lastCall?.[2]).toEqual({ reason: "a new method", budget: 5 });
});

test("evidence is attached, with an unknown type only for unknown objects", async () => {
  const post = vi.spyOn(api, "post").mockResolvedValue({ object: OBJECT, followup_job_id: null });
  const unsure = { ...SHOWN, object: governed({ unknown_type: "multipath" }) };
  const page = actions(unsure);
  const kind = find<HTMLSelectElement>(page, "[data-testid=action-evidence-unknown]");
  kind.value = "out_of_scope";
  interact(() => void kind.dispatchEvent(new Event("change", { bubbles: true })));
  type(page, "action-evidence-refs", "photo:3");
  type(page, "action-evidence-reason", "found in the attic");

  submit(page, "action-evidence");
  press(page, "action-evidence-confirm");

  await vi.waitFor(() => expect(post).toHaveBeenCalled());
  expect(post.mock.lastCall?.[2]).toEqual({
    evidence_refs: ["photo:3"],
    reason: "found in the attic",
    unknown_type: "out_of_scope",
  });
  expect(actions().querySelector("[data-testid=action-evidence-unknown]")).toBeNull();
});

test("a rollback can be marked as finished only while one is pending", () => {
  expect(texts(actions(), "summary")).not.toContain("Mark the rollback as finished");
  expect(texts(actions({ ...SHOWN, rollbacks: [OPEN_ROLLBACK] }), "summary")).toContain(
    "Mark the rollback as finished",
  );
  expect(refsIn(" a , b,,")).toEqual(["a", "b"]);
});
