/** What may still be spent on automatic verification, and the refill by a named user. */

import { useSignal } from "@preact/signals";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import { api, mayCommand } from "../../api/server";
import type { SchedulerShownObject } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { actingAs, NameField } from "./acting";
import { said } from "./model";

interface BudgetProps {
  readonly shown: SchedulerShownObject;
  readonly onChange: () => void;
}

export function Budget({ shown: { object }, onChange }: BudgetProps) {
  const full = Math.max(object.auto_verify_budget ?? 0, object.verify_budget_left);
  const error = useSignal<ApiError | null>(null);
  const refill = async (event: Event) => {
    event.preventDefault();
    const names = { object_type: object.object_type, object_id: object.object_id };
    const body = { reason: "refilled in the control room" };
    try {
      await api.post("/scheduler/objects/refill/{object_type}/{object_id}", names, body, actingAs());
      error.value = null;
      onChange();
    } catch (thrown) {
      error.value = asApiError(thrown);
    }
  };
  return (
    <div class="budget" data-testid="budget">
      <p>
        <span class="budget-units" aria-hidden="true">
          {Array.from({ length: full }, (_, unit) => (
            <span key={unit} data-left={unit < object.verify_budget_left} />
          ))}
        </span>{" "}
        {object.verify_budget_left} of {full} verifications left in the budget, {object.verifications} made
        {object.decision_mode !== null && <>; meanwhile: {said(object.decision_mode)}</>}
      </p>
      {object.verify_budget_left < full && (
        <form class="job-filters" onSubmit={(event) => void refill(event)}>
          <NameField />
          <button type="submit" class="button" disabled={!mayCommand.value} data-testid="refill">
            Refill
          </button>
        </form>
      )}
      {error.value !== null && <ErrorNote error={error.value} />}
    </div>
  );
}
