/** The page of jobs: what is due, the queue, dead letters, governed objects and their gates, and one of them closely. */

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
import { JobLife } from "./JobLife";
import { chosenIn, eventId, eventNumber, length, timeOf, wordsOf } from "./model";
import { ObjectLife } from "./ObjectLife";
import { Objects } from "./Objects";
import { PastMoment } from "./Past";
import { usePolled } from "./polling";
import { Queue } from "./Queue";
import { TrailSource } from "./trail_source";
import "./jobs.css";

const WAITING_MOST = 500;
const RUNNING_MOST = 100;
const SETTLE_MS = 150;
const TABS = { queue: "Queue", dead: "Dead letters", objects: "Objects", gates: "Gates" } as const;
type Tab = keyof typeof TABS;

/** The table that the address names. */
function tabOf(on: string | null): Tab {
  return on !== null && Object.hasOwn(TABS, on) ? (on as Tab) : "queue";
}

export function JobsScheduler({ scheduler, run, at, on }: RunsSchedulerProps) {
  const [chosenTab, chooseTab] = useSelection(on, run);
  const tab = tabOf(chosenTab);
  const move = (n: number | null) => replaceAddress(schedulerHref(scheduler.name, run, n, on));
  const overview = usePolled("overview", askOverview);
  const ends = useSignal({ first: 0, last: 0 });
  const past = usePolled(`past ${at}`, async (signal) => {
    const found = await askPast(at, signal);
    ends.value = { first: eventNumber(found.first ?? ""), last: eventNumber(found.last ?? "") };
    return found;
  });
  const source = useMemo(() => new TrailSource(api, () => ends.value), []);
  const machines = usePolled("machines", (signal) => api.get("/scheduler/machines", {}, {}, signal));
  const chosen = chosenIn(run);
  const seen = overview.value.value;
  useExportedState(at === null ? seen : past.value.value);
  if (seen === null) {
    return overview.error.value === null ? (
      <p class="quiet">Loading the queue …</p>
    ) : (
      <ErrorNote error={overview.error.value} />
    );
  }
  const { metrics, jobs, figures } = seen;
  const now = Date.parse(metrics.now);
  const moment = at === null ? null : past.value.value;
  const { first, last } = ends.value;
  const time = timeOf(at === null ? now : Date.parse(moment?.now ?? ""), now);
  const known = machines.value.value;
  const { kinds, actions } = wordsOf(known?.machines ?? [], jobs);
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
            <div class="segmented jobs-tabs" role="group" aria-label="What to look at">
              {(Object.keys(TABS) as Tab[]).map((word) => (
                <button
                  key={word}
                  type="button"
                  aria-pressed={tab === word}
                  onClick={() => chooseTab(word)}
                  data-testid={`tab-${word}`}
                >
                  {TABS[word]}
                  {word === "dead" && metrics.dead_letter_count > 0 && ` (${integer(metrics.dead_letter_count)})`}
                </button>
              ))}
            </div>
            {tab === "queue" && <Queue metrics={metrics} now={now} kinds={kinds} actions={actions} chosen={run} />}
            {tab === "dead" && <DeadLetters now={now} onChange={overview.refresh} />}
            {tab === "objects" && known !== null && (
              <Objects machines={known} figures={figures} now={now} chosen={run} />
            )}
            {tab === "gates" && known !== null && <Gates machines={known} now={now} />}
          </div>
        )}
        {chosen?.what === "job" && <JobLife id={chosen.id} now={now} at={at} onChange={overview.refresh} />}
        {chosen?.what === "object" && (
          <ObjectLife kind={chosen.kind} id={chosen.id} machines={known} now={now} at={at} />
        )}
      </div>
    </div>
  );
}

/** The moment after an event, or now, with the events between which one may choose. */
async function askPast(at: number | null, signal: AbortSignal) {
  if (at !== null) await settled(signal);
  return api.get("/scheduler/past", {}, { at: at === null ? null : eventId(at) }, signal);
}

/** While a slider is moved, only where it comes to rest is asked for. */
function settled(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(() => {
      if (!signal.aborted) resolve();
    }, SETTLE_MS);
  });
}

async function askOverview(signal: AbortSignal) {
  const [metrics, waiting, running, figures] = await Promise.all([
    api.get("/scheduler/metrics", {}, {}, signal),
    api.get("/scheduler/jobs", {}, { status: "queued", limit: WAITING_MOST }, signal),
    api.get("/scheduler/jobs", {}, { status: "running", limit: RUNNING_MOST }, signal),
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
      <Readout name="oldest due" value={jobs_due_count === 0 ? "none" : length(Number(jobs_lag_seconds) * 1000)} />
      <Readout name="running" value={integer(jobs.running)} />
      <Readout
        name="success"
        value={job_success_rate === null ? "none yet" : `${Math.round(Number(job_success_rate) * 1000) / 10} %`}
      />
      <Readout name="dead letters" value={integer(dead_letter_count)} alarm={dead_letter_count > 0} />
    </Readouts>
  );
}
