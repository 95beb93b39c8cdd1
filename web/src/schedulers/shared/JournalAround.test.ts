import { expect, test } from "vitest";

import { gistOf } from "./JournalAround";

test("an input says its command and who sent it", () => {
  expect(gistOf({ answers: [], command: { amount: 3, type: "add" }, meta: { by: "local" } })).toBe(
    "add amount 3 (by local)",
  );
});

test("an outcome says what came of which input", () => {
  const events = [{ total: 3, type: "changed" }, { type: "rested" }];

  expect(gistOf({ count: 2, digest: "ab", events, of: 8 })).toBe("of 8: changed total 3; rested");
  expect(gistOf({ count: 0, digest: "ab", events: [], of: 8 })).toBe("of 8: 0\u00a0events");
  expect(gistOf({ count: 7, digest: "ab", of: 8 })).toBe("of 8: 7\u00a0events");
});

test("any other body is shown whole", () => {
  expect(gistOf({ text: "upgraded" })).toBe("text upgraded");
  expect(gistOf("note")).toBe("note");
});
