/** A run at a past moment: the slider over its journal, its counts and its network. */

import { signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { api } from "../../api/server";
import type { PastRun } from "../../api/types";
import { JournalSlider } from "../../components/JournalSlider";
import { Readout, Readouts } from "../../components/Readout";
import { integer } from "../../wording";
import { EngineJournal } from "../shared/journal_source";
import type { Highlight } from "./network/highlights";
import type { Network, Selection } from "./network/model";
import { NetworkView } from "./network/NetworkView";
import { simTime } from "./wording";

const POLL_MS = 5_000;
const NO_HIGHLIGHTS = signal<readonly Highlight[]>([]);

export function tickLabel(tick: number): string {
  return `tick ${integer(tick)}`;
}

interface RunSliderProps {
  readonly runId: string;
  /** Whether the journal of the run can still grow. */
  readonly active: boolean;
  readonly at: number | null;
  readonly busy: boolean;
  readonly onMove: (at: number | null) => void;
}

export function RunSlider({ runId, active, at, busy, onMove }: RunSliderProps) {
  const source = useMemo(
    () => new EngineJournal(api, { base: `/api/v1/simulator/runs/${encodeURIComponent(runId)}` }),
    [runId],
  );
  const ends = useEnds(source, active);
  if (ends === null) return null;
  const { first, last, t } = ends;
  return (
    <JournalSlider
      first={first}
      last={last}
      at={at}
      snapshots={[]}
      onMove={onMove}
      source={source}
      busy={busy}
      time={at === null ? tickLabel(t) : null}
      formatTime={(stop) => tickLabel(stop.t ?? 0)}
    />
  );
}

/** The first and last record of the journal, polled while the run is active. */
function useEnds(source: EngineJournal, active: boolean) {
  const ends = useSignal<{ readonly first: number; readonly last: number; readonly t: number } | null>(null);
  useEffect(() => {
    const poll = () =>
      source.sample(2).then(
        (stops) => {
          const [first, last] = [stops[0], stops.at(-1)];
          if (first !== undefined && last !== undefined) ends.value = { first: first.n, last: last.n, t: last.t ?? 0 };
        },
        // The journals of old runs are deleted.
        () => {
          if (!active) ends.value = null;
        },
      );
    void poll();
    if (!active) return;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void poll();
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [source, active]);
  return ends.value;
}

interface PastRunViewProps {
  readonly past: PastRun;
  readonly name: string;
  readonly network: Network;
  readonly chosen: Selection;
  readonly onChoose: (chosen: Selection) => void;
}

export function PastRunView({ past, name, network, chosen, onChoose }: PastRunViewProps) {
  return (
    <div class="past-run" data-testid="past-run">
      <Readouts>
        <Readout name="time" value={simTime(past.sim_time_ms)} unit={tickLabel(past.tick_index)} />
        <Readout name="attempts" value={integer(past.attempts_total)} />
        <Readout name="committed" value={integer(past.committed_total)} />
        <Readout name="refused" value={integer(past.rejected_total)} />
      </Readouts>
      <NetworkView name={name} network={network} chosen={chosen} onChoose={onChoose} highlights={NO_HIGHLIGHTS} />
    </div>
  );
}
