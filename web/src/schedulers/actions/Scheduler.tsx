/** The page of a world: timeline, waiting actions with reasons, history, locks and resources, at any moment. */

import { useMemo } from "preact/hooks";

import type { EngineAddress } from "../../api/client";
import { api } from "../../api/server";
import type { WorldNow } from "../../api/types";
import { useExportedState } from "../../components/exports";
import type { Stop } from "../../components/player";
import { Readout, Readouts } from "../../components/Readout";
import { SchedulerFrame } from "../../components/SchedulerFrame";
import type { EngineSchedulerProps } from "../../registry";
import { integer } from "../../wording";
import { Ask } from "../shared/Ask";
import { gapSentence } from "../shared/EventTable";
import type { EventRow } from "../shared/engine";
import { useEngine } from "../shared/engine_hooks";
import { useSelection } from "../shared/selection";
import { Holdings } from "./Holdings";
import { Timeline } from "./Timeline";
import { Waiting } from "./Waiting";
import { WorldHistory } from "./WorldHistory";
import "./actions.css";
import { barsOf } from "./bars";
import type { WorldEvent } from "./model";
import { Clock, readEvent } from "./model";
import { verdictOf } from "./verdict";

const RECORDS_BACK = 400;
const MAX_EVENTS = 1000;
const WEEK_MINUTES = 7 * 24 * 60;

interface Moment {
  readonly now: WorldNow;
  readonly events: readonly WorldEvent[];
  /** A sentence for each gap of missed events. */
  readonly gaps: readonly string[];
}

export function ActionsScheduler(props: EngineSchedulerProps) {
  const { engine, at, on } = props;
  const { live, past, busy, source, frame } = useEngine(props, worldAt, momentAt);
  const [chosen, choose] = useSelection(on, engine);
  const now = live.state.value;
  const recent = useMemo(() => splitRows(live.events.value), [live.events.value]);
  const present: Moment | null = now === null ? null : { now, ...recent };
  const shown = at === null ? present : past;
  useExportedState(shown);
  const startAt = shown?.now.start_at ?? now?.start_at ?? "";
  const clock = useMemo(() => new Clock(startAt), [startAt]);
  const time = shown === null ? null : clock.moment(shown.now.t);
  // A weekday is ambiguous beyond one week.
  const long = (now?.t ?? 0) > WEEK_MINUTES;
  const formatTime = ({ t }: Stop) => (startAt === "" ? "" : long ? clock.day(t ?? 0) : clock.moment(t ?? 0));
  const times = { source, busy, time, formatTime };
  return (
    <SchedulerFrame {...frame} times={times} loading={shown === null ? "Loading the world …" : null}>
      {shown !== null && (
        <World
          moment={shown}
          address={live.address}
          live={at === null}
          busy={busy}
          chosen={chosen}
          onChoose={choose}
          onShowRecord={frame.onMove}
        />
      )}
      <Ask live={live} at={at} verdict={verdictOf} />
    </SchedulerFrame>
  );
}

interface WorldProps {
  readonly moment: Moment;
  readonly address: EngineAddress;
  readonly live: boolean;
  readonly busy: boolean;
  readonly chosen: string | null;
  readonly onChoose: (action: string | null) => void;
  readonly onShowRecord: (n: number) => void;
}

function World({ moment: { now, events, gaps }, address, live, busy, chosen, onChoose, onShowRecord }: WorldProps) {
  const clock = useMemo(() => new Clock(now.start_at), [now.start_at]);
  const bars = useMemo(() => barsOf(events, now), [events, now]);
  return (
    <div class="world" aria-busy={busy}>
      <Figures now={now} clock={clock} />
      <Timeline bars={bars} now={now} live={live} chosen={chosen} onChoose={onChoose} />
      <Waiting now={now} clock={clock} address={address} live={live} chosen={chosen} onChoose={onChoose} />
      <div class="world-columns">
        <WorldHistory
          events={events}
          gaps={gaps}
          now={now}
          clock={clock}
          onShowRecord={onShowRecord}
          onChoose={onChoose}
        />
        <Holdings now={now} clock={clock} onChoose={onChoose} />
      </div>
    </div>
  );
}

function Figures({ now, clock }: { readonly now: WorldNow; readonly clock: Clock }) {
  const { t, n, epoch, counts, next_due, broken } = now;
  const waiting = ["waiting", "held", "suspended"].reduce((sum, stage) => sum + (counts[stage] ?? 0), 0);
  return (
    <Readouts>
      <Readout name="time" value={clock.time(t)} unit={clock.day(t)} />
      <Readout name="epoch" value={integer(epoch.index)} unit={`slot ${epoch.slot}`} />
      <Readout name="running" value={integer(counts["running"] ?? 0)} />
      <Readout name="waiting" value={integer(waiting)} />
      <Readout name="next due" value={next_due === null ? "nothing" : clock.time(next_due)} />
      <Readout name="record" value={integer(n)} />
      {broken.length > 0 && <Readout name="invariants" value={broken.join(", ")} alarm />}
    </Readouts>
  );
}

async function momentAt(address: EngineAddress, n: number, signal: AbortSignal): Promise<Moment> {
  const begin = n - RECORDS_BACK;
  const query = { upto: n, limit: MAX_EVENTS, after: begin > 0 ? `${begin}.0` : null };
  const [now, page] = await Promise.all([
    worldAt(address, n, signal),
    api.get("/api/v1/actions/{world}/events", { world: address.engine }, query, signal),
  ]);
  const gaps = page.gap === null ? [] : [gapSentence({ kind: "gap", key: 0, gap: page.gap })];
  return { now, events: page.events.map(readEvent), gaps };
}

function worldAt(address: EngineAddress, at: number | null = null, signal?: AbortSignal): Promise<WorldNow> {
  return api.get("/api/v1/actions/{world}/now", { world: address.engine }, { at }, signal);
}

/** Split the rows of the stream into events, oldest first, and sentences about gaps. */
function splitRows(rows: readonly EventRow[]): Omit<Moment, "now"> {
  return {
    events: rows.flatMap((row) => (row.kind === "event" ? [readEvent({ id: row.id, event: row.body })] : [])).reverse(),
    gaps: rows.flatMap((row) => (row.kind === "gap" ? [gapSentence(row)] : [])),
  };
}
