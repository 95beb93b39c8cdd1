/** Locks with their holders and queues, amounts of resources, and the locations of actors. */

import { inOneLine } from "../../api/json";
import type { LockView, ResourceView, WorldNow } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import type { Clock } from "./model";
import { isOfActor } from "./model";

interface HoldingsProps {
  readonly now: WorldNow;
  readonly clock: Clock;
  readonly onChoose: (action: string) => void;
}

export function Holdings({ now, clock, onChoose }: HoldingsProps) {
  // The implicit lock of an actor is hidden; actions that wait for it are listed under "Waiting, and why".
  const locks = now.locks.filter(({ name }) => !isOfActor(name));
  return (
    <div class="holdings">
      <section class="panel" aria-labelledby="locks" data-testid="panel-locks">
        <h2 id="locks">Locks</h2>
        <DataTable
          caption="Locks with their holders and queues"
          columns={lockColumns(clock, onChoose)}
          rows={locks}
          rowKey={({ name }) => name}
          empty="No lock used yet."
          testId="locks"
        />
      </section>
      <section class="panel" aria-labelledby="resources" data-testid="panel-resources">
        <h2 id="resources">Resources</h2>
        <DataTable
          caption="Resources and their amounts"
          columns={RESOURCES}
          rows={now.resources}
          rowKey={({ name }) => name}
          empty="This world has no resources."
          testId="resources"
        />
      </section>
      {Object.keys(now.places).length > 0 && (
        <section class="panel" aria-labelledby="places" data-testid="panel-places">
          <h2 id="places">Locations</h2>
          <DataTable
            caption="Actors and their locations after their last action"
            columns={PLACES}
            rows={Object.entries(now.places)}
            rowKey={([actor]) => actor}
            empty=""
            testId="places"
          />
        </section>
      )}
    </div>
  );
}

function lockColumns(clock: Clock, onChoose: (action: string) => void): Column<LockView>[] {
  const link = (action: string) => (
    <button type="button" class="link-button" onClick={() => onChoose(action)}>
      {action}
    </button>
  );
  return [
    { key: "name", title: "lock", by: ({ name }) => name, cell: ({ name }) => name },
    {
      key: "held",
      title: "held by",
      by: ({ held_by }) => held_by,
      cell: ({ held_by, until, capacity, holders }) =>
        held_by === null ? (
          <span class="quiet">free</span>
        ) : (
          <>
            {capacity === 1 ? link(held_by) : holders.map((action) => <div key={action}>{link(action)}</div>)}
            <span class="below">until {until === null ? "?" : clock.time(until)}</span>
            {capacity > 1 && <span class="below">capacity {capacity}</span>}
          </>
        ),
    },
    {
      key: "queue",
      title: "queue",
      wide: true,
      by: ({ waiting }) => waiting,
      cell: ({ queue, waiting }) =>
        waiting === 0 ? (
          <span class="quiet">empty</span>
        ) : (
          <ol class="queue">
            {queue.map((action) => (
              <li key={action}>{link(action)}</li>
            ))}
            {waiting > queue.length && <li class="quiet">and {waiting - queue.length} more</li>}
          </ol>
        ),
    },
  ];
}

const PLACES: readonly Column<readonly [string, string]>[] = [
  { key: "actor", title: "actor", by: ([actor]) => actor, cell: ([actor]) => actor },
  { key: "place", title: "place", wide: true, by: ([, place]) => place, cell: ([, place]) => place },
];

const AMOUNTS = { available: "left", reserved: "reserved", consumed: "used", produced: "produced" } as const;

const RESOURCES: readonly Column<ResourceView>[] = [
  { key: "name", title: "resource", by: ({ name }) => name, cell: ({ name }) => name },
  ...(["available", "reserved", "consumed", "produced"] as const).map((key) => ({
    key,
    title: AMOUNTS[key],
    numeric: true,
    by: (row: ResourceView) => row[key],
    cell: (row: ResourceView) => <Amount value={row[key]} faint={key !== "available" && Number(row[key]) === 0} />,
  })),
];

function Amount({ value, faint }: { readonly value: number | bigint; readonly faint: boolean }) {
  return <span class={faint ? "quiet" : ""}>{inOneLine(value)}</span>;
}
