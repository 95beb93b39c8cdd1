/** The page of a fleet: map, trucks with reasons, tasks and alerts, at any tick. */

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
import type { Action } from "./Actions";
import { Actions } from "./Actions";
import "./fleet.css";
import { Hall } from "./Hall";
import { Simulation } from "./Simulation";
import { AlertTable, TaskTables, TruckTable } from "./Tables";
import { TruckPanel } from "./TruckPanel";
import { condition, fleetTime, isMoving, isStopped } from "./wording";

const ALERTS_EVERY_TICKS = 20;
const FLEET_ACTIONS: readonly Action[] = [
  {
    type: "PAUSE_FLEET",
    title: "Pause all",
    question: "This pauses all trucks: each stops as soon as it can.",
  },
  { type: "RESUME_FLEET", title: "Resume all", question: "This lets all trucks drive again." },
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
        {live && <Actions actions={FLEET_ACTIONS} target={{}} targetName="fleet" address={address} onDone={onDone} />}
      </TruckTable>
      <TaskTables now={now} address={address} live={live} onDone={onDone} />
      {live && <AlertTable alerts={alerts} onChoose={onChoose} />}
      {live && <Simulation now={now} simulated={map.simulated} address={address} onDone={onDone} />}
    </div>
  );
}

export function Figures({ now }: { readonly now: FleetNow }) {
  const countIn = (state: string) => now.trucks.filter((truck) => condition(truck) === state).length;
  const done = now.counts["DONE"] ?? 0;
  const stopped = now.trucks.filter(isStopped).length;
  return (
    <Readouts>
      <Readout name="time" value={fleetTime(now.now)} unit={`tick ${integer(now.tick)}`} />
      <Readout name="driving" value={integer(now.trucks.filter(isMoving).length)} />
      <Readout name="waiting" value={integer(countIn("waits"))} />
      <Readout name="done" value={integer(done)} unit={done === 1 ? "task" : "tasks"} />
      {stopped > 0 && <Readout name="stopped" value={integer(stopped)} alarm />}
      {now.override && <Readout name="map" value="not LIVE, overridden" alarm />}
      {now.degraded !== null && <Readout name="journal" value={`not written: ${now.degraded}`} alarm />}
      {now.broken.length > 0 && <Readout name="invariants" value={now.broken.join(", ")} alarm />}
    </Readouts>
  );
}

interface MapData {
  readonly map: MapView | null;
  readonly error: ApiError | null;
}

/** Fetch the map once; it does not change while the fleet exists. */
function useMap(address: EngineAddress) {
  const data = useSignal<MapData>({ map: null, error: null });
  useEffect(() => {
    const abort = new AbortController();
    data.value = { map: null, error: null };
    api.get("/api/v1/fleet/{fleet}/map", { fleet: address.engine }, {}, abort.signal).then(
      (map) => {
        if (!abort.signal.aborted) data.value = { map, error: null };
      },
      (thrown: unknown) => {
        if (!abort.signal.aborted) data.value = { map: null, error: asApiError(thrown) };
      },
    );
    return () => abort.abort();
  }, [address]);
  return data;
}

/** The alerts, fetched again whenever `round` changes; nothing is fetched while it is negative. */
function useAlerts(address: EngineAddress, round: number): readonly AlertNow[] {
  const recent = useSignal<readonly AlertNow[]>([]);
  useEffect(() => {
    if (round < 0) return;
    const abort = new AbortController();
    api.get("/api/v1/fleet/{fleet}/alerts", { fleet: address.engine }, {}, abort.signal).then(
      ({ alerts }) => {
        if (!abort.signal.aborted) recent.value = alerts;
      },
      () => undefined,
    );
    return () => abort.abort();
  }, [address, round]);
  return recent.value;
}

function fleetAt(address: EngineAddress, at: number | null = null, signal?: AbortSignal): Promise<FleetNow> {
  return api.get("/api/v1/fleet/{fleet}/now", { fleet: address.engine }, { at }, signal);
}
