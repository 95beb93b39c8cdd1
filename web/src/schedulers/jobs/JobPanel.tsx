/** One job: its state with the reason, its errors, and its audit trail. */

import { api } from "../../api/server";
import type { SchedulerEvent, SchedulerJob } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { clockTime } from "../../wording";
import { Requeue } from "./DeadLetters";
import { fromNow, localTimes, objectHref, readable, selectionHref } from "./model";
import { OperatorAction } from "./OperatorAction";
import { eventsUntil, stateAfter } from "./PastMoment";
import { usePolled } from "./polling";
import { StateLabel } from "./StateLabel";
import { Trail } from "./Trail";

interface JobPanelProps {
  readonly id: string;
  readonly now: number;
  /** Show the job after this event; `null` is live. */
  readonly at?: number | null;
  readonly onChange: () => void;
}

export function JobPanel({ id, now, at = null, onChange }: JobPanelProps) {
  const polled = usePolled(id, async (signal) => {
    const path = { job_id: id };
    const [{ job }, history, why] = await Promise.all([
      api.get("/scheduler/jobs/{job_id}", path, {}, signal),
      api.get("/scheduler/jobs/{job_id}/history", path, {}, signal),
      api.get("/scheduler/jobs/{job_id}/why", path, {}, signal),
    ]);
    return { job, history, why };
  });
  const data = polled.value.value;
  return (
    <section class="panel chosen" aria-labelledby="job" data-testid="panel-job">
      <div class="panel-head">
        <h2 id="job">
          Job <span class="mono">{id}</span>
        </h2>
        <a class="button button-quiet" href={selectionHref(null)} data-testid="close">
          Close
        </a>
      </div>
      {polled.error.value !== null && <ErrorNote error={polled.error.value} />}
      {data === null && polled.error.value === null && <p class="quiet">Loading the job …</p>}
      {data !== null && at !== null && <PastJob events={eventsUntil(data.history.events, at)} id={id} now={now} />}
      {data !== null && at === null && (
        <>
          <p class="why-sentence" data-testid="why-sentence">
            {localTimes(data.why.sentence, now)}
          </p>
          <JobFacts job={data.job} now={now} />
          {["dead_letter", "failed"].includes(data.job.status) && (
            <div>
              <Requeue
                job={data.job}
                onDone={() => {
                  polled.refresh();
                  onChange();
                }}
              />
            </div>
          )}
          {["queued", "running"].includes(data.job.status) && (
            <Cancel
              job={data.job}
              onDone={() => {
                polled.refresh();
                onChange();
              }}
            />
          )}
          {data.history.errors.length > 0 && (
            <>
              <h3>Errors</h3>
              <ul class="job-errors">
                {data.history.errors.map(({ attempt, worker_id, at, error }) => (
                  <li key={`${attempt} ${at}`}>
                    attempt {attempt}, {clockTime(Date.parse(at))}
                    {worker_id !== null && `, ${worker_id}`}: {error}
                  </li>
                ))}
              </ul>
            </>
          )}
          <h3>History</h3>
          <Trail events={data.history.events} now={now} label={`History of ${id}`} />
        </>
      )}
    </section>
  );
}

interface PastJobProps {
  readonly events: readonly SchedulerEvent[];
  readonly id: string;
  readonly now: number;
}

/** The job as of a past moment. */
function PastJob({ events, id, now }: PastJobProps) {
  const state = stateAfter(events);
  return (
    <>
      <p class="why-sentence" data-testid="why-sentence">
        {state === null ? `${id} did not exist yet.` : `${id} was ${readable(state)}.`}
      </p>
      <h3>History until then</h3>
      <Trail events={events} now={now} label={`History of ${id} until then`} />
    </>
  );
}

function Cancel({ job, onDone }: { readonly job: SchedulerJob; readonly onDone: () => void }) {
  const isRunning = job.status === "running";
  const cancel = async (reason: string) => {
    const answer = await api.post("/scheduler/jobs/{job_id}/cancel", { job_id: job.job_id }, { reason });
    return answer.job.status === "running" ? `Asked the worker of ${job.job_id} to stop.` : `Cancelled ${job.job_id}.`;
  };
  return (
    <OperatorAction
      title="Cancel job"
      testId="action-cancel"
      question={
        isRunning
          ? `Ask ${job.worker_id ?? "its worker"} to stop ${job.action} of ${job.object_type} ${job.object_id}?`
          : `Cancel ${job.action} of ${job.object_type} ${job.object_id}? It will not run unless it is requeued.`
      }
      act={cancel}
      onDone={onDone}
    />
  );
}

function JobFacts({ job, now }: { readonly job: SchedulerJob; readonly now: number }) {
  return (
    <dl class="facts">
      <Fact name="state">
        <StateLabel status={job.status} />
      </Fact>
      <Fact name="object">
        <a href={objectHref(job.object_type, job.object_id)}>
          {job.object_type} {job.object_id}
        </a>
      </Fact>
      <Fact name="action">{job.action}</Fact>
      <Fact name="due">{fromNow(job.run_at, now)}</Fact>
      <Fact name="attempt">
        {job.attempt} of {job.max_attempts}
      </Fact>
      <Fact name="deliveries">{job.delivery_count}</Fact>
      {job.worker_id !== null && <Fact name="worker">{job.worker_id}</Fact>}
      {job.outcome !== null && <Fact name="outcome">{job.outcome}</Fact>}
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: preact.ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
