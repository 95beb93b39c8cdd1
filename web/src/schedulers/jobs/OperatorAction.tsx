/** An operator action: its inputs, a reason and the user's name, with a confirmation before it is sent. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import { canCommand } from "../../api/server";
import { ErrorNote } from "../../components/ErrorNote";
import { actingUser, NameField } from "./acting_user";

const MAX_REASON = 1000;

interface OperatorActionProps {
  readonly title: string;
  /** Unique on the page. */
  readonly testId: string;
  /** The confirmation question. */
  readonly question: string;
  /** Send the action; returns a message about the result. */
  readonly act: (reason: string, user: string | null) => Promise<string>;
  readonly onDone: () => void;
  /** Inputs besides the reason. */
  readonly children?: ComponentChildren;
}

export function OperatorAction({ title, testId, question, act, onDone, children }: OperatorActionProps) {
  const reason = useSignal("");
  const isConfirming = useSignal(false);
  const busy = useSignal(false);
  const message = useSignal("");
  const error = useSignal<ApiError | null>(null);
  const confirm = (event: Event) => {
    event.preventDefault();
    error.value = null;
    message.value = "";
    isConfirming.value = true;
  };
  const send = async () => {
    busy.value = true;
    try {
      message.value = await act(reason.value.trim(), actingUser());
      reason.value = "";
      onDone();
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      busy.value = false;
      isConfirming.value = false;
    }
  };
  return (
    <details class="operator-action" data-testid={testId}>
      <summary>{title}</summary>
      <form class="job-filters" onSubmit={confirm} aria-label={title}>
        {children}
        <label class="gate-reason">
          reason
          <input
            value={reason.value}
            required
            maxLength={MAX_REASON}
            onInput={({ currentTarget }) => {
              reason.value = currentTarget.value;
            }}
            data-testid={`${testId}-reason`}
          />
        </label>
        <NameField />
        {!isConfirming.value && (
          <button type="submit" class="button" disabled={!canCommand.value} data-testid={`${testId}-ask`}>
            {title}
          </button>
        )}
        {!canCommand.value && <p class="quiet">Read-only: needs the operator role.</p>}
      </form>
      {isConfirming.value && (
        <div class="action-question" role="group" aria-label={`Confirm: ${title}`}>
          <p>{question}</p>
          <button
            type="button"
            class="button button-main"
            disabled={busy.value}
            onClick={() => void send()}
            data-testid={`${testId}-confirm`}
          >
            Confirm
          </button>
          <button
            type="button"
            class="button"
            disabled={busy.value}
            onClick={() => {
              isConfirming.value = false;
            }}
            data-testid={`${testId}-dismiss`}
          >
            Dismiss
          </button>
        </div>
      )}
      <p class="quiet" role="status" data-testid={`${testId}-status`}>
        {message}
      </p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </details>
  );
}
