/** A question to choose: why this waits, why that is on; as JSON for whoever wants to write it. */

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
  /** What can be asked; null while it is not known yet. */
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
  const asked = chosen.value;
  // What is offered changes with the engine; what was chosen stays until another is.
  const known = asked === null || questions.some(({ title }) => title === asked.title);
  const shown = known ? questions : [asked, ...questions];
  const ask = async (event: SubmitEvent) => {
    event.preventDefault();
    if (asked === null) return;
    try {
      answer.value = await onAsk(asked.question as Json);
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
        value={asked?.title ?? JSON_CHOICE}
        onChange={(event) => {
          chosen.value = shown.find(({ title }) => title === event.currentTarget.value) ?? null;
        }}
      >
        {shown.map((one) => (
          <option key={one.title} value={one.title}>
            {one.title}
          </option>
        ))}
        <option value={JSON_CHOICE}>Another question, as JSON</option>
      </select>
      {asked === null ? (
        <JsonForm
          label="Question as JSON"
          hint="A question as JSON; the engine answers with its chain of reasons."
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
