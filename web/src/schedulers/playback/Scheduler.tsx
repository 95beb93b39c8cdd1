/** The page of a player: what is on, what comes, what was, who gets how much and why, at any moment of its journal. */

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
import type { OnCommand } from "./sending";
import { WhyItem } from "./WhyItem";
import { Wishes } from "./Wishes";
import "./playback.css";
import { duration, keyOf } from "./model";

interface Moment {
  readonly n: number;
  readonly now: PlayerNow;
  /** When it was told, by the clock of this page; null in the past, where time stands. */
  readonly toldAt: number | null;
}

export function PlaybackScheduler(props: EngineSchedulerProps) {
  const { engine, at, on } = props;
  const { live, past, busy, source, frame } = useEngine(props, presentOf, momentAt);
  const [chosenKey, chooseKey] = useSelection(on, engine);
  const held = useSignal<ItemView | null>(null);
  const shown = at === null ? live.state.value : past;
  useExportedState(shown === null ? null : shown.now);
  const command = async (wish: JsonObject) => {
    try {
      await api.command(live.address, wish);
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
          toldAt={shown.toldAt}
          at={at}
          busy={busy}
          address={live.address}
          chosen={chosenIn(shown.now, chosenKey, held.value)}
          onChoose={(item) => {
            held.value = item;
            chooseKey(item === null ? null : keyOf(item));
          }}
          onCommand={command}
        />
      )}
      <Ask live={live} at={at} />
    </SchedulerFrame>
  );
}

/** The item that the address names, where it is on, comes or was, or is held since it was chosen. */
function chosenIn(now: PlayerNow, key: string | null, held: ItemView | null): ItemView | null {
  const known = [
    ...(now.item === null ? [] : [now.item]),
    ...now.coming,
    ...now.before,
    ...(held === null ? [] : [held]),
  ];
  return known.find((item) => keyOf(item) === key) ?? null;
}

interface PlayerProps {
  readonly now: PlayerNow;
  readonly toldAt: number | null;
  readonly at: number | null;
  readonly busy: boolean;
  readonly address: EngineAddress;
  readonly chosen: ItemView | null;
  readonly onChoose: (item: ItemView | null) => void;
  readonly onCommand: OnCommand;
}

function Player({ now, toldAt, at, busy, address, chosen, onChoose, onCommand }: PlayerProps) {
  const asked = chosen ?? now.item;
  const key = asked === null ? null : keyOf(asked);
  const open = at === null && canCommand.value;
  return (
    <div class="player" aria-busy={busy}>
      <Figures now={now} />
      <div class="player-columns">
        <Screen now={now} toldAt={toldAt} onCommand={onCommand} />
        <div class="player-column">
          <Shares exposure={now.exposure} newShown={now.new_shown} open={open} onCommand={onCommand} />
          <Pool now={now} />
        </div>
      </div>
      <Strip
        name="coming"
        title={at === null ? "What comes" : "What was to come"}
        items={now.coming}
        empty="Nothing is chosen yet; the next item is."
        chosen={key}
        onChoose={onChoose}
      />
      <Strip
        name="before"
        title="What was"
        items={now.before}
        empty="Nothing was on before in this epoch."
        chosen={key}
        onChoose={onChoose}
      />
      <WhyItem
        item={asked}
        address={address}
        epoch={now.epoch_id}
        at={at}
        chosen={chosen !== null}
        onBack={() => onChoose(null)}
      />
      <Wishes item={asked} now={now} open={open} onCommand={onCommand} />
      {now.diagnostics.length > 0 && <Troubles diagnostics={now.diagnostics} />}
    </div>
  );
}

function Figures({ now }: { readonly now: PlayerNow }) {
  const shown = now.exposure.reduce((sum, one) => sum + one.shown, 0);
  return (
    <Readouts>
      <Readout name="time" value={duration(now.t)} />
      <Readout name="epoch" value={integer(now.epoch_id)} unit={now.last_reset ?? ""} />
      <Readout name="turns" value={integer(shown)} />
      <Readout name="dwell" value={duration(now.dwell_ms)} />
      {now.day_part !== null && <Readout name="part of the day" value={now.day_part} />}
      <Readout name="record" value={integer(now.n)} />
      {now.broken.length > 0 && <Readout name="invariants" value={now.broken.join(", ")} alarm />}
    </Readouts>
  );
}

function Troubles({ diagnostics }: { readonly diagnostics: readonly DiagnosticView[] }) {
  return (
    <section class="panel" aria-labelledby="troubles" data-testid="panel-troubles">
      <h2 id="troubles">
        What went wrong <span class="count">{integer(diagnostics.length)}</span>
      </h2>
      <DataTable
        caption="What went wrong and stopped nothing, newest first"
        columns={TROUBLES}
        rows={diagnostics.map((one, place) => ({ one, place })).reverse()}
        rowKey={({ place }) => place}
        empty=""
        testId="troubles"
      />
    </section>
  );
}

const TROUBLES: readonly Column<{ readonly one: DiagnosticView; readonly place: number }>[] = [
  { key: "code", title: "code", cell: ({ one }) => <code class="code-badge">{one.code}</code> },
  { key: "what", title: "what", wide: true, cell: ({ one }) => `${one.sentence} ${inOneLine(one.facts)}` },
];

async function presentOf(address: EngineAddress): Promise<Moment> {
  const now = await playerAt(address);
  return { n: now.n, now, toldAt: Date.now() };
}

async function momentAt(address: EngineAddress, n: number, signal: AbortSignal): Promise<Moment> {
  return { n, now: await playerAt(address, n, signal), toldAt: null };
}

function playerAt(address: EngineAddress, at: number | null = null, signal?: AbortSignal): Promise<PlayerNow> {
  return api.get("/api/v1/playback/{player}/now", { player: address.engine }, { at }, signal);
}
