/** The state of a job in a word and a shape. */

import type { SchedulerStatus } from "../../api/types";
import { SIGNS, said } from "./model";

export function StateWord({ status }: { readonly status: SchedulerStatus }) {
  return (
    <span class="job-state" data-status={status}>
      <span aria-hidden="true">{SIGNS[status]}</span> {said(status)}
    </span>
  );
}
