/** The page of jobs: due jobs, queue, dead letters, objects, gates, and details of the selected job or object. */

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import { api } from "../../api/server";
import type { SchedulerMetrics } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { useExportedState } from "../../components/exports";
import { JournalSlider } from "../../components/JournalSlider";
import { PastBanner } from "../../components/PastBanner";
import { Readout, Readouts } from "../../components/Readout";
import type { RunsSchedulerProps } from "../../registry";
import { replaceAddress, schedulerHref } from "../../route";
import { integer } from "../../wording";
import { useSelection } from "../shared/selection";
import { DeadLetters } from "./DeadLetters";
import { DueLine } from "./DueLine";
import { Gates } from "./Gates";
import { JobPanel } from "./JobPanel";
import { duration, eventId, eventNumber, filterOptions, parseSelection, timeOf } from "./model";
import { ObjectPanel } from "./ObjectPanel";
import { Objects } from "./Objects";
import { PastMoment } from "./PastMoment";
import { usePolled } from "./polling";
import { Queue } from "./Queue";
import { TrailSource } from "./trail_source";
import "./jobs.css";

const MAX_WAITING = 500;
const MAX_RUNNING = 100;
const SETTLE_MS = 150;
const TABS = { queue: "Queue", dead: "Dead letters", objects: "Objects", gates: "Gates" } as const;
type Tab = keyof typeof TABS;

/** The tab in the URL. */
function tabOf(on: string | null): Tab {
  return on !== null && Object.hasOwn(TABS, on) ? (on as Tab) : "queue";
}

export function JobsScheduler({ scheduler, run, at, on }: RunsSchedulerProps) {
  const [chosenTab, chooseTab] = useSelection(on, run);
  const tab = tabOf(chosenTab);
  const move = (n: number | null) => replaceAddress(schedulerHref(scheduler.name, run, n, on));
  const overview = usePolled("overview", fetchOverview);
  const ends = useSignal({ first: 0, last: 0 });
  const past = usePolled(`past ${at}`, async (signal) => {
    const moment = await fetchPast(at, signal);
    ends.value = { first: eventNumber(moment.first ?? ""), last: eventNumber(moment.last ?? "") };
    return moment;
  });
  const source = useMemo(() => new TrailSource(api, () => ends.value), []);
  const machines = usePolled("machines", (signal) => api.get("/scheduler/machines", {}, {}, signal));
  const chosen = parseSelection(run);
  const data = overview.value.value;
  useExportedState(at === null ? data : past.value.value);
  if (data === null) {
    return overview.error.value === null ? (
      <p class="quiet">Loading the queue …</p>
    ) : (
      <ErrorNote error={overview.error.value} />
    );
  }
  const { metrics, jobs, figures } = data;
  const now = Date.parse(metrics.now);
  const moment = at === null ? null : past.value.value;
  const { first, last } = ends.value;
  const time = timeOf(at === null ? now : Date.parse(moment?.now ?? ""), now);
  const definitions = machines.value.value;
  const { kinds, actions } = filterOptions(definitions?.machines ?? [], jobs);
  return (
    <div class="scheduler jobs" data-testid="scheduler">
      {overview.error.value !== null && <ErrorNote error={overview.error.value} />}
      {first < last && (
        <JournalSlider
          first={first}
          last={last}
          at={at}
          snapshots={[]}
          unit="event"
          onMove={move}
          source={source}
          busy={at !== null && past.value.value === null}
          time={time}
          formatTime={({ ms }) => timeOf(ms ?? 0, now)}
        />
      )}
      {at !== null && <PastBanner at={at} time={time} unit="event" onLive={() => move(null)} />}
      {past.error.value !== null && <ErrorNote error={past.error.value} />}
      {moment !== null && <PastMoment moment={moment} />}
      {at === null && <Figures metrics={metrics} />}
      {at === null && <DueLine jobs={jobs} waiting={metrics.jobs.queued} now={now} />}
      <div class="jobs-columns" data-chosen={chosen !== null && at === null}>
        {at === null && (
          <div class="jobs-column">
            <div class="segmented jobs-tabs" role="group" aria-label="View">
              {(Object.keys(TABS) as Tab[]).map((name) => (
                <button
                  key={name}
                  type="button"
                  aria-pressed={tab === name}
                  onClick={() => chooseTab(name)}
                  data-testid={`tab-${name}`}
                >
                  {TABS[name]}
                  {name === "dead" && metrics.dead_letter_count > 0 && ` (${integer(metrics.dead_letter_count)})`}
                </button>
              ))}
            </div>
            {tab === "queue" && <Queue metrics={metrics} now={now} kinds={kinds} actions={actions} chosen={run} />}
            {tab === "dead" && <DeadLetters now={now} onChange={overview.refresh} />}
            {tab === "objects" && definitions !== null && (
              <Objects machines={definitions} figures={figures} now={now} chosen={run} />
            )}
            {tab === "gates" && definitions !== null && <Gates machines={definitions} now={now} />}
          </div>
        )}
        {chosen?.type === "job" && <JobPanel id={chosen.id} now={now} at={at} onChange={overview.refresh} />}
        {chosen?.type === "object" && (
          <ObjectPanel kind={chosen.kind} id={chosen.id} machines={definitions} now={now} at={at} />
        )}
      </div>
    </div>
  );
}

/** Fetch the moment after an event, or now, with the first and last event of the trail. */
async function fetchPast(at: number | null, signal: AbortSignal) {
  if (at !== null) await settled(signal);
  return api.get("/scheduler/past", {}, { at: at === null ? null : eventId(at) }, signal);
}

/** Resolves once the slider has rested; intermediate positions are not fetched. */
function settled(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(() => {
      if (!signal.aborted) resolve();
    }, SETTLE_MS);
  });
}

async function fetchOverview(signal: AbortSignal) {
  const [metrics, waiting, running, figures] = await Promise.all([
    api.get("/scheduler/metrics", {}, {}, signal),
    api.get("/scheduler/jobs", {}, { status: "queued", limit: MAX_WAITING }, signal),
    api.get("/scheduler/jobs", {}, { status: "running", limit: MAX_RUNNING }, signal),
    api.get("/scheduler/governance", {}, {}, signal),
  ]);
  return { metrics, jobs: [...running.jobs, ...waiting.jobs], figures };
}

function Figures({ metrics }: { readonly metrics: SchedulerMetrics }) {
  const { jobs, jobs_due_count, jobs_lag_seconds, job_success_rate, dead_letter_count } = metrics;
  return (
    <Readouts>
      <Readout name="waiting" value={integer(jobs.queued)} />
      <Readout name="due now" value={integer(jobs_due_count)} />
      <Readout name="oldest due" value={jobs_due_count === 0 ? "none" : duration(Number(jobs_lag_seconds) * 1000)} />
      <Readout name="running" value={integer(jobs.running)} />
      <Readout
        name="success"
        value={job_success_rate === null ? "none yet" : `${Math.round(Number(job_success_rate) * 1000) / 10} %`}
      />
      <Readout name="dead letters" value={integer(dead_letter_count)} alarm={dead_letter_count > 0} />
    </Readouts>
  );
}
