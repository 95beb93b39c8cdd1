// @vitest-environment happy-dom

import { signal } from "@preact/signals";
import { expect, test, vi } from "vitest";

import type { JsonObject } from "../../api/json";
import type { CommandResult, FormView } from "../../api/types";
import { doing, draw, find, texts } from "../../testing/drawing";
import { Sent } from "./Ask";
import { commandOf, offered } from "./asking";
import { CommandForm } from "./CommandForm";
import type { CameRow } from "./engine";
import { WhyForm } from "./WhyForm";

const TAKE: FormView = {
  title: "Take some",
  type: "take",
  inside: null,
  fields: [
    { name: "amount", kind: "integer", required: true, example: 3, choices: [] },
    { name: "from_whom", kind: "text", required: false, example: null, choices: ["ann", "bo"] },
    { name: "at_once", kind: "yes_no", required: false, example: null, choices: [] },
    { name: "notes", kind: "json", required: false, example: null, choices: [] },
  ],
};
const SUBMIT: FormView = {
  title: "Submit one",
  type: "submit",
  inside: "actions",
  fields: [{ name: "id", kind: "text", required: true, example: "by-hand-1", choices: [] }],
};

test("a form in which nobody changed anything is the command of its examples", () => {
  expect(commandOf(TAKE, offered(TAKE))).toEqual({ command: { type: "take", amount: 3 }, fault: null });
  expect(commandOf(SUBMIT, offered(SUBMIT))).toEqual({
    command: { type: "submit", actions: [{ id: "by-hand-1" }] },
    fault: null,
  });
});

test("fields become values of their kinds, numbers of any size exactly", () => {
  const filled = { amount: "18446744073709551615", from_whom: "7", at_once: "false", notes: '{"wrong": true}' };

  expect(commandOf(TAKE, filled)).toEqual({
    command: { type: "take", amount: 18446744073709551615n, from_whom: "7", at_once: false, notes: { wrong: true } },
    fault: null,
  });
});

test.each([
  [{ amount: "" }, "amount is missing."],
  [{ amount: "1.5" }, "amount must be a whole number, not 1.5."],
  [{ amount: "three" }, "amount must be a whole number, not three."],
  [{ amount: "1", notes: "{" }, "notes is not JSON."],
])("what is wrong with a field is said before anything is sent", (filled, fault) => {
  expect(commandOf(TAKE, filled)).toEqual({ fault });
});

function form(onSend = vi.fn(async () => "done")) {
  const forms = [TAKE, SUBMIT];
  const open = async () => forms;
  const page = draw(<CommandForm forms={forms} hint="" disabled={false} onOpen={open} onSend={onSend} />);
  return { page, onSend };
}

