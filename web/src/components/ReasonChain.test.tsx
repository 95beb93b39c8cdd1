// @vitest-environment happy-dom

import { expect, test } from "vitest";

import type { Reason } from "../api/types";
import { draw, find, texts } from "../testing/drawing";
import { FoldedReason, inOneSentence, ReasonChain } from "./ReasonChain";

const leaf = (code: string): Reason => ({ code, sentence: `${code} holds.`, facts: {}, because: [] });

const CHAIN: Reason = {
  code: "not_enough",
  sentence: "The tally holds less than the amount.",
  facts: { amount: 9, parts: [1, 2] },
  because: [
    { ...leaf("taken_before"), because: [{ ...leaf("command"), because: [leaf("root")] }] },
    leaf("delivery_pending"),
  ],
};

test("a reason shows its code, its sentence and its facts", () => {
  const page = draw(<ReasonChain reason={CHAIN} />);

  const first = find(page, "[data-testid=reason]");
  expect(find(first, ".reason-sentence").textContent).toBe("not_enough The tally holds less than the amount.");
  expect(texts(find(first, "dl"), "dt")).toEqual(["amount", "parts"]);
  expect(texts(find(first, "dl"), "dd")).toEqual(["9", "1, 2"]);
});

test("the reasons behind a reason are nested below it, in order", () => {
  const page = draw(<ReasonChain reason={CHAIN} />);

  const below = find(page, "[data-code=not_enough] > details > ol");
  expect([...below.children].map((item) => item.getAttribute("data-code"))).toEqual([
    "taken_before",
    "delivery_pending",
  ]);
});

test("the first levels of a chain are open, deeper ones are closed", () => {
  const page = draw(<ReasonChain reason={CHAIN} />);

  expect([...page.querySelectorAll("details")].map((details) => details.open)).toEqual([true, true, false]);
});

test("a reason without further reasons cannot be expanded", () => {
  expect(draw(<ReasonChain reason={leaf("root")} />).querySelector("details")).toBeNull();
});

test("a folded reason is one sentence and expands to the whole chain", () => {
  const page = draw(<FoldedReason reason={{ ...CHAIN, because: [leaf("A"), leaf("It")] }} />);

  expect(find(page, "summary").textContent).toBe("The tally holds less than the amount: a holds; it holds.");
  expect(find<HTMLDetailsElement>(page, "details").open).toBe(false);
  expect(inOneSentence(leaf("root"))).toBe("root holds.");
});
