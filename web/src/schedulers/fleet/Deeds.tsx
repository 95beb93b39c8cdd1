/** What a person can do about a truck, a task or the whole fleet: each is asked about, needs a reason, and is answered. */

import { useSignal } from "@preact/signals";

import type { ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { api, canCommand } from "../../api/server";
import type { OperatorAnswer } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";

export interface Deed {
  readonly type: string;
  readonly title: string;
  readonly question: string;
  /** What it is about, beside the truck or the task. */
  readonly more?: JsonObject;
  /** Whether it has to be said twice, with the word that the truck was secured. */
  readonly grave?: boolean;
  /** What of all this it is about: at least one has to be chosen. */
  readonly resources?: readonly string[];
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
  const chosen = useSignal<readonly string[]>([]);
  const told = useSignal("");
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const begin = (deed: Deed) => {
    asked.value = deed;
    first.value = null;
    chosen.value = [];
    told.value = "";
    error.value = null;
  };
  const doIt = async (deed: Deed) => {
    busy.value = true;
    error.value = null;
    try {
      const confirmation: JsonObject = first.value === null ? {} : { confirmationOf: first.value };
      const secured: JsonObject = deed.grave ? { physicallySecured: true } : {};
      const resources: JsonObject = deed.resources === undefined ? {} : { resources: [...chosen.value] };
      const wish: JsonObject = {
        type: deed.type,
        reason: reason.value.trim(),
        ...about,
        ...deed.more,
        ...resources,
        ...confirmation,
        ...secured,
      };
      const answer = await api.post("/api/v1/fleet/{fleet}/actions", { fleet: address.engine }, wish);
      told.value = outcome(answer);
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
  const unsaid = deed?.resources !== undefined && chosen.value.length === 0;
  return (
    <div class="truck-actions" role="group" aria-label={`What a person can do about the ${of}`}>
      {deeds.map((one) => (
        <button
          key={one.type}
          type="button"
          class="button"
          disabled={!canCommand.value}
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
          {deed.resources !== undefined && (
            <Resources
              of={of}
              all={deed.resources}
              chosen={chosen.value}
              fixed={first.value !== null}
              onChoose={(next) => (chosen.value = next)}
            />
          )}
          {deed.grave && (
            <label class="truck-secured">
              <input type="checkbox" required disabled={first.value !== null} data-testid={`${of}-secured`} /> It was
              taken away or secured by hand: nobody can drive it there.
            </label>
          )}
          {first.value !== null && (
            <p class="truck-again">Say it again within 60 s: this cannot be taken back. Nothing has happened yet.</p>
          )}
          <label>
            because{" "}
            <input
              required
              maxLength={500}
              disabled={first.value !== null}
              value={reason.value}
              onInput={({ currentTarget }) => (reason.value = currentTarget.value)}
              data-testid={`${of}-reason`}
            />
          </label>
          <button type="submit" class="button button-main" disabled={busy.value || unsaid} data-testid={`${of}-yes`}>
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

interface ResourcesProps {
  readonly of: string;
  readonly all: readonly string[];
  readonly chosen: readonly string[];
  /** The second word is about what the first was about. */
  readonly fixed: boolean;
  readonly onChoose: (chosen: readonly string[]) => void;
}

function Resources({ of, all, chosen, fixed, onChoose }: ResourcesProps) {
  return (
    <fieldset class="truck-resources" disabled={fixed}>
      <legend>What is freed</legend>
      {all.map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={({ currentTarget }) =>
              onChoose(all.filter((one) => (one === name ? currentTarget.checked : chosen.includes(one))))
            }
            data-testid={`${of}-frees-${name}`}
          />{" "}
          {name}
        </label>
      ))}
    </fieldset>
  );
}

/** What came of an action, with all that it freed. */
function outcome({ message, freedResources }: OperatorAnswer): string {
  return freedResources.length === 0 ? message : `${message}: ${freedResources.join(", ")}`;
}
