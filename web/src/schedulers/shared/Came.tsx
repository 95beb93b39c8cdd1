/** What came: the events of an engine, newest first, with plain words where some were missed. */

import { membersInOneLine, withoutType } from "../../api/json";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { counted, integer } from "../../wording";
import type { CameRow, LiveEngine, Numbered } from "./engine";
import { MOST_ROWS, recordOf } from "./engine";

interface CameProps {
  readonly live: Pick<LiveEngine<Numbered>, "came">;
  readonly onLook: (n: number) => void;
}

export function Came({ live, onLook }: CameProps) {
  const rows = live.came.value;
  return (
    <section class="panel" aria-labelledby="came" data-testid="panel-came">
      <h2 id="came">
        What came{" "}
        <span class="count">{rows.length === MOST_ROWS ? `the last ${MOST_ROWS}` : integer(rows.length)}</span>
      </h2>
      <DataTable
        caption="Events, newest first"
        columns={columns(onLook)}
        rows={rows}
        rowKey={(row) => row.key}
        banner={(row) => (row.kind === "gap" ? gapSentence(row) : null)}
        empty="Nothing has happened yet. Events appear here as they come."
        testId="events"
      />
    </section>
  );
}

function columns(onLook: (n: number) => void): Column<CameRow>[] {
  return [
    {
      key: "id",
      title: "event",
      numeric: true,
      by: placeOf,
      cell: (row) => row.kind === "event" && <Look id={row.id} onLook={onLook} />,
    },
    { key: "type", title: "type", by: typeOf, cell: (row) => <code class="code-badge">{typeOf(row)}</code> },
    { key: "facts", title: "facts", wide: true, cell: factsOf },
  ];
}

function Look({ id, onLook }: { readonly id: string; readonly onLook: (n: number) => void }) {
  return (
    <button
      type="button"
      class="link-button"
      title="Look at the state after this record"
      aria-label={`${id}: look at the state after this record`}
      onClick={() => onLook(recordOf(id))}
    >
      {id}
    </button>
  );
}

/** Where a row belongs among the events: a gap lies before the event that follows it. */
function placeOf(row: CameRow): readonly number[] | null {
  const id = row.kind === "event" ? row.id : (row.gap.next ?? row.gap.after);
  return id === null ? null : id.split(".").map(Number);
}

function typeOf(row: CameRow): string | null {
  return row.kind === "event" ? String(row.body["type"] ?? "event") : null;
}

function factsOf(row: CameRow): string {
  return row.kind === "event" ? membersInOneLine(withoutType(row.body)) : "";
}

export function gapSentence({ gap: { missed, after, next } }: CameRow & { readonly kind: "gap" }): string {
  const what =
    missed === null
      ? "An unknown number of events was"
      : `${counted(missed, "event")} ${missed === 1 ? "was" : "were"}`;
  const where = [after === null ? "" : ` after ${after}`, next === null ? "" : ` before ${next}`].join("");
  return `${what} missed${where}.`;
}
