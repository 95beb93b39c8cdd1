/** One job's whole life: where it stands and why in a sentence, its errors, and its trail. */

import { api } from "../../api/server";
import type { SchedulerEvent, SchedulerJob } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { clockTime } from "../../wording";
import { Requeue } from "./DeadLetters";
import { Deed } from "./Deed";
import { besideHref, fromNow, objectHref, plain, said } from "./model";
import { stateAfter, until } from "./Past";
import { usePolled } from "./polling";
import { StateWord } from "./StateWord";
import { Trail } from "./Trail";

interface JobLifeProps {
  readonly id: string;
  readonly now: number;
  /** The event after which it is looked at; `null` is now. */
  readonly at?: number | null;
  readonly onChange: () => void;
}

export function JobLife({ id, now, at = null, onChange }: JobLifeProps) {
  const found = usePolled(id, async (signal) => {
    const names = { job_id: id };
    const [{ job }, history, why] = await Promise.all([
      api.get("/scheduler/jobs/{job_id}", names, {}, signal),
      api.get("/scheduler/jobs/{job_id}/history", names, {}, signal),
      api.get("/scheduler/jobs/{job_id}/why", names, {}, signal),
    ]);
    return { job, history, why };
  });
  const life = found.value.value;
  return (
    <section class="panel chosen" aria-labelledby="life" data-testid="panel-job">
      <div class="panel-head">
        <h2 id="life">
          Job <span class="mono">{id}</span>
        </h2>
        <a class="button button-quiet" href={besideHref(null)} data-testid="close">
          Close
        </a>
      </div>
      {found.error.value !== null && <ErrorNote error={found.error.value} />}
      {life === null && found.error.value === null && <p class="quiet">Loading the job …</p>}
      {life !== null && at !== null && <JobThen events={until(life.history.events, at)} id={id} now={now} />}
      {life !== null && at === null && (
        <>
          <p class="why-sentence" data-testid="why-sentence">
            {plain(life.why.sentence, now)}
          </p>
          <Standing job={life.job} now={now} />
          {["dead_letter", "failed"].includes(life.job.status) && (
            <div>
              <Requeue
                job={life.job}
                onDone={() => {
                  found.refresh();
                  onChange();
                }}
              />
            </div>
          )}
          {["queued", "running"].includes(life.job.status) && (
            <Cancel
              job={life.job}
              onDone={() => {
                found.refresh();
                onChange();
              }}
            />
          )}
          {life.history.errors.length > 0 && (
            <>
              <h3>What went wrong</h3>
              <ul class="job-errors">
                {life.history.errors.map(({ attempt, worker_id, at, error }) => (
                  <li key={`${attempt} ${at}`}>
                    attempt {attempt}, {clockTime(Date.parse(at))}
                    {worker_id !== null && `, ${worker_id}`}: {error}
                  </li>
                ))}
              </ul>
            </>
          )}
          <h3>Its life</h3>
          <Trail events={life.history.events} now={now} label={`The life of ${id}`} />
        </>
      )}
    </section>
  );
}

interface JobThenProps {
  readonly events: readonly SchedulerEvent[];
  readonly id: string;
  readonly now: number;
}

/** The job as a moment of the past knew it. */
function JobThen({ events, id, now }: JobThenProps) {
  const state = stateAfter(events);
  return (
    <>
      <p class="why-sentence" data-testid="why-sentence">
        {state === null ? `${id} was not there yet.` : `${id} was ${said(state)}.`}
      </p>
      <h3>Its life until then</h3>
      <Trail events={events} now={now} label={`The life of ${id} until then`} />
    </>
  );
}

function Cancel({ job, onDone }: { readonly job: SchedulerJob; readonly onDone: () => void }) {
  const runs = job.status === "running";
  const cancel = async (reason: string) => {
    const answer = await api.post("/scheduler/jobs/{job_id}/cancel", { job_id: job.job_id }, { reason });
    return answer.job.status === "running" ? `${job.job_id} is asked to stop.` : `${job.job_id} is cancelled.`;
  };
  return (
    <Deed
      title="Cancel"
      testId="deed-cancel"
      question={
        runs
          ? `Ask ${job.worker_id ?? "its worker"} to stop ${job.action} of ${job.object_type} ${job.object_id}?`
          : `Cancel ${job.action} of ${job.object_type} ${job.object_id}? It will not run unless it is requeued.`
      }
      act={cancel}
      onDone={onDone}
    />
  );
}

function Standing({ job, now }: { readonly job: SchedulerJob; readonly now: number }) {
  return (
    <dl class="facts">
      <Fact name="state">
        <StateWord status={job.status} />
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
