/** A timeline of due jobs: one lane per action, one mark per job. */

import type { SchedulerJob } from "../../api/types";
import { counted } from "../../wording";
import type { Lane } from "./model";
import { BEFORE, duration, fromNow, jobHref, lanesOf, spanFor, ticksOf } from "./model";

interface DueLineProps {
  readonly jobs: readonly SchedulerJob[];
  /** The number of queued jobs, of which `jobs` may be only the newest. */
  readonly waiting: number;
  readonly now: number;
}

export function DueLine({ jobs, waiting, now }: DueLineProps) {
  const span = spanFor(jobs, now);
  const queued = jobs.filter((job) => job.status === "queued").length;
  return (
    <section class="panel" aria-labelledby="due" data-testid="panel-due">
      <div class="panel-head">
        <h2 id="due">Due</h2>
        <ul class="legend">
          <li class="legend-item">
            <span class="due-mark" data-kind="waiting" aria-hidden="true" /> waiting
          </li>
          <li class="legend-item">
            <span class="due-mark" data-kind="overdue" aria-hidden="true" /> overdue
          </li>
          <li class="legend-item">
            <span class="due-mark" data-kind="running" aria-hidden="true" /> running
          </li>
        </ul>
      </div>
      {jobs.length === 0 ? (
        <p class="quiet">No jobs are waiting or running.</p>
      ) : (
        <div class="due-line" data-testid="due-line">
          {lanesOf(jobs, now, span).map((lane) => (
            <LaneRow key={lane.action} lane={lane} now={now} span={span} />
          ))}
          <div class="due-scale" aria-hidden="true">
            {ticksOf(span).map(({ at, label }) => (
              <span key={label} style={{ left: `${at}%` }} data-end={at === 100}>
                {label}
              </span>
            ))}
          </div>
        </div>
      )}
      {waiting > queued && (
        <p class="quiet">
          Showing the newest {queued} of {counted(waiting, "waiting job")}.
        </p>
      )}
    </section>
  );
}

function LaneRow({ lane, now, span }: { readonly lane: Lane; readonly now: number; readonly span: number }) {
  const label = `${lane.action}: ${counted(lane.marks.length, "job")} within ${duration(span)}, ${lane.later} later`;
  return (
    <div class="due-lane" data-testid={`lane-${lane.action}`}>
      <span class="due-name">
        {lane.action} <span class="count">{lane.marks.length + lane.later}</span>
      </span>
      <ul class="due-track" aria-label={label}>
        <li class="due-now" style={{ left: `${BEFORE * 100}%` }} aria-hidden="true" />
        {lane.marks.map(({ job, at, kind }) => (
          <li key={job.job_id} style={{ left: `${at}%` }}>
            <a
              class="due-mark"
              data-kind={kind}
              href={jobHref(job.job_id)}
              tabIndex={-1}
              title={`${job.action} ${job.object_type} ${job.object_id}, ${fromNow(job.run_at, now)}`}
            >
              <span class="visually-hidden">
                {job.object_type} {job.object_id}, {kind}, {fromNow(job.run_at, now)}
              </span>
            </a>
          </li>
        ))}
      </ul>
      <span class="due-later">{lane.later > 0 && `+${lane.later}`}</span>
    </div>
  );
}
