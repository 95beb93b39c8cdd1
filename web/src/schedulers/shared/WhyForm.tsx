/** A why-question to choose, or to write as JSON. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import type { Json } from "../../api/json";
import { writeJson } from "../../api/json";
import type { QuestionView } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { JsonForm } from "../../components/JsonForm";

const JSON_CHOICE = "json";

interface WhyFormProps {
  /** Available questions; `null` while loading. */
  readonly questions: readonly QuestionView[] | null;
  readonly hint: string;
  readonly onOpen: () => void;
  readonly onAsk: (question: Json) => Promise<ComponentChildren>;
}

export function WhyForm({ questions, ...props }: WhyFormProps) {
  return questions === null ? <p class="quiet">{props.hint}</p> : <Choice questions={questions} {...props} />;
}

interface ChoiceProps extends WhyFormProps {
  readonly questions: readonly QuestionView[];
}

function Choice({ questions, hint, onOpen, onAsk }: ChoiceProps) {
  const id = useId();
  const chosen = useSignal<QuestionView | null>(questions[0] ?? null);
  const error = useSignal<ApiError | null>(null);
  const answer = useSignal<ComponentChildren>(null);
  const current = chosen.value;
  // Available questions change with the engine; the chosen one stays until another is chosen.
  const known = current === null || questions.some(({ title }) => title === current.title);
  const shown = known ? questions : [current, ...questions];
  const ask = async (event: SubmitEvent) => {
    event.preventDefault();
    if (current === null) return;
    try {
      answer.value = await onAsk(current.question as Json);
      error.value = null;
    } catch (thrown) {
      error.value = asApiError(thrown);
    }
  };
  return (
    <div class="choice-form" data-testid="why-choice" onFocusIn={onOpen}>
      <p class="quiet">{hint}</p>
      <label for={`${id}question`}>Question</label>
      <select
        id={`${id}question`}
        value={current?.title ?? JSON_CHOICE}
        onChange={(event) => {
          chosen.value = shown.find(({ title }) => title === event.currentTarget.value) ?? null;
        }}
      >
        {shown.map(({ title }) => (
          <option key={title} value={title}>
            {title}
          </option>
        ))}
        <option value={JSON_CHOICE}>Another question, as JSON</option>
      </select>
      {current === null ? (
        <JsonForm
          label="Question as JSON"
          hint="A question as JSON. Shows every reason in order."
          example={questions[0] === undefined ? "" : writeJson(questions[0].question as Json)}
          button="Ask why"
          onSend={onAsk}
          testId="why-form"
        />
      ) : (
        <form onSubmit={ask}>
          <button type="submit" class="button button-main" data-testid="ask-why">
            Ask why
          </button>
          {error.value !== null ? <ErrorNote error={error.value} /> : <div aria-live="polite">{answer.value}</div>}
        </form>
      )}
    </div>
  );
}
