/** The generic page of an engine: state, events, why-questions, commands, and any moment of the journal. */

import { api } from "../../api/server";
import type { EngineView, StateView } from "../../api/types";
import { useExportedState } from "../../components/exports";
import { JsonTree } from "../../components/JsonTree";
import { Readout, Readouts } from "../../components/Readout";
import { SchedulerFrame } from "../../components/SchedulerFrame";
import type { EngineSchedulerProps } from "../../registry";
import { engineTime, integer } from "../../wording";
import { Ask } from "../shared/Ask";
import { EventTable } from "../shared/EventTable";
import { useEngine } from "../shared/engine_hooks";
import { JournalAround } from "../shared/JournalAround";

export function GenericScheduler(props: EngineSchedulerProps) {
  const { scheduler, engine, at } = props;
  const { live, past, busy, source, frame } = useEngine(
    props,
    (address) => api.state(address),
    (address, n, signal) => api.state(address, n, signal),
  );
  const shown = at === null ? live.state.value : past;
  useExportedState(shown);
  const summary = scheduler.engines.find((candidate) => candidate.name === engine);
  const formatTime = (t: number) => engineTime(t, summary?.time_unit ?? "");
  const time = shown === null ? null : formatTime(shown.t);
  return (
    <SchedulerFrame {...frame} times={{ source, busy, time, formatTime: ({ t }) => formatTime(t ?? 0) }} loading={null}>
      {shown !== null && <Figures view={shown} summary={summary} />}
      <div class="scheduler-columns">
        <section class="panel" aria-labelledby="now" aria-busy={busy} data-testid="panel-now">
          <h2 id="now">{at === null ? "Current state" : "Past state"}</h2>
          {shown !== null ? (
            <JsonTree value={shown.state} name="state" />
          ) : (
            frame.error === null && <p class="quiet">Loading the state …</p>
          )}
        </section>
        {at === null ? (
          <EventTable live={live} onShowRecord={frame.onMove} />
        ) : (
          <JournalAround address={live.address} at={at} onShowRecord={frame.onMove} />
        )}
      </div>
      <Ask live={live} at={at} />
    </SchedulerFrame>
  );
}

interface FiguresProps {
  readonly view: StateView;
  readonly summary: EngineView | undefined;
}

/** The plural of "tick"; other units are abbreviations. */
function plural(count: number, unit: string): string {
  return unit === "tick" && count !== 1 ? "ticks" : unit;
}

function Figures({ view, summary }: FiguresProps) {
  const unit = summary?.time_unit ?? "";
  const broken = view.broken.length > 0 ? view.broken.join(", ") : (summary?.broken ?? null);
  return (
    <Readouts>
      <Readout name="time" value={integer(view.t)} unit={plural(view.t, unit)} />
      <Readout name="record" value={integer(view.n)} />
      <Readout
        name="next due"
        value={view.next_due === null ? "nothing" : integer(view.next_due)}
        unit={view.next_due === null ? "" : plural(view.next_due, unit)}
      />
      <Readout name="invariants" value={broken === null ? "all hold" : broken} alarm={broken !== null} />
    </Readouts>
  );
}
