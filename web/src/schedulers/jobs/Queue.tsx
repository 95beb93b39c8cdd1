/** Jobs, newest first, with counts by state and filters. */

import { useSignal } from "@preact/signals";

import type { Query } from "../../api/client";
import { api } from "../../api/server";
import type { SchedulerJob, SchedulerMetrics, SchedulerStatus } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { integer } from "../../wording";
import { fromNow, jobHref, objectHref, readable, SIGNS, STATES } from "./model";
import { usePolled } from "./polling";
import { StateLabel } from "./StateLabel";

const MAX_SHOWN = 100;

interface QueueProps {
  readonly metrics: SchedulerMetrics;
  readonly now: number;
  readonly kinds: readonly string[];
  readonly actions: readonly string[];
  readonly chosen: string | null;
}

interface Filters {
  readonly status: SchedulerStatus | null;
  readonly object_type: string | null;
  readonly action: string | null;
  readonly object_id: string | null;
}

const NONE: Filters = { status: null, object_type: null, action: null, object_id: null };

export function Queue({ metrics, now, kinds, actions, chosen }: QueueProps) {
  const filters = useSignal<Filters>(NONE);
  const set = (change: Partial<Filters>) => {
    filters.value = { ...filters.value, ...change };
  };
  const query: Query = { ...filters.value, limit: MAX_SHOWN };
  const polled = usePolled(JSON.stringify(query), (signal) => api.get("/scheduler/jobs", {}, query, signal));
  return (
    <section class="panel" aria-labelledby="queue" data-testid="panel-queue">
      <h2 id="queue">Jobs by state</h2>
      <div class="job-tallies" role="group" aria-label="Show jobs in one state">
        {STATES.map((status) => (
          <button
            key={status}
            type="button"
            class="job-tally"
            data-status={status}
            aria-pressed={filters.value.status === status}
            onClick={() => set({ status: filters.value.status === status ? null : status })}
            data-testid={`tally-${status}`}
          >
            <span>
              <span aria-hidden="true">{SIGNS[status]}</span> {readable(status)}
            </span>
            <strong>{integer(metrics.jobs[status])}</strong>
          </button>
        ))}
      </div>
      <div class="job-filters" role="group" aria-label="Filters">
        <Choice
          name="type"
          options={kinds}
          value={filters.value.object_type}
          onChoose={(object_type) => set({ object_type })}
        />
        <Choice name="action" options={actions} value={filters.value.action} onChoose={(action) => set({ action })} />
        <label>
          object
          <input
            type="search"
            placeholder="exact id"
            value={filters.value.object_id ?? ""}
            onChange={({ currentTarget }) => set({ object_id: currentTarget.value.trim() || null })}
          />
        </label>
      </div>
      {polled.error.value !== null && <ErrorNote error={polled.error.value} />}
      <DataTable
        caption="Jobs, newest first"
        columns={columns(now)}
        rows={polled.value.value?.jobs ?? []}
        rowKey={(job) => job.job_id}
        empty={polled.value.value === null ? "Loading jobs …" : "No matching jobs."}
        current={(job) => job.job_id === chosen}
        testId="jobs"
      />
    </section>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly options: readonly string[];
  readonly value: string | null;
  readonly onChoose: (option: string | null) => void;
}

export function Choice({ name, options, value, onChoose }: ChoiceProps) {
  return (
    <label>
      {name}
      <select
        value={value ?? ""}
        onChange={({ currentTarget }) => onChoose(currentTarget.value || null)}
        data-testid={`filter-${name}`}
      >
        <option value="">any</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {readable(option)}
          </option>
        ))}
      </select>
    </label>
  );
}

function columns(now: number): Column<SchedulerJob>[] {
  return [
    { key: "state", title: "State", cell: ({ status }) => <StateLabel status={status} />, by: ({ status }) => status },
    {
      key: "job",
      title: "Job",
      cell: (job) => <a href={jobHref(job.job_id)}>{job.action}</a>,
      by: ({ action }) => action,
    },
    {
      key: "object",
      title: "Object",
      cell: (job) => (
        <a class="object-link" href={objectHref(job.object_type, job.object_id)}>
          {job.object_type} {job.object_id}
        </a>
      ),
      by: ({ object_id }) => object_id,
      wide: true,
    },
    {
      key: "due",
      title: "Due",
      cell: ({ run_at }) => (
        <time class="nowrap" dateTime={run_at}>
          {fromNow(run_at, now)}
        </time>
      ),
      by: ({ run_at }) => run_at,
    },
    {
      key: "attempt",
      title: "Attempt",
      cell: ({ attempt, max_attempts }) => `${attempt} of ${max_attempts}`,
      by: ({ attempt }) => attempt,
    },
  ];
}
