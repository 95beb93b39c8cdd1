/** Where a run stands, and the buttons that steer it: pause, go on, stop, begin again, how much is paid. */

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
  /** A run that goes on where this one has ended. */
  readonly onOther: (runId: string) => void;
}

const RUN = "/api/v1/simulator/runs/{run_id}";
/** The source of a stop that no caller asked for. */
const SERVER = "server";
const WORDS: Readonly<Record<string, string>> = {
  idle: "○ idle",
  running: "▶ running",
  paused: "⏸ paused",
  stopping: "◌ stopping",
  stopped: "■ stopped",
  error: "▲ failed",
};

export function RunControls({ status, details, onStatus, onOther }: RunControlsProps) {
  const { busy, error, work } = useWork();
  const names = { run_id: status.run_id };
  const call = (change: () => Promise<RunStatusView>) => work(async () => onStatus(await change()));
  const goOn = () =>
    work(async () => {
      const { run_id } = await api.post(`${RUN}/continue`, names);
      if (run_id !== null) onOther(run_id);
    });
  const steer = (verb: Verb) => call(() => api.post(`${RUN}/${verb}`, names));
  const closed = busy.value || !canCommand.value;
  const ended = status.state === "stopped" || status.state === "error";
  return (
    <section class="panel run-controls" aria-label="The run" data-testid="run-controls" data-state={status.state}>
      <div class="run-head">
        <span class="run-state" data-state={status.state} data-testid="run-state">
          {WORDS[status.state] ?? status.state}
        </span>
        <span class="count">
          {status.scenario_id}
          {details !== null && `, seed ${details.seed}, tick ${integer(details.tick_index)}`}
        </span>
        <div class="run-buttons" role="group" aria-label="Steer the run">
          {status.state === "paused" ? (
            <Steer name="resume" word="Go on" closed={closed} onPress={() => steer("resume")} />
          ) : (
            <Steer name="pause" word="Pause" closed={closed || ended} onPress={() => steer("pause")} />
          )}
          <Steer name="stop" word="Stop" closed={closed || ended} onPress={() => steer("stop")} />
          {ended && <Steer name="continue" word="Go on as a new run" closed={closed} onPress={goOn} />}
          <Steer name="restart" word="Begin again" closed={closed} onPress={() => steer("restart")} />
        </div>
        <Intensity
          value={status.intensity_percent}
          closed={closed || ended}
          onChange={(percent) => call(() => api.post(`${RUN}/intensity`, names, { intensity_percent: percent }))}
        />
      </div>
      <Readouts>
        <Readout name="time" value={simTime(status.sim_time_ms)} />
        <Readout name="tried" value={integer(status.attempts_total)} />
        <Readout name="made" value={integer(status.committed_total)} unit={share(status)} />
        <Readout name="refused" value={integer(status.rejected_total)} />
        {status.errors_total > 0 && <Readout name="errors" value={integer(status.errors_total)} alarm />}
      </Readouts>
      {status.state === "stopped" && status.stop_source === SERVER && (
        <p class="note" data-testid="run-stopped">
          Stopped by the server: {status.stop_reason ?? "it does not say why"}.
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

interface SteerProps {
  readonly name: Verb | "continue";
  readonly word: string;
  readonly closed: boolean;
  readonly onPress: () => void;
}

function Steer({ name, word, closed, onPress }: SteerProps) {
  return (
    <button type="button" class="button" disabled={closed} onClick={onPress} data-testid={`run-${name}`}>
      {word}
    </button>
  );
}

interface IntensityProps {
  readonly value: number;
  readonly closed: boolean;
  readonly onChange: (percent: number) => void;
}

/** What is being dragged is shown at once and sent when it is let go. */
function Intensity({ value, closed, onChange }: IntensityProps) {
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
        disabled={closed}
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
