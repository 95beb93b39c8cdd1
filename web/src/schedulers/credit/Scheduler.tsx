/** The page of the credit scheduler: one run with its network, metrics, bottlenecks, events and controls. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import { api } from "../../api/server";
import type { RunStatusView } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { useExportedState } from "../../components/exports";
import { PastBanner } from "../../components/PastBanner";
import { SchedulerFrame } from "../../components/SchedulerFrame";
import type { RunsSchedulerProps } from "../../registry";
import { replaceAddress, schedulerHref } from "../../route";
import { useLiveStream, useMoment } from "../shared/engine_hooks";
import { useSelection } from "../shared/selection";
import { Bottlenecks } from "./Bottlenecks";
import { Curves } from "./Curves";
import { LiveRun } from "./live_run";
import { ManualPayment } from "./ManualPayment";
import type { Selection } from "./network/model";
import { formatSelection, networkOf, parseSelection } from "./network/model";
import { NetworkView } from "./network/NetworkView";
import { PastRunView, RunSlider, tickLabel } from "./PastRun";
import { RunControls } from "./RunControls";
import { RunEvents } from "./RunEvents";
import { StartRun } from "./StartRun";
import { WhatIf } from "./WhatIf";
import "./credit.css";
import { simTime } from "./wording";

const POLL_MS = 5_000;

export function CreditScheduler({ scheduler, run, at, on }: RunsSchedulerProps) {
  const { runs, error, refresh } = useRuns();
  const shown = run ?? runs?.find(({ state }) => isActive(state))?.run_id ?? runs?.[0]?.run_id ?? null;
  const open = (runId: string) => {
    location.hash = schedulerHref(scheduler.name, runId);
    refresh();
  };
  return (
    <SchedulerFrame
      at={null}
      journal={null}
      error={error}
      onMove={() => undefined}
      loading={runs === null ? "Loading the runs …" : null}
    >
      {runs !== null && runs.length > 1 && <RunPicker runs={runs} shown={shown} onOpen={open} />}
      {shown !== null && (
        <RunPage
          key={shown}
          runId={shown}
          at={at}
          on={on}
          onMove={(n) => replaceAddress(schedulerHref(scheduler.name, shown, n, on))}
          onOther={open}
        />
      )}
      {runs !== null && shown === null && <p class="note">There are no runs yet. Start one below.</p>}
      {runs !== null && <StartRun open={shown === null} onStarted={open} />}
    </SchedulerFrame>
  );
}

interface RunPageProps {
  readonly runId: string;
  /** The record shown; `null` is live. */
  readonly at: number | null;
  /** The participant or line selected in the URL. */
  readonly on: string | null;
  readonly onMove: (at: number | null) => void;
  readonly onOther: (runId: string) => void;
}

