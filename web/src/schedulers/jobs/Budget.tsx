/** The budget of an object for automatic verification. */

import type { SchedulerGoverned } from "../../api/types";
import { readable } from "./model";

export function Budget({ object }: { readonly object: SchedulerGoverned }) {
  const full = Math.max(object.auto_verify_budget ?? 0, object.verify_budget_left);
  return (
    <p class="budget" data-testid="budget">
      <span class="budget-units" aria-hidden="true">
        {Array.from({ length: full }, (_, unit) => (
          <span key={unit} data-left={unit < object.verify_budget_left} />
        ))}
      </span>{" "}
      {object.verify_budget_left} of {full} verifications left, {object.verifications} made
      {object.decision_mode !== null && <>; decision mode: {readable(object.decision_mode)}</>}
    </p>
  );
}
