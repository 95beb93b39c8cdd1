/** Fetches the glance of every scheduler whenever the list of schedulers is refreshed.
 *
 * A scheduler that does not answer keeps its last glance; the connection badge shows a lost server.
 */

import type { ReadonlySignal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { EngineAddress } from "../../api/client";
import { api } from "../../api/server";
import type { AlertNow, SchedulerList, SchedulerView } from "../../api/types";
import { engineTime, integer } from "../../wording";
import type { Glance } from "./glance";
import {
  actionsGlance,
  creditGlance,
  fleetGlance,
  jobsGlance,
  mergeFigures,
  playbackGlance,
  recentAlerts,
} from "./glance";

const EMPTY: Glance = { figures: [], needs: [] };
const MAX_CONCURRENT = 8;
const DEAD_LETTERS_SHOWN = 3;

type FetchGlance = (scheduler: SchedulerView, signal: AbortSignal) => Promise<Glance>;

const FETCHERS: Readonly<Record<string, FetchGlance>> = {
  actions: eachEngine((world, signal) =>
    api.get("/api/v1/actions/{world}/now", { world }, {}, signal).then((now) => actionsGlance(world, now)),
  ),
  fleet: eachEngine(async (fleet, signal) => {
    const [now, { alerts }] = await Promise.all([
      api.get("/api/v1/fleet/{fleet}/now", { fleet }, {}, signal),
      api.get("/api/v1/fleet/{fleet}/alerts", { fleet }, {}, signal),
    ]);
    const records = await recordsOf(fleet, recentAlerts(now.now, alerts, new Set(), now.trucks));
    return fleetGlance(fleet, now, alerts, (alert) => records.get(alert) ?? null);
  }),
  playback: eachEngine((player, signal) =>
    api.get("/api/v1/playback/{player}/now", { player }, {}, signal).then((now) => playbackGlance(player, now)),
  ),
  jobs: async (_, signal) => {
    const [metrics, dead, governance] = await Promise.all([
      api.get("/scheduler/metrics", {}, {}, signal),
      api.get("/scheduler/jobs", {}, { status: "dead_letter", limit: DEAD_LETTERS_SHOWN }, signal),
      api.get("/scheduler/governance", {}, {}, signal),
    ]);
    return jobsGlance(metrics, dead.jobs, governance.for_a_person);
  },
  credit: async (_, signal) => creditGlance((await api.get("/api/v1/simulator/admin/runs", {}, {}, signal)).items),
};

/** The journal records of alerts by fleet and tick; they never change and are fetched once. */
const recordCache = new Map<string, number>();

async function recordsOf(fleet: string, alerts: readonly AlertNow[]): Promise<ReadonlyMap<AlertNow, number>> {
  const pairs = await Promise.all(
    alerts.map(async (alert) => {
      const key = `${fleet} ${alert.tick}`;
      const record = recordCache.get(key) ?? (await recordAt(fleet, alert.now));
      if (record !== null) recordCache.set(key, record);
      return [alert, record] as const;
    }),
  );
  return new Map(pairs.flatMap(([alert, record]) => (record === null ? [] : [[alert, record] as const])));
}

async function recordAt(fleet: string, t: number): Promise<number | null> {
  const { moment } = await api.moment(new EngineAddress("fleet", fleet), { t });
  return moment?.n ?? null;
}

/** The glances of all schedulers by name. */
export function useGlances(list: SchedulerList | null): ReadonlySignal<ReadonlyMap<string, Glance>> {
  const glances = useSignal<ReadonlyMap<string, Glance>>(new Map());
  useEffect(() => {
    if (list === null) return;
    const abort = new AbortController();
    for (const scheduler of list.schedulers) {
      fetchGlance(scheduler, abort.signal).then(
        (glance) => {
          if (!abort.signal.aborted) glances.value = new Map([...glances.value, [scheduler.name, glance]]);
        },
        () => undefined,
      );
    }
    return () => abort.abort();
  }, [list]);
  return glances;
}

function fetchGlance(scheduler: SchedulerView, signal: AbortSignal): Promise<Glance> {
  if (scheduler.state !== "ready") return Promise.resolve(EMPTY);
  const fetcher = Object.hasOwn(FETCHERS, scheduler.name) ? FETCHERS[scheduler.name] : undefined;
  return fetcher === undefined ? Promise.resolve(plainGlance(scheduler)) : fetcher(scheduler, signal);
}

/** The merged glance of all engines. Each call polls the first engine and the ones polled longest ago, at most
 * `MAX_CONCURRENT` in all; the glances of the others are remembered. */
export function eachEngine(fetchEngine: (engine: string, signal: AbortSignal) => Promise<Glance>): FetchGlance {
  const seen = new Map<string, Glance>(); // polled longest ago first
  return async ({ engines }, signal) => {
    const working = engines.flatMap(({ name, broken }) => (broken === null ? [name] : []));
    const [first, ...others] = working;
    if (first === undefined) return EMPTY;
    const queue = [
      ...others.filter((name) => !seen.has(name)),
      ...[...seen.keys()].filter((name) => others.includes(name)),
    ];
    const polled = [first, ...queue.slice(0, MAX_CONCURRENT - 1)];
    const glances = await Promise.all(polled.map(async (name) => [name, await fetchEngine(name, signal)] as const));
    for (const [name, glance] of glances) {
      seen.delete(name);
      seen.set(name, glance);
    }
    for (const name of [...seen.keys()].filter((engine) => !working.includes(engine))) seen.delete(name);
    const known = working.flatMap((name) => seen.get(name) ?? []);
    return { figures: mergeFigures(known), needs: known.flatMap(({ needs }) => needs) };
  };
}

/** The glance of a scheduler without a fetcher of its own. */
export function plainGlance({ engines }: SchedulerView): Glance {
  const [first] = engines;
  if (first === undefined) return EMPTY;
  return {
    figures: [
      { name: "time", value: engineTime(first.now, first.time_unit) },
      { name: "commands", value: integer(first.commands) },
    ],
    needs: [],
  };
}
