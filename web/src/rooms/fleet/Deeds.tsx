/** What a person can do about a truck, a task or the whole fleet: each is asked about, needs a reason, and is answered. */

import { useSignal } from "@preact/signals";

import type { ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { api, mayCommand } from "../../api/server";
import { ErrorNote } from "../../components/ErrorNote";

export interface Deed {
  readonly type: string;
  readonly title: string;
  readonly question: string;
  /** What it is about, beside the truck or the task. */
  readonly more?: JsonObject;
  /** Whether it has to be said twice, with the word that the truck was secured. */
  readonly grave?: boolean;
}

interface DeedsProps {
  readonly deeds: readonly Deed[];
  /** The truck or the task, by the names of the contract; nothing for the whole fleet. */
  readonly about: JsonObject;
  /** `truck`, `task` or `fleet`: what tests and readers of a screen call it. */
  readonly of: string;
  readonly address: EngineAddress;
  readonly onDone: () => void;
}

export function Deeds({ deeds, about, of, address, onDone }: DeedsProps) {
  const asked = useSignal<Deed | null>(null);
  const reason = useSignal("");
  const first = useSignal<string | null>(null);
  const told = useSignal("");
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const begin = (deed: Deed) => {
    asked.value = deed;
    first.value = null;
    told.value = "";
    error.value = null;
  };
  const doIt = async (deed: Deed) => {
    busy.value = true;
    error.value = null;
    try {
      const confirmation: JsonObject = first.value === null ? {} : { confirmationOf: first.value };
      const secured: JsonObject = deed.grave ? { physicallySecured: true } : {};
      const wish: JsonObject = {
        type: deed.type,
        reason: reason.value.trim(),
        ...about,
        ...deed.more,
        ...confirmation,
        ...secured,
      };
      const answer = await api.post("/api/v1/fleet/{fleet}/actions", { fleet: address.engine }, wish);
      told.value = answer.message;
      if (answer.code === "CONFIRMATION_NEEDED") first.value = answer.actionId;
      else asked.value = null;
      onDone();
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      busy.value = false;
    }
  };
  const deed = asked.value;
  return (
    <div class="truck-actions" role="group" aria-label={`What a person can do about the ${of}`}>
      {deeds.map((one) => (
        <button
          key={one.type}
          type="button"
          class="button"
          disabled={!mayCommand.value}
          onClick={() => begin(one)}
          data-testid={`do-${one.type}`}
        >
          {one.title}
        </button>
      ))}
      {deed !== null && (
        <form
          class="truck-question"
          onSubmit={(event) => {
            event.preventDefault();
            void doIt(deed);
          }}
        >
          <p>{deed.question}</p>
          {first.value !== null && <p class="truck-again">Say it again: this cannot be taken back.</p>}
          <label>
            because{" "}
            <input
              required
              maxLength={500}
              value={reason.value}
              onInput={({ currentTarget }) => (reason.value = currentTarget.value)}
              data-testid={`${of}-reason`}
            />
          </label>
          <button type="submit" class="button button-main" disabled={busy.value} data-testid={`${of}-yes`}>
            {first.value === null ? "Do it" : "Yes, I am sure"}
          </button>
          <button type="button" class="button" onClick={() => (asked.value = null)}>
            No
          </button>
        </form>
      )}
      <p class="quiet" role="status" data-testid={`${of}-told`}>
        {told}
      </p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </div>
  );
}
