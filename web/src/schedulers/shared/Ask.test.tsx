// @vitest-environment happy-dom

import { signal } from "@preact/signals";
import { expect, test, vi } from "vitest";

import type { JsonObject } from "../../api/json";
import type { CommandResult, FormView } from "../../api/types";
import { draw, find, interact, texts } from "../../testing/drawing";
import { Result } from "./Ask";
import { CommandForm } from "./CommandForm";
import { commandOf, fieldLabel, initialFields } from "./command_fields";
import type { EventRow } from "./engine";
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

test("an unchanged form is the command of its examples", () => {
  expect(commandOf(TAKE, initialFields(TAKE))).toEqual({ command: { type: "take", amount: 3 }, fault: null });
  expect(commandOf(SUBMIT, initialFields(SUBMIT))).toEqual({
    command: { type: "submit", actions: [{ id: "by-hand-1" }] },
    fault: null,
  });
});

test("fields are converted to values of their kinds, with exact integers", () => {
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
])("an invalid field is reported before sending", (filled, fault) => {
  expect(commandOf(TAKE, filled)).toEqual({ fault });
});

function form(onSend = vi.fn(async () => "done")) {
  const forms = [TAKE, SUBMIT];
  const open = async () => forms;
  const page = draw(<CommandForm forms={forms} hint="" disabled={false} onOpen={open} onSend={onSend} />);
  return { page, onSend };
}

