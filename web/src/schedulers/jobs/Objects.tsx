/** Governed objects: how many are in which state, and those in the chosen one. */

import { useSignal } from "@preact/signals";

import { api } from "../../api/server";
import type { SchedulerGovernance, SchedulerGoverned, SchedulerMachines } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { integer } from "../../wording";
import { fromNow, objectHref, placeOf, said } from "./model";
import { usePolled } from "./polling";

const SHOWN_MOST = 200;

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
  const query = { object_type: kind.value, place: place.value, limit: SHOWN_MOST };
  const found = usePolled(JSON.stringify(query), (signal) => api.get("/scheduler/objects", {}, query, signal));
  const counts = new Map(
    figures?.places.filter((row) => row.object_type === kind.value).map((row) => [row.place, row.objects]),
  );
  const places = machines.machines.find(({ object_type }) => object_type === kind.value)?.places ?? [];
  const choose = (word: string) => {
    kind.value = word;
    place.value = null;
  };
  return (
    <section class="panel" aria-labelledby="objects" data-testid="panel-objects">
      <div class="panel-head">
        <h2 id="objects">Objects</h2>
        <div class="segmented" role="group" aria-label="Type of object">
          {kinds.map((word) => (
            <button
              key={word}
              type="button"
              aria-pressed={kind.value === word}
              onClick={() => choose(word)}
              data-testid={`kind-${word}`}
            >
              {word}
            </button>
          ))}
        </div>
      </div>
      <div class="place-chips" role="group" aria-label="Show objects in one state">
        {places.map(({ place: word }) => (
          <button
            key={word}
            type="button"
            class="place-chip"
            aria-pressed={place.value === word}
            onClick={() => {
              place.value = place.value === word ? null : word;
            }}
            data-testid={`place-${word}`}
          >
            {said(word)} <strong>{integer(counts.get(word) ?? 0)}</strong>
          </button>
        ))}
      </div>
      {found.error.value !== null && <ErrorNote error={found.error.value} />}
      <DataTable
        caption={`Objects of type ${kind.value}`}
        columns={columns(now)}
        rows={found.value.value?.objects ?? []}
        rowKey={(one) => one.object_id}
        empty={found.value.value === null ? "Loading objects …" : "There are no such objects."}
        current={(one) => `${one.object_type}:${one.object_id}` === chosen}
        testId="objects-table"
      />
      <WaitingRollbacks now={now} />
      {found.value.value?.next_after != null && <p class="quiet">The first {SHOWN_MOST} by id are shown.</p>}
    </section>
  );
}

/** What was built on forged or refuted objects and is still to be taken back. */
function WaitingRollbacks({ now }: { readonly now: number }) {
  const found = usePolled("rollbacks", (signal) => api.get("/scheduler/rollbacks", {}, { limit: SHOWN_MOST }, signal));
  const waiting = found.value.value?.rollbacks ?? [];
  if (waiting.length === 0) return null;
  return (
    <div data-testid="waiting-rollbacks">
      <h3>Rollbacks that are waited for</h3>
      <ul class="job-errors">
        {waiting.map((one) => (
          <li key={one.rollback_id}>
            <a class="object-link" href={objectHref(one.object_type, one.object_id)}>
              {one.object_type} {one.object_id}
            </a>
            , asked {fromNow(one.asked_at, now)}, because {one.reason}
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
      cell: (one) => (
        <a class="object-link" href={objectHref(one.object_type, one.object_id)}>
          {one.object_id}
        </a>
      ),
      by: ({ object_id }) => object_id,
      wide: true,
    },
    { key: "place", title: "State", cell: (one) => said(placeOf(one)), by: placeOf },
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
