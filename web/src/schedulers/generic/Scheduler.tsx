/** The page that suits every engine: what is happening now, what came, why, and any moment of the journal. */

import { api } from "../../api/server";
import type { EngineView, StateView } from "../../api/types";
import { useShown } from "../../components/exports";
import { JsonTree } from "../../components/JsonTree";
import { Readout, Readouts } from "../../components/Readout";
import { SchedulerFrame } from "../../components/SchedulerFrame";
import type { EngineSchedulerProps } from "../../registry";
import { engineTime, integer } from "../../wording";
import { Ask } from "../shared/Ask";
import { Came } from "../shared/Came";
import { useFollowing } from "../shared/following";
import { JournalAround } from "../shared/JournalAround";

export function GenericScheduler(props: EngineSchedulerProps) {
  const { scheduler, engine, at } = props;
  const { live, past, busy, source, frame } = useFollowing(
    props,
    (address) => api.state(address),
    (address, n, signal) => api.state(address, n, signal),
  );
  const shown = at === null ? live.state.value : past;
  useShown(shown);
  const summary = scheduler.engines.find((candidate) => candidate.name === engine);
  const tell = (t: number) => engineTime(t, summary?.time_unit ?? "");
  const time = shown === null ? null : tell(shown.t);
  return (
    <SchedulerFrame {...frame} times={{ source, busy, time, tell: ({ t }) => tell(t ?? 0) }} fetching={null}>
      {shown !== null && <Figures view={shown} summary={summary} />}
      <div class="scheduler-columns">
        <section class="panel" aria-labelledby="now" aria-busy={busy} data-testid="panel-now">
          <h2 id="now">{at === null ? "What is happening" : "What was"}</h2>
          {shown !== null ? (
            <JsonTree value={shown.state} name="state" />
          ) : (
            frame.error === null && <p class="quiet">Fetching the state …</p>
          )}
        </section>
        {at === null ? (
          <Came live={live} onLook={frame.onMove} />
        ) : (
          <JournalAround address={live.address} at={at} onLook={frame.onMove} />
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

/** Ticks where there is not one of them; other units are abbreviations. */
function several(count: number, unit: string): string {
  return unit === "tick" && count !== 1 ? "ticks" : unit;
}

function Figures({ view, summary }: FiguresProps) {
  const unit = summary?.time_unit ?? "";
  const broken = view.broken.length > 0 ? view.broken.join(", ") : (summary?.broken ?? null);
  return (
    <Readouts>
      <Readout name="time" value={integer(view.t)} unit={several(view.t, unit)} />
      <Readout name="record" value={integer(view.n)} />
      <Readout
        name="next due"
        value={view.next_due === null ? "nothing" : integer(view.next_due)}
        unit={view.next_due === null ? "" : several(view.next_due, unit)}
      />
      <Readout name="invariants" value={broken === null ? "all hold" : broken} alarm={broken !== null} />
    </Readouts>
  );
}
