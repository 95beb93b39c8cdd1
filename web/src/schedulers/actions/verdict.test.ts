import { expect, test } from "vitest";

import { verdictOf } from "./verdict";

const SUBMIT = { type: "submit", actions: [{ id: "B", actor: "ann", verb: "fly" }] };
const INTERRUPT = { type: "request", interrupts: [{ target: "A", priority: 3 }] };
const CANCEL = { type: "request", commands: [{ cancel: "A" }] };
const RESUME = { type: "request", commands: [{ resume: "A" }] };

test("an event about another action has no verdict", () => {
  expect(verdictOf(SUBMIT, { type: "start", action_id: "A" })).toBeNull();
  expect(verdictOf(INTERRUPT, { type: "diagnostic", action_id: null, message: "no" })).toBeNull();
  expect(verdictOf({ type: "advance", to: 5 }, { type: "start", action_id: "A" })).toBeNull();
});

test("a rejection refuses a submission, and a start completes it", () => {
  const message = "There is no verb fly";
  expect(verdictOf(SUBMIT, { type: "rejection", action_id: "B", code: "UnknownVerb", message })).toEqual({
    refused: true,
    sentence: "Refused: There is no verb fly.",
  });
  expect(verdictOf(SUBMIT, { type: "start", action_id: "B" })).toEqual({
    refused: false,
    sentence: "Done: B started.",
  });
});

test("an ignored interrupt has no effect, a granted one is done", () => {
  const message = "A is not interrupted: it is not running";
  expect(verdictOf(INTERRUPT, { type: "diagnostic", action_id: "A", code: "InterruptIgnored", message })).toEqual({
    refused: true,
    sentence: "No effect: A is not interrupted: it is not running.",
  });
  expect(verdictOf(INTERRUPT, { type: "interrupt", action_id: "A" })).toEqual({
    refused: false,
    sentence: "Done: A was interrupted.",
  });
  expect(verdictOf(INTERRUPT, { type: "start", action_id: "A" })).toBeNull();
});

test("a cancelled later submission completes the cancellation", () => {
  const event = { type: "rejection", action_id: "A", code: "Cancelled", message: "A was cancelled" };
  expect(verdictOf(CANCEL, event)).toEqual({ refused: false, sentence: "Done: A was cancelled." });
  const unknown = { type: "diagnostic", action_id: "A", code: "NotCancellable", message: "A is unknown or over" };
  expect(verdictOf(CANCEL, unknown)).toEqual({ refused: true, sentence: "No effect: A is unknown or over." });
  expect(verdictOf(RESUME, { type: "start", action_id: "A" })).toEqual({
    refused: false,
    sentence: "Done: A started.",
  });
});
