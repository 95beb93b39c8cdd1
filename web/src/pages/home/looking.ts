/** Looks at every scheduler whenever the list of schedulers is fetched: its figures, and what needs a person there.
 *
 * A scheduler that does not answer keeps the figures it had; that the server is gone, the badge says.
 */

import type { ReadonlySignal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { EngineAddress } from "../../api/client";
import { api } from "../../api/server";
import type { AlertNow, SchedulerList, SchedulerView } from "../../api/types";
import { engineTime, integer } from "../../wording";
import type { Glance } from "./glance";
import { actionsGlance, creditGlance, fleetGlance, jobsGlance, playbackGlance, recentAlerts, together } from "./glance";

const NOTHING: Glance = { figures: [], needs: [] };
const MOST_AT_ONCE = 8;
const DEAD_SHOWN = 3;

type Look = (scheduler: SchedulerView, signal: AbortSignal) => Promise<Glance>;

const LOOKS: Readonly<Record<string, Look>> = {
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
      api.get("/scheduler/jobs", {}, { status: "dead_letter", limit: DEAD_SHOWN }, signal),
      api.get("/scheduler/governance", {}, {}, signal),
    ]);
    return jobsGlance(metrics, dead.jobs, governance.for_a_person);
  },
  credit: async (_, signal) => creditGlance((await api.get("/api/v1/simulator/admin/runs", {}, {}, signal)).items),
};

/** The records in which alerts were raised, by fleet and tick: they do not change, and are asked for once. */
const raisedIn = new Map<string, number>();

async function recordsOf(fleet: string, alerts: readonly AlertNow[]): Promise<ReadonlyMap<AlertNow, number>> {
  const found = await Promise.all(
    alerts.map(async (alert) => {
      const key = `${fleet} ${alert.tick}`;
      const record = raisedIn.get(key) ?? (await recordAt(fleet, alert.now));
      if (record !== null) raisedIn.set(key, record);
      return [alert, record] as const;
    }),
  );
  return new Map(found.flatMap(([alert, record]) => (record === null ? [] : [[alert, record] as const])));
}

async function recordAt(fleet: string, t: number): Promise<number | null> {
  const { moment } = await api.moment(new EngineAddress("fleet", fleet), { t });
  return moment?.n ?? null;
}

/** What was seen of each scheduler, by its name. */
export function useGlances(list: SchedulerList | null): ReadonlySignal<ReadonlyMap<string, Glance>> {
  const seen = useSignal<ReadonlyMap<string, Glance>>(new Map());
  useEffect(() => {
    if (list === null) return;
    const abort = new AbortController();
    for (const scheduler of list.schedulers) {
      lookAt(scheduler, abort.signal).then(
        (glance) => {
          if (!abort.signal.aborted) seen.value = new Map([...seen.value, [scheduler.name, glance]]);
        },
        () => undefined,
      );
    }
    return () => abort.abort();
  }, [list]);
  return seen;
}

function lookAt(scheduler: SchedulerView, signal: AbortSignal): Promise<Glance> {
  if (scheduler.state !== "ready") return Promise.resolve(NOTHING);
  const look = Object.hasOwn(LOOKS, scheduler.name) ? LOOKS[scheduler.name] : undefined;
  return look === undefined ? Promise.resolve(plainGlance(scheduler)) : look(scheduler, signal);
}

/** The needs of all engines, and their figures: added up where they count, else those of the first. Of very many some are asked at each look, those first that
 * were asked longest ago; what the others needed is remembered. */
export function eachEngine(ask: (engine: string, signal: AbortSignal) => Promise<Glance>): Look {
  const seen = new Map<string, Glance>(); // asked longest ago first
  return async ({ engines }, signal) => {
    const well = engines.flatMap(({ name, broken }) => (broken === null ? [name] : []));
    const [first, ...others] = well;
    if (first === undefined) return NOTHING;
    const turn = [
      ...others.filter((name) => !seen.has(name)),
      ...[...seen.keys()].filter((name) => others.includes(name)),
    ];
    const asked = [first, ...turn.slice(0, MOST_AT_ONCE - 1)];
    const glances = await Promise.all(asked.map(async (name) => [name, await ask(name, signal)] as const));
    for (const [name, glance] of glances) {
      seen.delete(name);
      seen.set(name, glance);
    }
    for (const name of [...seen.keys()].filter((one) => !well.includes(one))) seen.delete(name);
    const known = well.flatMap((name) => seen.get(name) ?? []);
    return { figures: together(known), needs: known.flatMap(({ needs }) => needs) };
  };
}

/** A scheduler without a look of its own tells what every engine tells. */
export function plainGlance({ engines }: SchedulerView): Glance {
  const [first] = engines;
  if (first === undefined) return NOTHING;
  return {
    figures: [
      { name: "time", value: engineTime(first.now, first.time_unit) },
      { name: "commands", value: integer(first.commands) },
    ],
    needs: [],
  };
}
