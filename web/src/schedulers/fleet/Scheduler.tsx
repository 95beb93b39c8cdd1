/** The page of a fleet: the hall with its trucks, who waits for whom and why, tasks and alerts, at any tick of its
 * journal. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import { api } from "../../api/server";
import type { AlertNow, FleetNow, MapView } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { useExportedState } from "../../components/exports";
import type { Stop } from "../../components/player";
import { Readout, Readouts } from "../../components/Readout";
import { SchedulerFrame } from "../../components/SchedulerFrame";
import type { EngineSchedulerProps } from "../../registry";
import { integer } from "../../wording";
import { useEngine } from "../shared/engine_hooks";
import { useSelection } from "../shared/selection";
import type { Deed } from "./Deeds";
import { Deeds } from "./Deeds";
import { Drill } from "./Drill";
import "./fleet.css";
import { Hall } from "./Hall";
import { AlertTable, TaskTables, TruckTable } from "./Tables";
import { TruckPanel } from "./TruckPanel";
import { condition, fleetTime, isMoving, isStopped } from "./wording";

const ALERTS_EVERY_TICKS = 20;
const FOR_ALL: readonly Deed[] = [
  {
    type: "PAUSE_FLEET",
    title: "Pause all",
    question: "This stops every truck where it can, until they are let go on.",
  },
  { type: "RESUME_FLEET", title: "Let all go on", question: "This lets every truck drive again." },
];

export function FleetScheduler(props: EngineSchedulerProps) {
  const { engine, at, on } = props;
  const { live, past, busy, source, frame } = useEngine(props, fleetAt, fleetAt);
  const [chosen, choose] = useSelection(on, engine);
  const map = useMap(live.address);
  const shown = at === null ? live.state.value : past;
  useExportedState(shown);
  const ready = shown !== null && map.value.map !== null;
  const time = shown === null ? null : fleetTime(shown.now);
  const times = { source, busy, time, formatTime: ({ t }: Stop) => fleetTime(t ?? 0) };
  return (
    <SchedulerFrame {...frame} times={times} loading={ready ? null : "Loading the fleet …"}>
      {map.value.error !== null && <ErrorNote error={map.value.error} />}
      {shown !== null && map.value.map !== null && (
        <Fleet
          now={shown}
          map={map.value.map}
          address={live.address}
          live={at === null}
          busy={busy}
          chosen={chosen}
          onChoose={choose}
          onDone={() => void live.refresh()}
        />
      )}
    </SchedulerFrame>
  );
}

interface FleetProps {
  readonly now: FleetNow;
  readonly map: MapView;
  readonly address: EngineAddress;
  readonly live: boolean;
  readonly busy: boolean;
  readonly chosen: string | null;
  readonly onChoose: (robot: string | null) => void;
  readonly onDone: () => void;
}

function Fleet({ now, map, address, live, busy, chosen, onChoose, onDone }: FleetProps) {
  const truck = now.trucks.find(({ robot_id }) => robot_id === chosen);
  const alerts = useAlerts(address, live ? Math.floor(now.tick / ALERTS_EVERY_TICKS) : -1);
  return (
    <div class="fleet" aria-busy={busy}>
      <Figures now={now} />
      <div class="fleet-columns">
        <Hall map={map} now={now} live={live} chosen={chosen} onChoose={onChoose} />
        {truck !== undefined && (
          <TruckPanel
            truck={truck}
            map={map}
            now={now}
            address={address}
            live={live}
            onChoose={onChoose}
            onDone={onDone}
          />
        )}
      </div>
      <TruckTable now={now} chosen={chosen} onChoose={onChoose}>
        {live && <Deeds deeds={FOR_ALL} about={{}} of="fleet" address={address} onDone={onDone} />}
      </TruckTable>
      <TaskTables now={now} address={address} live={live} onDone={onDone} />
      {live && <AlertTable alerts={alerts} onChoose={onChoose} />}
      {live && <Drill now={now} simulated={map.simulated} address={address} onDone={onDone} />}
    </div>
  );
}

export function Figures({ now }: { readonly now: FleetNow }) {
  const count = (word: string) => now.trucks.filter((truck) => condition(truck) === word).length;
  const done = now.counts["DONE"] ?? 0;
  const ill = now.trucks.filter(isStopped).length;
  return (
    <Readouts>
      <Readout name="time" value={fleetTime(now.now)} unit={`tick ${integer(now.tick)}`} />
      <Readout name="driving" value={integer(now.trucks.filter(isMoving).length)} />
      <Readout name="waiting" value={integer(count("waits"))} />
      <Readout name="done" value={integer(done)} unit={done === 1 ? "task" : "tasks"} />
      {ill > 0 && <Readout name="stopped" value={integer(ill)} alarm />}
      {now.override && <Readout name="map" value="not LIVE, overridden" alarm />}
      {now.degraded !== null && <Readout name="journal" value={`not written: ${now.degraded}`} alarm />}
      {now.broken.length > 0 && <Readout name="invariants" value={now.broken.join(", ")} alarm />}
    </Readouts>
  );
}

interface Fetched {
  readonly map: MapView | null;
  readonly error: ApiError | null;
}

/** The map does not change while a fleet lives: it is asked for once. */
function useMap(address: EngineAddress) {
  const found = useSignal<Fetched>({ map: null, error: null });
  useEffect(() => {
    const abort = new AbortController();
    found.value = { map: null, error: null };
    api.get("/api/v1/fleet/{fleet}/map", { fleet: address.engine }, {}, abort.signal).then(
      (map) => {
        if (!abort.signal.aborted) found.value = { map, error: null };
      },
      (thrown: unknown) => {
        if (!abort.signal.aborted) found.value = { map: null, error: asApiError(thrown) };
      },
    );
    return () => abort.abort();
  }, [address]);
  return found;
}

/** Alerts, asked for now and then while the page is live. */
function useAlerts(address: EngineAddress, turn: number): readonly AlertNow[] {
  const found = useSignal<readonly AlertNow[]>([]);
  useEffect(() => {
    if (turn < 0) return;
    const abort = new AbortController();
    api.get("/api/v1/fleet/{fleet}/alerts", { fleet: address.engine }, {}, abort.signal).then(
      ({ alerts }) => {
        if (!abort.signal.aborted) found.value = alerts;
      },
      () => undefined,
    );
    return () => abort.abort();
  }, [address, turn]);
  return found.value;
}

function fleetAt(address: EngineAddress, at: number | null = null, signal?: AbortSignal): Promise<FleetNow> {
  return api.get("/api/v1/fleet/{fleet}/now", { fleet: address.engine }, { at }, signal);
}
