/** The state of a job as a word and a shape. */

import type { SchedulerStatus } from "../../api/types";
import { readable, SIGNS } from "./model";

export function StateLabel({ status }: { readonly status: SchedulerStatus }) {
  return (
    <span class="job-state" data-status={status}>
      <span aria-hidden="true">{SIGNS[status]}</span> {readable(status)}
    </span>
  );
}