test("a command is prefilled with its example, edited and sent", async () => {
  const { page, onSend } = form();
  const input = find<HTMLInputElement>(page, "[data-testid=field-amount]");

  expect(input.value).toBe("3");
  expect(texts(page, "option")).toContain("Another command, as JSON");
  interact(() => {
    input.value = "5";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  interact(() => find(page, "[data-testid=send-command]").click());

  await vi.waitFor(() => expect(onSend).toHaveBeenCalledWith({ type: "take", amount: 5 }));
});

test("another command has its own fields, and the JSON form has a valid example", () => {
  const { page } = form();
  const choose = (title: string) =>
    interact(() => {
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

test("a fault is shown beside the form, and nothing is sent", () => {
  const { page, onSend } = form();
  const input = find<HTMLInputElement>(page, "[data-testid=field-amount]");
  interact(() => {
    input.value = "many";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  interact(() => find(page, "[data-testid=send-command]").click());

  expect(find(page, ".fault").textContent).toBe("amount must be a whole number, not many.");
  expect(onSend).not.toHaveBeenCalled();
});

test("a fault replaces the result of the previous command", async () => {
  const { page } = form();
  interact(() => find(page, "[data-testid=send-command]").click());
  await vi.waitFor(() => expect(page.textContent).toContain("done"));
  const input = find<HTMLInputElement>(page, "[data-testid=field-amount]");
  interact(() => {
    input.value = "many";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  interact(() => find(page, "[data-testid=send-command]").click());

  expect(page.textContent).not.toContain("done");
});

test("a field label has a unit where the name does not say it", () => {
  expect(["hold_min", "from_whom"].map(fieldLabel)).toEqual(["hold for (minutes)", "from whom"]);
});

test("a selected question is asked", () => {
  const ask = vi.fn(async () => "because");
  const questions = [
    { title: "Why A waits", question: { action: "A" } },
    { title: "Why B runs", question: { action: "B" } },
  ];
  const page = draw(<WhyForm questions={questions} hint="" onOpen={vi.fn()} onAsk={ask} />);
  interact(() => {
    const select = find<HTMLSelectElement>(page, "select");
    select.value = "Why B runs";
    select.dispatchEvent(new Event("change", { bubbles: true }));
  });
  interact(() => find(page, "[data-testid=ask-why]").click());

  expect(ask).toHaveBeenCalledWith({ action: "B" });
});

test("the selected question stays when the engine offers others", () => {
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
  interact(() => find(page, "[data-testid=ask-why]").click());
  expect(ask).toHaveBeenCalledWith({ action: "A" });
});

function taking(amount: number): FormView {
  return {
    ...TAKE,
    fields: TAKE.fields.map((field) => (field.name === "amount" ? { ...field, example: amount } : field)),
  };
}

test("unchanged fields are sent with the newest example of the engine", async () => {
  const onSend = vi.fn(async () => "done");
  const page = draw(
    <CommandForm forms={[taking(3)]} hint="" disabled={false} onOpen={async () => [taking(8)]} onSend={onSend} />,
  );
  const whom = find<HTMLInputElement>(page, "[data-testid=field-from_whom]");
  interact(() => {
    whom.value = "cy";
    whom.dispatchEvent(new Event("input", { bubbles: true }));
  });
  interact(() => find(page, "[data-testid=send-command]").click());

  await vi.waitFor(() => expect(onSend).toHaveBeenCalledWith({ type: "take", amount: 8, from_whom: "cy" }));
});

test("a command that is not offered any more is sent unchanged", async () => {
  const onSend = vi.fn(async () => "done");
  const page = draw(
    <CommandForm forms={[taking(3)]} hint="" disabled={false} onOpen={async () => [SUBMIT]} onSend={onSend} />,
  );
  interact(() => find(page, "[data-testid=send-command]").click());

  await vi.waitFor(() => expect(onSend).toHaveBeenCalledWith({ type: "take", amount: 3 }));
});

test("unchanged fields follow the engine, edited fields stay", () => {
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
  interact(() => {
    whom.value = "cy";
    whom.dispatchEvent(new Event("input", { bubbles: true }));
  });
  offer(8);

  expect(find<HTMLInputElement>(page, "[data-testid=field-amount]").value).toBe("8");
  expect(whom.value).toBe("cy");
});

test("without questions there is still the JSON form", () => {
  const page = draw(<WhyForm questions={[]} hint="" onOpen={vi.fn()} onAsk={vi.fn()} />);

  expect(page.querySelector("[data-testid=why-form]")).not.toBeNull();
});

const RESULT: CommandResult = { n: 7, events: [], answer: null, effect: "done", complaints: [], refusal: null };

function drawResult(result: Partial<CommandResult>, events = signal<readonly EventRow[]>([])) {
  const verdict = (_: unknown, { text }: JsonObject) =>
    typeof text === "string" ? { refused: text.startsWith("No"), sentence: text } : null;
  return draw(<Result result={{ ...RESULT, ...result }} command={{ type: "x" }} events={events} verdict={verdict} />);
}

test.each([
  [{ answer: { total: 5 } }, "command-done", "note-done", "Done (record 7, 0 events)."],
  [{ effect: "none" as const }, "command-done", "note-refused", "No effect (record 7)."],
  [
    { effect: "accepted" as const },
    "command-done",
    "note-done",
    "Submitted (record 7); takes effect when time advances.",
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
    "Submitted (record 7); takes effect when time advances.Refused: InvalidAction the verb is 7",
  ],
])("the result of a command is shown, and only success is green", (result, testId, tone, text) => {
  const note = find(drawResult(result), `[data-testid=${testId}]`);

  expect(note.className).toBe(`note ${tone}`);
  expect(note.textContent.replaceAll("\u00a0", " ")).toContain(text);
});

test("a submitted command shows the verdict of the first later event", () => {
  const events = signal<readonly EventRow[]>([]);
  const page = drawResult({ effect: "accepted" }, events);
  const row = (n: number, body: Record<string, string>): EventRow => ({
    kind: "event",
    key: n,
    id: `${n}.0`,
    body,
  });

  interact(() => (events.value = [row(9, { other: "event" }), row(6, { text: "No effect before it" })]));
  expect(find(page, ".note").textContent).toContain("Submitted (record 7)");
  interact(
    () => (events.value = [row(12, { text: "Done later" }), row(10, { text: "No effect: it is not running." })]),
  );

  expect(find(page, "[data-testid=refusal]").textContent).toBe("No effect: it is not running.");
  expect(find(page, ".note").className).toBe("note note-refused");
});
