/** Operator actions on a truck, a task or the whole fleet; each needs a reason, and irreversible ones a confirmation. */

import { useSignal } from "@preact/signals";

import type { ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { api, canCommand } from "../../api/server";
import type { OperatorAnswer } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";

export interface Action {
  readonly type: string;
  readonly title: string;
  readonly question: string;
  /** Further members of the request. */
  readonly more?: JsonObject;
  /** Whether it needs a confirmation and the statement that the truck is secured. */
  readonly irreversible?: boolean;
  /** Resources to select from; at least one must be selected. */
  readonly resources?: readonly string[];
}

interface ActionsProps {
  readonly actions: readonly Action[];
  /** `robotId` or `taskId`; empty for the whole fleet. */
  readonly target: JsonObject;
  /** `truck`, `task` or `fleet`, for labels and test ids. */
  readonly targetName: string;
  readonly address: EngineAddress;
  readonly onDone: () => void;
}

export function Actions({ actions, target, targetName, address, onDone }: ActionsProps) {
  const current = useSignal<Action | null>(null);
  const reason = useSignal("");
  const unconfirmedId = useSignal<string | null>(null);
  const chosen = useSignal<readonly string[]>([]);
  const status = useSignal("");
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const select = (action: Action) => {
    current.value = action;
    unconfirmedId.value = null;
    chosen.value = [];
    status.value = "";
    error.value = null;
  };
  const send = async (action: Action) => {
    busy.value = true;
    error.value = null;
    try {
      const confirmation: JsonObject = unconfirmedId.value === null ? {} : { confirmationOf: unconfirmedId.value };
      const secured: JsonObject = action.irreversible ? { physicallySecured: true } : {};
      const resources: JsonObject = action.resources === undefined ? {} : { resources: [...chosen.value] };
      const body: JsonObject = {
        type: action.type,
        reason: reason.value.trim(),
        ...target,
        ...action.more,
        ...resources,
        ...confirmation,
        ...secured,
      };
      const answer = await api.post("/api/v1/fleet/{fleet}/actions", { fleet: address.engine }, body);
      status.value = resultOf(answer);
      if (answer.code === "CONFIRMATION_NEEDED") unconfirmedId.value = answer.actionId;
      else current.value = null;
      onDone();
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      busy.value = false;
    }
  };
  const action = current.value;
  const isIncomplete = action?.resources !== undefined && chosen.value.length === 0;
  return (
    <div class="truck-actions" role="group" aria-label={`Actions on the ${targetName}`}>
      {actions.map((offered) => (
        <button
          key={offered.type}
          type="button"
          class="button"
          disabled={!canCommand.value}
          onClick={() => select(offered)}
          data-testid={`do-${offered.type}`}
        >
          {offered.title}
        </button>
      ))}
      {action !== null && (
        <form
          class="truck-question"
          onSubmit={(event) => {
            event.preventDefault();
            void send(action);
          }}
        >
          <p>{action.question}</p>
          {action.resources !== undefined && (
            <Resources
              targetName={targetName}
              all={action.resources}
              chosen={chosen.value}
              fixed={unconfirmedId.value !== null}
              onChoose={(next) => (chosen.value = next)}
            />
          )}
          {action.irreversible && (
            <label class="truck-secured">
              <input
                type="checkbox"
                required
                disabled={unconfirmedId.value !== null}
                data-testid={`${targetName}-secured`}
              />{" "}
              The truck was removed or secured by hand and cannot move.
            </label>
          )}
          {unconfirmedId.value !== null && (
            <p class="truck-confirm">Confirm within 60 s; this cannot be undone. Nothing has happened yet.</p>
          )}
          <label>
            reason{" "}
            <input
              required
              maxLength={500}
              disabled={unconfirmedId.value !== null}
              value={reason.value}
              onInput={({ currentTarget }) => (reason.value = currentTarget.value)}
              data-testid={`${targetName}-reason`}
            />
          </label>
          <button
            type="submit"
            class="button button-main"
            disabled={busy.value || isIncomplete}
            data-testid={`${targetName}-send`}
          >
            {unconfirmedId.value === null ? "Send" : "Confirm"}
          </button>
          <button type="button" class="button" onClick={() => (current.value = null)}>
            Dismiss
          </button>
        </form>
      )}
      <p class="quiet" role="status" data-testid={`${targetName}-status`}>
        {status}
      </p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </div>
  );
}

interface ResourcesProps {
  readonly targetName: string;
  readonly all: readonly string[];
  readonly chosen: readonly string[];
  /** The selection is fixed while the confirmation is pending. */
  readonly fixed: boolean;
  readonly onChoose: (chosen: readonly string[]) => void;
}

function Resources({ targetName, all, chosen, fixed, onChoose }: ResourcesProps) {
  return (
    <fieldset class="truck-resources" disabled={fixed}>
      <legend>Resources to release</legend>
      {all.map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={({ currentTarget }) =>
              onChoose(all.filter((other) => (other === name ? currentTarget.checked : chosen.includes(other))))
            }
            data-testid={`${targetName}-release-${name}`}
          />{" "}
          {name}
        </label>
      ))}
    </fieldset>
  );
}

/** The result of an action with the released resources. */
function resultOf({ message, freedResources }: OperatorAnswer): string {
  return freedResources.length === 0 ? message : `${message}: ${freedResources.join(", ")}`;
}
