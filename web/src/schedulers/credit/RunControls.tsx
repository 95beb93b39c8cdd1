/** The state of a run and its controls: pause, resume, stop, continue, restart, intensity. */

import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";

import { api, canCommand } from "../../api/server";
import type { RunDetails, RunStatusView } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { Readout, Readouts } from "../../components/Readout";
import { integer } from "../../wording";
import { useWork } from "../shared/work";
import { simTime } from "./wording";

type Verb = "pause" | "resume" | "stop" | "restart";

interface RunControlsProps {
  readonly status: RunStatusView;
  readonly details: RunDetails | null;
  readonly onStatus: (status: RunStatusView) => void;
  /** Open the run that continues this one. */
  readonly onOther: (runId: string) => void;
}

const RUN = "/api/v1/simulator/runs/{run_id}";
/** The stop source of runs that the server stopped itself. */
const SERVER = "server";
const STATE_LABELS: Readonly<Record<string, string>> = {
  idle: "○ idle",
  running: "▶ running",
  paused: "⏸ paused",
  stopping: "◌ stopping",
  stopped: "■ stopped",
  error: "▲ failed",
};

export function RunControls({ status, details, onStatus, onOther }: RunControlsProps) {
  const { busy, error, work } = useWork();
  const path = { run_id: status.run_id };
  const call = (change: () => Promise<RunStatusView>) => work(async () => onStatus(await change()));
  const continueRun = () =>
    work(async () => {
      const { run_id } = await api.post(`${RUN}/continue`, path);
      if (run_id !== null) onOther(run_id);
    });
  const control = (verb: Verb) => call(() => api.post(`${RUN}/${verb}`, path));
  const isDisabled = busy.value || !canCommand.value;
  const ended = status.state === "stopped" || status.state === "error";
  return (
    <section class="panel run-controls" aria-label="Run" data-testid="run-controls" data-state={status.state}>
      <div class="run-head">
        <span class="run-state" data-state={status.state} data-testid="run-state">
          {STATE_LABELS[status.state] ?? status.state}
        </span>
        <span class="count">
          {status.scenario_id}
          {details !== null && `, seed ${details.seed}, tick ${integer(details.tick_index)}`}
        </span>
        <div class="run-buttons" role="group" aria-label="Run controls">
          {status.state === "paused" ? (
            <ControlButton name="resume" label="Resume" disabled={isDisabled} onPress={() => control("resume")} />
          ) : (
            <ControlButton name="pause" label="Pause" disabled={isDisabled || ended} onPress={() => control("pause")} />
          )}
          <ControlButton name="stop" label="Stop" disabled={isDisabled || ended} onPress={() => control("stop")} />
          {ended && (
            <ControlButton name="continue" label="Continue as a new run" disabled={isDisabled} onPress={continueRun} />
          )}
          <ControlButton name="restart" label="Restart" disabled={isDisabled} onPress={() => control("restart")} />
        </div>
        <Intensity
          value={status.intensity_percent}
          disabled={isDisabled || ended}
          onChange={(percent) => call(() => api.post(`${RUN}/intensity`, path, { intensity_percent: percent }))}
        />
      </div>
      <Readouts>
        <Readout name="time" value={simTime(status.sim_time_ms)} />
        <Readout name="attempts" value={integer(status.attempts_total)} />
        <Readout name="committed" value={integer(status.committed_total)} unit={share(status)} />
        <Readout name="refused" value={integer(status.rejected_total)} />
        {status.errors_total > 0 && <Readout name="errors" value={integer(status.errors_total)} alarm />}
      </Readouts>
      {status.state === "stopped" && status.stop_source === SERVER && (
        <p class="note" data-testid="run-stopped">
          Stopped by the server: {status.stop_reason ?? "no reason given"}.
        </p>
      )}
      {status.last_error !== null && (
        <p class="note note-error" data-testid="run-error">
          <code class="code-badge">{status.last_error.code}</code> {status.last_error.message}
        </p>
      )}
      {error.value !== null && <ErrorNote error={error.value} />}
    </section>
  );
}

interface ControlButtonProps {
  readonly name: Verb | "continue";
  readonly label: string;
  readonly disabled: boolean;
  readonly onPress: () => void;
}

function ControlButton({ name, label, disabled, onPress }: ControlButtonProps) {
  return (
    <button type="button" class="button" disabled={disabled} onClick={onPress} data-testid={`run-${name}`}>
      {label}
    </button>
  );
}

interface IntensityProps {
  readonly value: number;
  readonly disabled: boolean;
  readonly onChange: (percent: number) => void;
}

/** The intensity slider; the value is sent when the slider is released. */
function Intensity({ value, disabled, onChange }: IntensityProps) {
  const id = useId();
  const dragged = useSignal<number | null>(null);
  return (
    <div class="intensity">
      <label for={id}>Intensity</label>
      <input
        id={id}
        type="range"
        min={0}
        max={100}
        step={5}
        value={dragged.value ?? value}
        disabled={disabled}
        onInput={(event) => (dragged.value = Number(event.currentTarget.value))}
        onChange={(event) => {
          onChange(Number(event.currentTarget.value));
          dragged.value = null;
        }}
        data-testid="intensity"
      />
      <output for={id}>{dragged.value ?? value} %</output>
    </div>
  );
}

function share({ attempts_total, committed_total }: RunStatusView): string {
  return attempts_total === 0 ? "" : `${Math.round((100 * committed_total) / attempts_total)} %`;
}
