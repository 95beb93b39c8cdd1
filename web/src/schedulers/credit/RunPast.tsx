/** A run as it was: the slider over its journal, and its counts and network at a moment. */

import { signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { api } from "../../api/server";
import type { PastRun } from "../../api/types";
import { JournalSlider } from "../../components/JournalSlider";
import { Readout, Readouts } from "../../components/Readout";
import { integer } from "../../wording";
import { EngineJournal } from "../shared/journal_source";
import type { Light } from "./network/lit";
import type { Chosen, Network } from "./network/model";
import { NetworkView } from "./network/NetworkView";
import { simTime } from "./wording";

const LOOK_MS = 5_000;
/** Nothing lights up in what is over. */
const DARK = signal<readonly Light[]>([]);

export function tickWords(tick: number): string {
  return `tick ${integer(tick)}`;
}

interface RunSliderProps {
  readonly runId: string;
  /** Whether the run is open: the journal of one that has ended grows no more. */
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
      time={at === null ? tickWords(t) : null}
      formatTime={(stop) => tickWords(stop.t ?? 0)}
    />
  );
}

/** The first and the last record of the journal, looked up every few seconds while the run is open, and once after. */
function useEnds(source: EngineJournal, active: boolean) {
  const ends = useSignal<{ readonly first: number; readonly last: number; readonly t: number } | null>(null);
  useEffect(() => {
    const look = () =>
      source.sample(2).then(
        (stops) => {
          const [first, last] = [stops[0], stops.at(-1)];
          if (first !== undefined && last !== undefined) ends.value = { first: first.n, last: last.n, t: last.t ?? 0 };
        },
        // Of a run that has ended long ago there is no journal any more.
        () => {
          if (!active) ends.value = null;
        },
      );
    void look();
    if (!active) return;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void look();
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [source, active]);
  return ends.value;
}

interface PastRunViewProps {
  readonly then: PastRun;
  readonly name: string;
  readonly network: Network;
  readonly chosen: Chosen;
  readonly onChoose: (chosen: Chosen) => void;
}

export function PastRunView({ then, name, network, chosen, onChoose }: PastRunViewProps) {
  return (
    <div class="past-run" data-testid="past-run">
      <Readouts>
        <Readout name="time" value={simTime(then.sim_time_ms)} unit={tickWords(then.tick_index)} />
        <Readout name="tried" value={integer(then.attempts_total)} />
        <Readout name="made" value={integer(then.committed_total)} />
        <Readout name="refused" value={integer(then.rejected_total)} />
      </Readouts>
      <NetworkView name={name} network={network} chosen={chosen} onChoose={onChoose} lights={DARK} />
    </div>
  );
}
