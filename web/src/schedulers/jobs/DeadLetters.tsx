/** Dead letters with their errors and a button to requeue each. */

import { useSignal } from "@preact/signals";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import { api, canCommand } from "../../api/server";
import type { SchedulerJob } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { fromNow, jobHref } from "./model";
import { usePolled } from "./polling";

const MAX_SHOWN = 50;

interface DeadLettersProps {
  readonly now: number;
  readonly onChange: () => void;
}

export function DeadLetters({ now, onChange }: DeadLettersProps) {
  const letters = usePolled("dead", (signal) =>
    api.get("/scheduler/jobs", {}, { status: "dead_letter", limit: MAX_SHOWN }, signal),
  );
  const status = useSignal("");
  const jobs = letters.value.value?.jobs ?? null;
  return (
    <section class="panel" aria-labelledby="dead" data-testid="panel-dead">
      <h2 id="dead">Dead letters</h2>
      {letters.error.value !== null && <ErrorNote error={letters.error.value} />}
      {jobs === null && letters.error.value === null && <p class="quiet">Loading dead letters …</p>}
      {jobs !== null && jobs.length === 0 && <p class="quiet">No dead letters.</p>}
      <ul class="dead-letters">
        {jobs?.map((job) => (
          <DeadLetter
            key={job.job_id}
            job={job}
            now={now}
            onDone={(message) => {
              status.value = message;
              letters.refresh();
              onChange();
            }}
          />
        ))}
      </ul>
      <p class="quiet" role="status" data-testid="dead-status">
        {status}
      </p>
    </section>
  );
}

interface DeadLetterProps {
  readonly job: SchedulerJob;
  readonly now: number;
  readonly onDone: (message: string) => void;
}

function DeadLetter({ job, now, onDone }: DeadLetterProps) {
  return (
    <li class="dead-letter" data-testid="dead-letter" data-job={job.job_id}>
      <div>
        <p>
          <a href={jobHref(job.job_id)}>
            {job.action} {job.object_type} {job.object_id}
          </a>{" "}
          <span class="quiet">
            failed for good {fromNow(job.updated_at, now)}, attempt {job.attempt} of {job.max_attempts}
          </span>
        </p>
        <p class="dead-error">{job.last_error}</p>
      </div>
      <Requeue job={job} onDone={() => onDone(`Requeued ${job.job_id}.`)} />
    </li>
  );
}

/** A button that requeues a job and shows the error of a failed request. */
export function Requeue({ job, onDone }: { readonly job: SchedulerJob; readonly onDone: () => void }) {
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const requeue = async () => {
    busy.value = true;
    try {
      const body = { reason: "requeued in the control room" };
      await api.post("/scheduler/jobs/{job_id}/requeue", { job_id: job.job_id }, body);
      onDone();
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      busy.value = false;
    }
  };
  return (
    <>
      <button
        type="button"
        class="button"
        disabled={!canCommand.value || busy.value}
        onClick={() => void requeue()}
        aria-label={`Requeue ${job.action} of ${job.object_type} ${job.object_id}`}
        data-testid="requeue"
      >
        Requeue
      </button>
      {error.value !== null && <ErrorNote error={error.value} />}
    </>
  );
}
