/** A command to choose, its fields filled with an example that works; as JSON for whoever wants to write it all. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { writeJson } from "../../api/json";
import type { FieldView, FormView } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { JsonForm } from "../../components/JsonForm";
import type { Filled } from "./asking";
import { commandOf, offered, wordsOf } from "./asking";

const JSON_CHOICE = "json";

interface CommandFormProps {
  /** What can be sent; null while it is not known yet. */
  readonly forms: readonly FormView[] | null;
  readonly hint: string;
  readonly disabled: boolean;
  /** What can be sent by now. */
  readonly onOpen: () => Promise<readonly FormView[]>;
  readonly onSend: (command: JsonObject) => Promise<ComponentChildren>;
}

export function CommandForm({ forms, ...props }: CommandFormProps) {
  return forms === null ? <p class="quiet">{props.hint}</p> : <Choice forms={forms} {...props} />;
}

interface ChoiceProps extends CommandFormProps {
  readonly forms: readonly FormView[];
}

function Choice({ forms, hint, disabled, onOpen, onSend }: ChoiceProps) {
  const id = useId();
  const chosen = useSignal<FormView | null>(forms[0] ?? null);
  const edited = useSignal<Filled>({});
  const fault = useSignal<string | null>(null);
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const answer = useSignal<ComponentChildren>(null);
  // As it is offered now; what is offered no more stays until another is chosen.
  const form = forms.find(({ title }) => title === chosen.value?.title) ?? chosen.value;
  const shown = form === null || forms.includes(form) ? forms : [form, ...forms];
  const filled = form === null ? {} : { ...offered(form), ...edited.value };

  const choose = (title: string) => {
    chosen.value = shown.find((one) => one.title === title) ?? null;
    edited.value = {};
    fault.value = null;
    answer.value = null;
  };
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    if (form === null) return;
    const read = commandOf(form, filled);
    fault.value = read.fault;
    if (read.fault !== null) {
      // What was said of the command before would look like the answer to this one.
      answer.value = null;
      error.value = null;
      return;
    }
    busy.value = true;
    try {
      // An example that nobody has changed is the newest one: the engine may have gone past the one that was shown.
      const now = (await onOpen()).find(({ title }) => title === form.title) ?? form;
      const newest = commandOf(now, { ...offered(now), ...edited.value });
      answer.value = await onSend(newest.fault === null ? newest.command : read.command);
      error.value = null;
      edited.value = {};
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      busy.value = false;
    }
  };

  return (
    <div class="choice-form" data-testid="command-choice" onFocusIn={() => void onOpen()}>
      <p class="quiet">{hint}</p>
      <label for={`${id}kind`}>Command</label>
      <select
        id={`${id}kind`}
        value={form?.title ?? JSON_CHOICE}
        disabled={disabled}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {shown.map((one) => (
          <option key={one.title} value={one.title}>
            {one.title}
          </option>
        ))}
        <option value={JSON_CHOICE}>Another command, as JSON</option>
      </select>
      {form === null ? (
        <JsonForm
          label="Command as JSON"
          hint="A command as JSON with its type; it is recorded before it takes effect."
          example={exampleOf(forms)}
          button="Send"
          disabled={disabled}
          onSend={(command) => onSend(command as JsonObject)}
          testId="command-form"
        />
      ) : (
        <form onSubmit={send} noValidate>
          {form.fields.map((field) => (
            <FieldInput
              key={`${form.title}.${field.name}`}
              field={field}
              text={filled[field.name] ?? ""}
              disabled={disabled}
              onInput={(text) => (edited.value = { ...edited.value, [field.name]: text })}
            />
          ))}
          <button type="submit" class="button button-main" disabled={disabled || busy.value} data-testid="send-command">
            {form.title}
          </button>
          <p class="fault" role="alert">
            {fault.value}
          </p>
          {error.value !== null ? <ErrorNote error={error.value} /> : <div aria-live="polite">{answer.value}</div>}
        </form>
      )}
    </div>
  );
}

interface FieldInputProps {
  readonly field: FieldView;
  readonly text: string;
  readonly disabled: boolean;
  readonly onInput: (text: string) => void;
}

function FieldInput({ field: { name, kind, required, choices }, text, disabled, onInput }: FieldInputProps) {
  const id = useId();
  return (
    <p class="choice-field">
      <label for={id}>
        {wordsOf(name)} {!required && <span class="quiet">(optional)</span>}
      </label>
      {kind === "yes_no" ? (
        <select id={id} value={text} disabled={disabled} onChange={(event) => onInput(event.currentTarget.value)}>
          <option value="">as it is</option>
          <option value="true">yes</option>
          <option value="false">no</option>
        </select>
      ) : (
        <input
          id={id}
          value={text}
          list={choices.length > 0 ? `${id}list` : undefined}
          inputMode={kind === "integer" ? "numeric" : "text"}
          placeholder={kind === "json" ? "JSON" : ""}
          disabled={disabled}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => onInput(event.currentTarget.value)}
          data-testid={`field-${name}`}
        />
      )}
      {choices.length > 0 && (
        <datalist id={`${id}list`}>
          {choices.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </p>
  );
}

/** The first form that has fields, as it is offered: a placeholder that the engine would take. */
function exampleOf(forms: readonly FormView[]): string {
  const form = forms.find(({ fields }) => fields.length > 0);
  if (form === undefined) return "";
  const read = commandOf(form, offered(form));
  return read.fault === null ? writeJson(read.command) : "";
}
