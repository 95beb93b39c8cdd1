/** Something a person does: what it needs, why, in whose name; asked once more in a sentence before it is done. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import { canCommand } from "../../api/server";
import { ErrorNote } from "../../components/ErrorNote";
import { actingAs, NameField } from "./acting";

const REASON_MOST = 1000;

interface DeedProps {
  readonly title: string;
  /** For tests, and unlike that of any other deed on the page. */
  readonly testId: string;
  /** What will happen, asked before it does. */
  readonly question: string;
  /** Does it, and says what came of it. */
  readonly act: (reason: string, user: string | null) => Promise<string>;
  readonly onDone: () => void;
  /** What it needs beside a reason. */
  readonly children?: ComponentChildren;
}

export function Deed({ title, testId, question, act, onDone, children }: DeedProps) {
  const reason = useSignal("");
  const asked = useSignal(false);
  const busy = useSignal(false);
  const told = useSignal("");
  const error = useSignal<ApiError | null>(null);
  const ask = (event: Event) => {
    event.preventDefault();
    error.value = null;
    told.value = "";
    asked.value = true;
  };
  const doIt = async () => {
    busy.value = true;
    try {
      told.value = await act(reason.value.trim(), actingAs());
      reason.value = "";
      onDone();
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      busy.value = false;
      asked.value = false;
    }
  };
  return (
    <details class="deed" data-testid={testId}>
      <summary>{title}</summary>
      <form class="job-filters" onSubmit={ask} aria-label={title}>
        {children}
        <label class="gate-reason">
          because
          <input
            value={reason.value}
            required
            maxLength={REASON_MOST}
            onInput={({ currentTarget }) => {
              reason.value = currentTarget.value;
            }}
            data-testid={`${testId}-reason`}
          />
        </label>
        <NameField />
        {!asked.value && (
          <button type="submit" class="button" disabled={!canCommand.value} data-testid={`${testId}-ask`}>
            {title}
          </button>
        )}
        {!canCommand.value && <p class="quiet">Your role may look; this needs the role operator.</p>}
      </form>
      {asked.value && (
        <div class="deed-question" role="group" aria-label={`Confirm: ${title}`}>
          <p>{question}</p>
          <button
            type="button"
            class="button button-main"
            disabled={busy.value}
            onClick={() => void doIt()}
            data-testid={`${testId}-yes`}
          >
            Yes, do it
          </button>
          <button
            type="button"
            class="button"
            disabled={busy.value}
            onClick={() => {
              asked.value = false;
            }}
            data-testid={`${testId}-no`}
          >
            No
          </button>
        </div>
      )}
      <p class="quiet" role="status" data-testid={`${testId}-told`}>
        {told}
      </p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </details>
  );
}