test("a command is chosen, filled with its example, changed and sent", async () => {
  const { page, onSend } = form();
  const input = find<HTMLInputElement>(page, "[data-testid=field-amount]");

  expect(input.value).toBe("3");
  expect(texts(page, "option")).toContain("Another command, as JSON");
  doing(() => {
    input.value = "5";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  doing(() => find(page, "[data-testid=send-command]").click());

  await vi.waitFor(() => expect(onSend).toHaveBeenCalledWith({ type: "take", amount: 5 }));
});

test("another command has its own fields, and as JSON the example is one that would be taken", () => {
  const { page } = form();
  const choose = (title: string) =>
    doing(() => {
      const select = find<HTMLSelectElement>(page, "select");
      select.value = title;
      select.dispatchEvent(new Event("change", { bubbles: true }));
    });

  choose("Submit one");
  expect(find<HTMLInputElement>(page, "[data-testid=field-id]").value).toBe("by-hand-1");
  expect(page.querySelector("[data-testid=field-amount]")).toBeNull();
  choose("json");
  expect(find<HTMLTextAreaElement>(page, "textarea").placeholder).toBe('{"type":"take","amount":3}');
});

test("what is wrong is told beside the form, and nothing is sent", () => {
  const { page, onSend } = form();
  const input = find<HTMLInputElement>(page, "[data-testid=field-amount]");
  doing(() => {
    input.value = "many";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  doing(() => find(page, "[data-testid=send-command]").click());

  expect(find(page, ".fault").textContent).toBe("amount must be a whole number, not many.");
  expect(onSend).not.toHaveBeenCalled();
});

test("what is wrong now takes the place of the answer to what was sent before", async () => {
  const { page } = form();
  doing(() => find(page, "[data-testid=send-command]").click());
  await vi.waitFor(() => expect(page.textContent).toContain("done"));
  const input = find<HTMLInputElement>(page, "[data-testid=field-amount]");
  doing(() => {
    input.value = "many";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  doing(() => find(page, "[data-testid=send-command]").click());

  expect(page.textContent).not.toContain("done");
});

test("a question is chosen and asked", () => {
  const ask = vi.fn(async () => "because");
  const questions = [
    { title: "Why A waits", question: { action: "A" } },
    { title: "Why B runs", question: { action: "B" } },
  ];
  const page = draw(<WhyForm questions={questions} hint="" onOpen={vi.fn()} onAsk={ask} />);
  doing(() => {
    const select = find<HTMLSelectElement>(page, "select");
    select.value = "Why B runs";
    select.dispatchEvent(new Event("change", { bubbles: true }));
  });
  doing(() => find(page, "[data-testid=ask-why]").click());

  expect(ask).toHaveBeenCalledWith({ action: "B" });
});

test("what was chosen stays when the engine offers something else", () => {
  const ask = vi.fn(async () => "because");
  const asking = (...ids: string[]) =>
    draw(
      <WhyForm
        questions={ids.map((id) => ({ title: `Why ${id} waits`, question: { action: id } }))}
        hint=""
        onOpen={vi.fn()}
        onAsk={ask}
      />,
    );
  const page = asking("A", "B");
  asking("C", "D");

  expect(find<HTMLSelectElement>(page, "select").value).toBe("Why A waits");
  doing(() => find(page, "[data-testid=ask-why]").click());
  expect(ask).toHaveBeenCalledWith({ action: "A" });
});

function taking(amount: number): FormView {
  return { ...TAKE, fields: TAKE.fields.map((one) => (one.name === "amount" ? { ...one, example: amount } : one)) };
}

test("what is sent is the example of now, when the engine has overtaken the one shown", async () => {
  const onSend = vi.fn(async () => "done");
  const page = draw(
    <CommandForm forms={[taking(3)]} hint="" disabled={false} onOpen={async () => [taking(8)]} onSend={onSend} />,
  );
  const whom = find<HTMLInputElement>(page, "[data-testid=field-from_whom]");
  doing(() => {
    whom.value = "cy";
    whom.dispatchEvent(new Event("input", { bubbles: true }));
  });
  doing(() => find(page, "[data-testid=send-command]").click());

  await vi.waitFor(() => expect(onSend).toHaveBeenCalledWith({ type: "take", amount: 8, from_whom: "cy" }));
});

test("what is offered no more is sent as it was, and the engine answers", async () => {
  const onSend = vi.fn(async () => "done");
  const page = draw(
    <CommandForm forms={[taking(3)]} hint="" disabled={false} onOpen={async () => [SUBMIT]} onSend={onSend} />,
  );
  doing(() => find(page, "[data-testid=send-command]").click());

  await vi.waitFor(() => expect(onSend).toHaveBeenCalledWith({ type: "take", amount: 3 }));
});

test("fields that nobody has changed follow the engine, and those that somebody has stay", () => {
  const offer = (amount: number) =>
    draw(
      <CommandForm
        forms={[taking(amount)]}
        hint=""
        disabled={false}
        onOpen={async () => [taking(amount)]}
        onSend={vi.fn()}
      />,
    );
  const page = offer(3);
  const whom = find<HTMLInputElement>(page, "[data-testid=field-from_whom]");
  doing(() => {
    whom.value = "cy";
    whom.dispatchEvent(new Event("input", { bubbles: true }));
  });
  offer(8);

  expect(find<HTMLInputElement>(page, "[data-testid=field-amount]").value).toBe("8");
  expect(whom.value).toBe("cy");
});

test("without questions one can still be written", () => {
  const page = draw(<WhyForm questions={[]} hint="" onOpen={vi.fn()} onAsk={vi.fn()} />);

  expect(page.querySelector("[data-testid=why-form]")).not.toBeNull();
});

const RESULT: CommandResult = { n: 7, events: [], answer: null, effect: "done", complaints: [], refusal: null };

function sent(result: Partial<CommandResult>, came = signal<readonly CameRow[]>([])) {
  const verdict = (_: unknown, { said }: JsonObject) =>
    typeof said === "string" ? { refused: said.startsWith("No"), sentence: said } : null;
  return draw(<Sent result={{ ...RESULT, ...result }} command={{ type: "x" }} came={came} verdict={verdict} />);
}

test.each([
  [{ answer: { total: 5 } }, "command-done", "note-done", "Done as record 7 with 0 events."],
  [{ effect: "none" as const }, "command-done", "note-refused", "No effect: nothing changed (record 7)."],
  [
    { effect: "accepted" as const },
    "command-done",
    "note-done",
    "Accepted as record 7; it takes effect when time advances.",
  ],
  [
    { effect: "refused" as const, complaints: [{ code: "InvalidAction", message: "the minute is missing" }] },
    "refusal",
    "note-refused",
    "Refused (record 7).InvalidAction the minute is missing",
  ],
  [
    { effect: "accepted" as const, complaints: [{ code: "InvalidAction", message: "the verb is 7" }] },
    "command-done",
    "note-refused",
    "Accepted as record 7; it takes effect when time advances.Refused: InvalidAction the verb is 7",
  ],
])("what became of a command is said, and only what was done is green", (result, testId, tone, words) => {
  const note = find(sent(result), `[data-testid=${testId}]`);

  expect(note.className).toBe(`note ${tone}`);
  expect(note.textContent.replaceAll("\u00a0", " ")).toContain(words);
});

test("a command that was accepted shows what a later event says of it, the first one only", () => {
  const came = signal<readonly CameRow[]>([]);
  const page = sent({ effect: "accepted" }, came);
  const row = (n: number, said: Record<string, string>): CameRow => ({
    kind: "event",
    key: n,
    id: `${n}.0`,
    body: said,
  });

  doing(() => (came.value = [row(9, { other: "event" }), row(6, { said: "No effect before it" })]));
  expect(find(page, ".note").textContent).toContain("Accepted as record 7");
  doing(() => (came.value = [row(12, { said: "Done later" }), row(10, { said: "No effect: it does not run." })]));

  expect(find(page, "[data-testid=refusal]").textContent).toBe("No effect: it does not run.");
  expect(find(page, ".note").className).toBe("note note-refused");
});
