/** The page of a player: the current item with the reason, next and previous items, and shares, at any moment. */

import { useSignal } from "@preact/signals";

import type { EngineAddress } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { inOneLine } from "../../api/json";
import { api, canCommand } from "../../api/server";
import type { DiagnosticView, ItemView, PlayerNow } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { useExportedState } from "../../components/exports";
import type { Stop } from "../../components/player";
import { Readout, Readouts } from "../../components/Readout";
import { SchedulerFrame } from "../../components/SchedulerFrame";
import type { EngineSchedulerProps } from "../../registry";
import { integer } from "../../wording";
import { Ask } from "../shared/Ask";
import { useEngine } from "../shared/engine_hooks";
import { useSelection } from "../shared/selection";
import { Screen } from "./Screen";
import { Pool, Shares } from "./Shares";
import { Strip } from "./Strip";
import type { OnCommand } from "./use_command";
import { ViewerControls } from "./ViewerControls";
import { WhyItem } from "./WhyItem";
import "./playback.css";
import { duration, keyOf } from "./model";

interface Moment {
  readonly n: number;
  readonly now: PlayerNow;
  /** `Date.now()` of the response; `null` in the past. */
  readonly fetchedAt: number | null;
}

export function PlaybackScheduler(props: EngineSchedulerProps) {
  const { engine, at, on } = props;
  const { live, past, busy, source, frame } = useEngine(props, fetchNow, fetchMoment);
  const [chosenKey, chooseKey] = useSelection(on, engine);
  const selected = useSignal<ItemView | null>(null);
  const shown = at === null ? live.state.value : past;
  useExportedState(shown === null ? null : shown.now);
  const command = async (body: JsonObject) => {
    try {
      await api.command(live.address, body);
    } finally {
      void live.refresh();
    }
  };
  const time = shown === null ? null : duration(shown.now.t);
  const times = { source, busy, time, formatTime: ({ t }: Stop) => duration(t ?? 0) };
  return (
    <SchedulerFrame {...frame} times={times} loading={shown === null ? "Loading the player …" : null}>
      {shown !== null && (
        <Player
          now={shown.now}
          fetchedAt={shown.fetchedAt}
          at={at}
          busy={busy}
          address={live.address}
          chosen={findItem(shown.now, chosenKey, selected.value)}
          onChoose={(item) => {
            selected.value = item;
            chooseKey(item === null ? null : keyOf(item));
          }}
          onCommand={command}
        />
      )}
      <Ask live={live} at={at} />
    </SchedulerFrame>
  );
}

/** The item in the URL: the current, a next or a previous one, or the one last selected. */
function findItem(now: PlayerNow, key: string | null, selected: ItemView | null): ItemView | null {
  const known = [
    ...(now.item === null ? [] : [now.item]),
    ...now.coming,
    ...now.before,
    ...(selected === null ? [] : [selected]),
  ];
  return known.find((item) => keyOf(item) === key) ?? null;
}

interface PlayerProps {
  readonly now: PlayerNow;
  readonly fetchedAt: number | null;
  readonly at: number | null;
  readonly busy: boolean;
  readonly address: EngineAddress;
  readonly chosen: ItemView | null;
  readonly onChoose: (item: ItemView | null) => void;
  readonly onCommand: OnCommand;
}

function Player({ now, fetchedAt, at, busy, address, chosen, onChoose, onCommand }: PlayerProps) {
  const item = chosen ?? now.item;
  const key = item === null ? null : keyOf(item);
  const open = at === null && canCommand.value;
  return (
    <div class="player" aria-busy={busy}>
      <Figures now={now} />
      <div class="player-columns">
        <Screen now={now} fetchedAt={fetchedAt} onCommand={onCommand} />
        <div class="player-column">
          <Shares exposure={now.exposure} newShown={now.new_shown} open={open} onCommand={onCommand} />
          <Pool now={now} />
        </div>
      </div>
      <Strip
        name="coming"
        title="Up next"
        items={now.coming}
        empty="The next item is not chosen yet."
        chosen={key}
        onChoose={onChoose}
      />
      <Strip
        name="before"
        title="Previously shown"
        items={now.before}
        empty="Nothing else was shown in this epoch."
        chosen={key}
        onChoose={onChoose}
      />
      <WhyItem
        item={item}
        address={address}
        epoch={now.epoch_id}
        at={at}
        chosen={chosen !== null}
        onBack={() => onChoose(null)}
      />
      <ViewerControls item={item} now={now} open={open} onCommand={onCommand} />
      {now.diagnostics.length > 0 && <Diagnostics diagnostics={now.diagnostics} />}
    </div>
  );
}

function Figures({ now }: { readonly now: PlayerNow }) {
  const shown = now.exposure.reduce((sum, channel) => sum + channel.shown, 0);
  return (
    <Readouts>
      <Readout name="time" value={duration(now.t)} />
      <Readout name="epoch" value={integer(now.epoch_id)} unit={now.last_reset === null ? "" : `(${now.last_reset})`} />
      <Readout name="turns" value={integer(shown)} />
      <Readout name="dwell" value={duration(now.dwell_ms)} />
      {now.day_part !== null && <Readout name="day part" value={now.day_part} />}
      <Readout name="record" value={integer(now.n)} />
      {now.broken.length > 0 && <Readout name="invariants" value={now.broken.join(", ")} alarm />}
    </Readouts>
  );
}

function Diagnostics({ diagnostics }: { readonly diagnostics: readonly DiagnosticView[] }) {
  return (
    <section class="panel" aria-labelledby="diagnostics" data-testid="panel-diagnostics">
      <h2 id="diagnostics">
        Diagnostics <span class="count">{integer(diagnostics.length)}</span>
      </h2>
      <DataTable
        caption="Diagnostics, newest first"
        columns={DIAGNOSTIC_COLUMNS}
        rows={diagnostics.map((diagnostic, index) => ({ diagnostic, index })).reverse()}
        rowKey={({ index }) => index}
        empty=""
        testId="diagnostics"
      />
    </section>
  );
}

const DIAGNOSTIC_COLUMNS: readonly Column<{ readonly diagnostic: DiagnosticView; readonly index: number }>[] = [
  { key: "code", title: "code", cell: ({ diagnostic }) => <code class="code-badge">{diagnostic.code}</code> },
  {
    key: "message",
    title: "message",
    wide: true,
    cell: ({ diagnostic: { sentence, facts } }) => `${sentence} ${inOneLine(facts)}`,
  },
];

async function fetchNow(address: EngineAddress): Promise<Moment> {
  const now = await fetchPlayer(address);
  return { n: now.n, now, fetchedAt: Date.now() };
}

async function fetchMoment(address: EngineAddress, n: number, signal: AbortSignal): Promise<Moment> {
  return { n, now: await fetchPlayer(address, n, signal), fetchedAt: null };
}

function fetchPlayer(address: EngineAddress, at: number | null = null, signal?: AbortSignal): Promise<PlayerNow> {
  return api.get("/api/v1/playback/{player}/now", { player: address.engine }, { at }, signal);
}
