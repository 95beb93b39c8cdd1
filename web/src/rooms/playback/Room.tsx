/** The page of a player: what is on, what comes, what was, who gets how much and why, at any moment of its journal. */

import { useSignal } from "@preact/signals";

import type { EngineAddress, StateView } from "../../api/client";
import type { Json, JsonObject } from "../../api/json";
import { inOneLine } from "../../api/json";
import { api } from "../../api/server";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { TimeSlider } from "../../components/TimeSlider";
import type { RoomPageProps } from "../../registry";
import { replaceAddress, roomHref } from "../../route";
import { integer } from "../../wording";
import { PastBanner, Readout } from "../generic/Room";
import { Ask } from "../shared/Ask";
import type { Source } from "../shared/engine";
import { useLiveEngine, useMoment } from "../shared/following";
import { Screen } from "./Screen";
import { Pool, Shares } from "./Shares";
import { Strip } from "./Strip";
import { WhyItem } from "./WhyItem";
import "./playback.css";
import type { Diagnostic, Item, PlayerNow } from "./model";
import { duration, keyOf } from "./model";

interface Moment {
  readonly now: PlayerNow;
  /** When it was told, by the clock of this page. */
  readonly toldAt: number;
}

/** The player as its own route tells it, in the place of the engine's bare state. */
const source: Source = {
  journal: (address, start, limit, signal) => api.journal(address, start, limit, signal),
  state: async (address, at, signal): Promise<StateView> => {
    const now = await playerAt(address, at ?? null, signal);
    const { n, t, next_due, broken } = now;
    return { n, t, next_due, broken, state: { now, toldAt: Date.now() } as unknown as Json };
  },
};

export function PlaybackRoom({ room, engine, at }: RoomPageProps) {
  const live = useLiveEngine(room.name, engine, source);
  const past = useMoment(at, (n, signal) => playerAt(live.address, n, signal));
  const chosen = useSignal<Item | null>(null);
  const present = live.state.value;
  const told = present === null ? null : (present.state as unknown as Moment);
  const shown = at === null ? (told?.now ?? null) : past.value.value;
  const error = at === null ? live.error.value : past.error.value;
  const moveTo = (n: number | null) => replaceAddress(roomHref(room.name, engine, n));
  const command = async (wish: JsonObject) => {
    try {
      await api.command(live.address, wish);
    } finally {
      void live.refresh();
    }
  };
  return (
    <div class="room playback-room" data-testid="room" data-live={at === null}>
      {present !== null && (
        <TimeSlider
          first={live.extent.value.first}
          last={present.n}
          at={at}
          snapshots={live.extent.value.snapshots}
          onMove={moveTo}
        />
      )}
      {at !== null && <PastBanner at={at} onLive={() => moveTo(null)} />}
      {error !== null && <ErrorNote error={error} />}
      {shown === null && error === null && <p class="quiet">Fetching the player …</p>}
      {shown !== null && (
        <Player
          now={shown}
          toldAt={at === null ? (told?.toldAt ?? null) : null}
          at={at}
          busy={past.busy.value}
          address={live.address}
          chosen={chosen.value}
          onChoose={(item) => (chosen.value = item)}
          onCommand={command}
        />
      )}
      <Ask live={live} past={at !== null} />
    </div>
  );
}

interface PlayerProps {
  readonly now: PlayerNow;
  readonly toldAt: number | null;
  readonly at: number | null;
  readonly busy: boolean;
  readonly address: EngineAddress;
  readonly chosen: Item | null;
  readonly onChoose: (item: Item | null) => void;
  readonly onCommand: (command: JsonObject) => Promise<void>;
}

function Player({ now, toldAt, at, busy, address, chosen, onChoose, onCommand }: PlayerProps) {
  const asked = chosen ?? now.item;
  const key = asked === null ? null : keyOf(asked);
  return (
    <div class="player" aria-busy={busy}>
      <Readouts now={now} />
      <div class="player-columns">
        <Screen now={now} toldAt={toldAt} onCommand={onCommand} />
        <div class="player-column">
          <Shares exposure={now.exposure} />
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
      {now.diagnostics.length > 0 && <Troubles diagnostics={now.diagnostics} />}
    </div>
  );
}

function Readouts({ now }: { readonly now: PlayerNow }) {
  const shown = now.exposure.reduce((sum, one) => sum + one.shown, 0);
  return (
    <dl class="readouts" data-testid="readouts">
      <Readout name="time" value={duration(now.t)} />
      <Readout name="epoch" value={integer(now.epoch_id)} unit={now.last_reset ?? ""} />
      <Readout name="turns" value={integer(shown)} />
      <Readout name="dwell" value={duration(now.dwell_ms)} />
      <Readout name="record" value={integer(now.n)} />
      {now.broken.length > 0 && <Readout name="invariants" value={now.broken.join(", ")} alarm />}
    </dl>
  );
}

function Troubles({ diagnostics }: { readonly diagnostics: readonly Diagnostic[] }) {
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

const TROUBLES: readonly Column<{ readonly one: Diagnostic; readonly place: number }>[] = [
  { key: "code", title: "code", cell: ({ one }) => <code class="code-badge">{one.code}</code> },
  { key: "what", title: "what", wide: true, cell: ({ one }) => `${one.sentence} ${inOneLine(one.facts)}` },
];

function playerAt(address: EngineAddress, at: number | null, signal?: AbortSignal): Promise<PlayerNow> {
  return api.read<PlayerNow>(address, at === null ? "now" : `now?at=${at}`, signal);
}
