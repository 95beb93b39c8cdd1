/** Governed objects: counts by state, and the objects in the selected state. */

import { useSignal } from "@preact/signals";

import { api } from "../../api/server";
import type { SchedulerGovernance, SchedulerGoverned, SchedulerMachines } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { integer } from "../../wording";
import { fromNow, objectHref, placeOf, readable } from "./model";
import { usePolled } from "./polling";

const MAX_SHOWN = 200;

interface ObjectsProps {
  readonly machines: SchedulerMachines;
  readonly figures: SchedulerGovernance | null;
  readonly now: number;
  readonly chosen: string | null;
}

export function Objects({ machines, figures, now, chosen }: ObjectsProps) {
  const kinds = machines.machines.map(({ object_type }) => object_type);
  const kind = useSignal(kinds.includes("memory") ? "memory" : (kinds[0] ?? ""));
  const place = useSignal<string | null>(null);
  const query = { object_type: kind.value, place: place.value, limit: MAX_SHOWN };
  const polled = usePolled(JSON.stringify(query), (signal) => api.get("/scheduler/objects", {}, query, signal));
  const counts = new Map(
    figures?.places.filter((row) => row.object_type === kind.value).map((row) => [row.place, row.objects]),
  );
  const places = machines.machines.find(({ object_type }) => object_type === kind.value)?.places ?? [];
  const choose = (name: string) => {
    kind.value = name;
    place.value = null;
  };
  return (
    <section class="panel" aria-labelledby="objects" data-testid="panel-objects">
      <div class="panel-head">
        <h2 id="objects">Objects</h2>
        <div class="segmented" role="group" aria-label="Type of object">
          {kinds.map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={kind.value === name}
              onClick={() => choose(name)}
              data-testid={`kind-${name}`}
            >
              {name}
            </button>
          ))}
        </div>
      </div>
      <div class="place-chips" role="group" aria-label="Show objects in one state">
        {places.map(({ place: state }) => (
          <button
            key={state}
            type="button"
            class="place-chip"
            aria-pressed={place.value === state}
            onClick={() => {
              place.value = place.value === state ? null : state;
            }}
            data-testid={`place-${state}`}
          >
            {readable(state)} <strong>{integer(counts.get(state) ?? 0)}</strong>
          </button>
        ))}
      </div>
      {polled.error.value !== null && <ErrorNote error={polled.error.value} />}
      <DataTable
        caption={`Objects of type ${kind.value}`}
        columns={columns(now)}
        rows={polled.value.value?.objects ?? []}
        rowKey={({ object_id }) => object_id}
        empty={polled.value.value === null ? "Loading objects …" : "No matching objects."}
        current={({ object_type, object_id }) => `${object_type}:${object_id}` === chosen}
        testId="objects-table"
      />
      <PendingRollbacks now={now} />
      {polled.value.value?.next_after != null && <p class="quiet">Showing the first {MAX_SHOWN} by id.</p>}
    </section>
  );
}

/** Unfinished rollbacks of what was built on forged or refuted objects. */
function PendingRollbacks({ now }: { readonly now: number }) {
  const polled = usePolled("rollbacks", (signal) => api.get("/scheduler/rollbacks", {}, { limit: MAX_SHOWN }, signal));
  const pending = polled.value.value?.rollbacks ?? [];
  if (pending.length === 0) return null;
  return (
    <div data-testid="pending-rollbacks">
      <h3>Pending rollbacks</h3>
      <ul class="job-errors">
        {pending.map(({ rollback_id, object_type, object_id, asked_at, reason }) => (
          <li key={rollback_id}>
            <a class="object-link" href={objectHref(object_type, object_id)}>
              {object_type} {object_id}
            </a>
            , requested {fromNow(asked_at, now)} ({reason})
          </li>
        ))}
      </ul>
    </div>
  );
}

function columns(now: number): Column<SchedulerGoverned>[] {
  return [
    {
      key: "object",
      title: "Object",
      cell: ({ object_type, object_id }) => (
        <a class="object-link" href={objectHref(object_type, object_id)}>
          {object_id}
        </a>
      ),
      by: ({ object_id }) => object_id,
      wide: true,
    },
    { key: "place", title: "State", cell: (object) => readable(placeOf(object)), by: placeOf },
    {
      key: "next",
      title: "Next",
      cell: ({ next_action, next_action_at }) => (
        <span class="nowrap">
          {next_action === null || next_action_at === null
            ? "nothing"
            : `${next_action} ${fromNow(next_action_at, now)}`}
        </span>
      ),
      by: ({ next_action_at }) => next_action_at ?? "",
    },
    { key: "risk", title: "Risk", cell: ({ risk_tier }) => risk_tier, by: ({ risk_tier }) => risk_tier },
  ];
}
