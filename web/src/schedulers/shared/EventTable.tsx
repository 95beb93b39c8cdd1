/** The events of an engine, newest first, with a banner where some were missed. */

import { membersInOneLine, withoutType } from "../../api/json";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { counted, integer } from "../../wording";
import type { EventRow, LiveEngine, Numbered } from "./engine";
import { MAX_ROWS, recordOf } from "./engine";

interface EventTableProps {
  readonly live: Pick<LiveEngine<Numbered>, "events">;
  readonly onShowRecord: (n: number) => void;
}

export function EventTable({ live, onShowRecord }: EventTableProps) {
  const rows = live.events.value;
  return (
    <section class="panel" aria-labelledby="events" data-testid="panel-events">
      <h2 id="events">
        Events <span class="count">{rows.length === MAX_ROWS ? `last ${MAX_ROWS}` : integer(rows.length)}</span>
      </h2>
      <DataTable
        caption="Events, newest first"
        columns={columns(onShowRecord)}
        rows={rows}
        rowKey={(row) => row.key}
        banner={(row) => (row.kind === "gap" ? gapSentence(row) : null)}
        empty="No events yet."
        testId="events"
      />
    </section>
  );
}

function columns(onShowRecord: (n: number) => void): Column<EventRow>[] {
  return [
    {
      key: "id",
      title: "event",
      numeric: true,
      by: sortKey,
      cell: (row) => row.kind === "event" && <ShowRecord id={row.id} onShowRecord={onShowRecord} />,
    },
    { key: "type", title: "type", by: typeOf, cell: (row) => <code class="code-badge">{typeOf(row)}</code> },
    { key: "facts", title: "facts", wide: true, cell: factsOf },
  ];
}

function ShowRecord({ id, onShowRecord }: { readonly id: string; readonly onShowRecord: (n: number) => void }) {
  return (
    <button
      type="button"
      class="link-button"
      title="Show the state after this record"
      aria-label={`${id}: show the state after this record`}
      onClick={() => onShowRecord(recordOf(id))}
    >
      {id}
    </button>
  );
}

/** The position of a row among the events: a gap is before the event that follows it. */
function sortKey(row: EventRow): readonly number[] | null {
  const id = row.kind === "event" ? row.id : (row.gap.next ?? row.gap.after);
  return id === null ? null : id.split(".").map(Number);
}

function typeOf(row: EventRow): string | null {
  return row.kind === "event" ? String(row.body["type"] ?? "event") : null;
}

function factsOf(row: EventRow): string {
  return row.kind === "event" ? membersInOneLine(withoutType(row.body)) : "";
}

export function gapSentence({ gap: { missed, after, next } }: EventRow & { readonly kind: "gap" }): string {
  const count = missed === null ? "An unknown number of events" : counted(missed, "event");
  const range = [after === null ? "" : ` after ${after}`, next === null ? "" : ` before ${next}`].join("");
  return `${count} missed${range}.`;
}
