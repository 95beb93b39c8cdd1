/** The page of the credit scheduler: one run, its network alive, how it goes, where it sticks, and what one may do to it. */

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
import { ByHand } from "./ByHand";
import { Curves } from "./Curves";
import { Happened } from "./Happened";
import { LiveRun } from "./live_run";
import type { Chosen } from "./network/model";
import { chosenFrom, nameOfChosen, networkOf } from "./network/model";
import { NetworkView } from "./network/NetworkView";
import { RunControls } from "./RunControls";
import { PastRunView, RunSlider, tickWords } from "./RunPast";
import { StartRun } from "./StartRun";
import { Stuck } from "./Stuck";
import { WhatIf } from "./WhatIf";
import "./credit.css";
import { simTime } from "./wording";

const LOOK_MS = 5_000;

export function CreditScheduler({ scheduler, run, at, on }: RunsSchedulerProps) {
  const { runs, error, look } = useRuns();
  const shown = run ?? runs?.find(({ state }) => isActive(state))?.run_id ?? runs?.[0]?.run_id ?? null;
  const open = (runId: string) => {
    location.hash = schedulerHref(scheduler.name, runId);
    look();
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
        <OneRun
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

interface OneRunProps {
  readonly runId: string;
  /** The record looked at; `null` is live. */
  readonly at: number | null;
  /** Whom or which line the address points out. */
  readonly on: string | null;
  readonly onMove: (at: number | null) => void;
  readonly onOther: (runId: string) => void;
}

function OneRun({ runId, at, on, onMove, onOther }: OneRunProps) {
  const equivalent = useSignal<string | null>(null);
  const live = useLiveRun(runId, equivalent.value);
  const equivalents = useEquivalents(live.status.value?.scenario_id);
  const [named, choose] = useSelection(on, runId);
  const chosen = useMemo(() => chosenFrom(named), [named]);
  const [status, network] = [live.status.value, live.network.value];
  const past = useMoment(at, (n, signal) =>
    api.get("/api/v1/simulator/runs/{run_id}/past", { run_id: runId }, { at: n, equivalent: equivalent.value }, signal),
  );
  const then = past.value.value;
  const thenNetwork = useMemo(() => (then === null ? null : networkOf(then.graph)), [then]);
  const present = useMemo(() => (status === null ? null : { status, network }), [status, network]);
  useExportedState(at === null ? present : then);
  if (status === null || network === null) {
    const { error } = live;
    return (
      <SchedulerFrame at={null} journal={null} error={error.value} onMove={() => undefined} loading="Loading the run …">
        {null}
      </SchedulerFrame>
    );
  }
  const shared = { network, chosen, onChoose: (next: Chosen) => choose(nameOfChosen(next)) };
  const slider = (
    <RunSlider runId={runId} active={isActive(status.state)} at={at} busy={past.busy.value} onMove={onMove} />
  );
  if (at !== null) {
    return (
      <>
        {slider}
        <PastBanner at={at} time={then === null ? null : tickWords(then.tick_index)} onLive={() => onMove(null)} />
        {past.error.value !== null && <ErrorNote error={past.error.value} />}
        {then !== null && thenNetwork !== null && (
          <PastRunView then={then} name={status.scenario_id} {...shared} network={thenNetwork} />
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
        onStatus={(next) => live.take(next)}
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
        <NetworkView name={status.scenario_id} lights={live.lights} {...shared} />
        <div class="credit-column">
          <ByHand runId={runId} active={isActive(status.state)} {...shared} />
          <Stuck bottlenecks={live.bottlenecks.value} {...shared} />
        </div>
      </div>
      <Curves
        metrics={live.metrics.value}
        counts={live.counts.value}
        equivalent={network.equivalent}
        demand={live.details.value?.demand?.[network.equivalent] ?? null}
      />
      <WhatIf runId={runId} equivalent={network.equivalent} active={isActive(status.state)} />
      <Happened happened={live.happened.value} {...shared} />
    </>
  );
}

interface EquivalentsProps {
  readonly all: readonly string[];
  readonly shown: string;
  readonly onChange: (code: string) => void;
}

/** Networks of several equivalents are looked at one at a time. */
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
        {runs.map((one) => (
          <option key={one.run_id} value={one.run_id}>
            {one.run_id}: {one.scenario_id}, {one.state}, {simTime(one.sim_time_ms)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The runs that we may see, the newest first, looked up every few seconds. */
function useRuns() {
  const runs = useSignal<readonly RunStatusView[] | null>(null);
  const error = useSignal<ApiError | null>(null);
  const look = async () => {
    try {
      runs.value = (await api.get("/api/v1/simulator/admin/runs", {})).items;
      error.value = null;
    } catch (thrown) {
      error.value = asApiError(thrown);
    }
  };
  useEffect(() => {
    void look();
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void look();
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  return { runs: runs.value, error: error.value, look: () => void look() };
}

/** The equivalents of a scenario; none where the scenario is not known any more. */
function useEquivalents(scenario: string | undefined): readonly string[] {
  const found = useSignal<readonly string[]>([]);
  useEffect(() => {
    if (scenario === undefined) return;
    api.get("/api/v1/simulator/scenarios/{scenario_id}", { scenario_id: scenario }).then(
      ({ equivalents }) => (found.value = equivalents),
      () => (found.value = []),
    );
  }, [scenario]);
  return found.value;
}

/** The run followed as long as the page shows it; its stream is what the connection badge speaks of. */
function useLiveRun(runId: string, equivalent: string | null): LiveRun {
  const live = useMemo(() => new LiveRun(api, runId, equivalent), [runId, equivalent]);
  useLiveStream(live);
  return live;
}

function isActive(state: string): boolean {
  return state !== "stopped" && state !== "error";
}
