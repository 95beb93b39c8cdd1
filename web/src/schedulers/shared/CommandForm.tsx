/** A command form: choose a command and edit its prefilled fields, or write the command as JSON. */

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
import type { FieldTexts } from "./command_fields";
import { commandOf, fieldLabel, initialFields } from "./command_fields";

const JSON_CHOICE = "json";

interface CommandFormProps {
  /** The commands on offer; `null` while loading. */
  readonly forms: readonly FormView[] | null;
  readonly hint: string;
  readonly disabled: boolean;
  /** Fetch the commands on offer now. */
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
  const edited = useSignal<FieldTexts>({});
  const fault = useSignal<string | null>(null);
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const answer = useSignal<ComponentChildren>(null);
  // The newest version of the form; one that is not offered any more stays until another is chosen.
  const form = forms.find(({ title }) => title === chosen.value?.title) ?? chosen.value;
  const shown = form === null || forms.includes(form) ? forms : [form, ...forms];
  const filled = form === null ? {} : { ...initialFields(form), ...edited.value };

  const choose = (title: string) => {
    chosen.value = shown.find((candidate) => candidate.title === title) ?? null;
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
      // The result of the previous command would look like that of this one.
      answer.value = null;
      error.value = null;
      return;
    }
    busy.value = true;
    try {
      // Unchanged fields take the newest example, since the engine may have moved on.
      const now = (await onOpen()).find(({ title }) => title === form.title) ?? form;
      const newest = commandOf(now, { ...initialFields(now), ...edited.value });
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
        {shown.map(({ title }) => (
          <option key={title} value={title}>
            {title}
          </option>
        ))}
        <option value={JSON_CHOICE}>Another command, as JSON</option>
      </select>
      {form === null ? (
        <JsonForm
          label="Command as JSON"
          hint="A command as JSON with its type; recorded before it runs."
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
        {fieldLabel(name)} {!required && <span class="quiet">(optional)</span>}
      </label>
      {kind === "yes_no" ? (
        <select id={id} value={text} disabled={disabled} onChange={(event) => onInput(event.currentTarget.value)}>
          <option value="">default</option>
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
          {choices.map((value) => (
            <option key={value} value={value} />
          ))}
        </datalist>
      )}
    </p>
  );
}

/** A valid command as a placeholder: the first form with fields, prefilled. */
function exampleOf(forms: readonly FormView[]): string {
  const form = forms.find(({ fields }) => fields.length > 0);
  if (form === undefined) return "";
  const read = commandOf(form, initialFields(form));
  return read.fault === null ? writeJson(read.command) : "";
}
