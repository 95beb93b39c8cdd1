import { expect, test } from "vitest";

import { summaryOf } from "./JournalAround";

test("an input is summarised by its command and its sender", () => {
  expect(summaryOf({ answers: [], command: { amount: 3, type: "add" }, meta: { by: "local" } })).toBe(
    "add amount 3 (by local)",
  );
});

test("a command with its time is shown as the command", () => {
  const command = { at: 1500, command: { type: "next" }, type: "at" };

  expect(summaryOf({ answers: [], command, meta: { by: "local" } })).toBe("next (by local)");
});

test("an outcome is summarised by its input and its events", () => {
  const events = [{ total: 3, type: "changed" }, { type: "rested" }];

  expect(summaryOf({ count: 2, digest: "ab", events, of: 8 })).toBe("of 8: changed total 3; rested");
  expect(summaryOf({ count: 0, digest: "ab", events: [], of: 8 })).toBe("of 8: 0\u00a0events");
  expect(summaryOf({ count: 7, digest: "ab", of: 8 })).toBe("of 8: 7\u00a0events");
});

test("other bodies are shown whole", () => {
  expect(summaryOf({ text: "upgraded" })).toBe("text upgraded");
  expect(summaryOf("note")).toBe("note");
});
