/** A form for one JSON value: checks the syntax before sending and shows the response. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

import type { ApiError } from "../api/client";
import { asApiError } from "../api/client";
import type { Json } from "../api/json";
import { parseJson } from "../api/json";
import { ErrorNote } from "./ErrorNote";

interface JsonFormProps {
  readonly label: string;
  readonly hint: string;
  readonly example: string;
  readonly button: string;
  readonly disabled?: boolean;
  readonly onSend: (value: Json) => Promise<ComponentChildren>;
  readonly testId: string;
}

export function JsonForm({ label, hint, example, button, disabled = false, onSend, testId }: JsonFormProps) {
  const id = useId();
  const text = useSignal("");
  const fault = useSignal<string | null>(null);
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const answer = useSignal<ComponentChildren>(null);

  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    const value = readOrFault(text.value);
    fault.value = value.fault;
    if (value.fault !== null) return;
    busy.value = true;
    try {
      answer.value = await onSend(value.json);
      error.value = null;
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      busy.value = false;
    }
  };

  return (
    <form class="json-form" data-testid={testId} onSubmit={send}>
      <label class="visually-hidden" for={`${id}text`}>
        {label}
      </label>
      <p class="quiet" id={`${id}hint`}>
        {hint}
      </p>
      <textarea
        id={`${id}text`}
        rows={2}
        required
        spellcheck={false}
        autocomplete="off"
        placeholder={example}
        value={text.value}
        disabled={disabled}
        aria-describedby={`${id}hint`}
        aria-invalid={fault.value !== null}
        aria-errormessage={`${id}fault`}
        onInput={(event) => (text.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
        }}
      />
      <button type="submit" class="button button-main" disabled={disabled || busy.value}>
        {button}
      </button>
      <p class="fault" id={`${id}fault`} role="alert">
        {fault.value}
      </p>
      {error.value !== null ? <ErrorNote error={error.value} /> : <div aria-live="polite">{answer.value}</div>}
    </form>
  );
}

type Read = { readonly json: Json; readonly fault: null } | { readonly fault: string };

function readOrFault(text: string): Read {
  try {
    return { json: parseJson(text), fault: null };
  } catch (thrown) {
    return { fault: `Invalid JSON: ${thrown instanceof Error ? thrown.message : String(thrown)}` };
  }
}