function RunPage({ runId, at, on, onMove, onOther }: RunPageProps) {
  const equivalent = useSignal<string | null>(null);
  const live = useLiveRun(runId, equivalent.value);
  const equivalents = useEquivalents(live.status.value?.scenario_id);
  const [selection, choose] = useSelection(on, runId);
  const chosen = useMemo(() => parseSelection(selection), [selection]);
  const [status, network] = [live.status.value, live.network.value];
  const moment = useMoment(at, (n, signal) =>
    api.get("/api/v1/simulator/runs/{run_id}/past", { run_id: runId }, { at: n, equivalent: equivalent.value }, signal),
  );
  const past = moment.value.value;
  const pastNetwork = useMemo(() => (past === null ? null : networkOf(past.graph)), [past]);
  const present = useMemo(() => (status === null ? null : { status, network }), [status, network]);
  useExportedState(at === null ? present : past);
  if (status === null || network === null) {
    const { error } = live;
    return (
      <SchedulerFrame at={null} journal={null} error={error.value} onMove={() => undefined} loading="Loading the run …">
        {null}
      </SchedulerFrame>
    );
  }
  const shared = { network, chosen, onChoose: (next: Selection) => choose(formatSelection(next)) };
  const slider = (
    <RunSlider runId={runId} active={isActive(status.state)} at={at} busy={moment.busy.value} onMove={onMove} />
  );
  if (at !== null) {
    return (
      <>
        {slider}
        <PastBanner at={at} time={past === null ? null : tickLabel(past.tick_index)} onLive={() => onMove(null)} />
        {moment.error.value !== null && <ErrorNote error={moment.error.value} />}
        {past !== null && pastNetwork !== null && (
          <PastRunView past={past} name={status.scenario_id} {...shared} network={pastNetwork} />
        )}
      </>
    );
  }
  return (
    <>
      {slider}
      <RunControls
        status={status}
        details={live.details.value}
        onStatus={(next) => live.setStatus(next)}
        onOther={onOther}
      />
      {equivalents.length > 1 && (
        <Equivalents
          all={equivalents}
          shown={network.equivalent}
          onChange={(code) => {
            equivalent.value = code;
            choose(null);
          }}
        />
      )}
      <div class="credit-columns">
        <NetworkView name={status.scenario_id} highlights={live.highlights} {...shared} />
        <div class="credit-column">
          <ManualPayment runId={runId} active={isActive(status.state)} {...shared} />
          <Bottlenecks bottlenecks={live.bottlenecks.value} {...shared} />
        </div>
      </div>
      <Curves
        metrics={live.metrics.value}
        counts={live.counts.value}
        equivalent={network.equivalent}
        demand={live.details.value?.demand?.[network.equivalent] ?? null}
      />
      <WhatIf runId={runId} equivalent={network.equivalent} active={isActive(status.state)} />
      <RunEvents events={live.events.value} {...shared} />
    </>
  );
}

interface EquivalentsProps {
  readonly all: readonly string[];
  readonly shown: string;
  readonly onChange: (code: string) => void;
}

/** A switch between the equivalents of a network, which are shown one at a time. */
function Equivalents({ all, shown, onChange }: EquivalentsProps) {
  return (
    <div class="segmented equivalents" role="group" aria-label="Equivalent" data-testid="equivalents">
      {all.map((code) => (
        <button key={code} type="button" aria-pressed={code === shown} onClick={() => onChange(code)}>
          {code}
        </button>
      ))}
    </div>
  );
}

interface RunPickerProps {
  readonly runs: readonly RunStatusView[];
  readonly shown: string | null;
  readonly onOpen: (runId: string) => void;
}

function RunPicker({ runs, shown, onOpen }: RunPickerProps) {
  return (
    <label class="run-picker" for="credit-run">
      Run
      <select
        id="credit-run"
        value={shown ?? ""}
        onChange={(event) => onOpen(event.currentTarget.value)}
        data-testid="run-picker"
      >
        {runs.map(({ run_id, scenario_id, state, sim_time_ms }) => (
          <option key={run_id} value={run_id}>
            {run_id}: {scenario_id}, {state}, {simTime(sim_time_ms)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The visible runs, newest first, polled every few seconds. */
function useRuns() {
  const runs = useSignal<readonly RunStatusView[] | null>(null);
  const error = useSignal<ApiError | null>(null);
  const poll = async () => {
    try {
      runs.value = (await api.get("/api/v1/simulator/admin/runs", {})).items;
      error.value = null;
    } catch (thrown) {
      error.value = asApiError(thrown);
    }
  };
  useEffect(() => {
    void poll();
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void poll();
    }, POLL_MS);
    return () => clearInterval(timer);
  }, []);
  return { runs: runs.value, error: error.value, refresh: () => void poll() };
}

/** The equivalents of a scenario; empty when the scenario does not exist any more. */
function useEquivalents(scenario: string | undefined): readonly string[] {
  const codes = useSignal<readonly string[]>([]);
  useEffect(() => {
    if (scenario === undefined) return;
    api.get("/api/v1/simulator/scenarios/{scenario_id}", { scenario_id: scenario }).then(
      ({ equivalents }) => (codes.value = equivalents),
      () => (codes.value = []),
    );
  }, [scenario]);
  return codes.value;
}

/** Follow a run while the page shows it; the connection badge shows its stream. */
function useLiveRun(runId: string, equivalent: string | null): LiveRun {
  const live = useMemo(() => new LiveRun(api, runId, equivalent), [runId, equivalent]);
  useLiveStream(live);
  return live;
}

function isActive(state: string): boolean {
  return state !== "stopped" && state !== "error";
}
