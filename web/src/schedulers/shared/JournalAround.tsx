/** The journal records around a given one. */

import type { EngineAddress } from "../../api/client";
import type { Json } from "../../api/json";
import { inOneLine, isList, isObject, taggedInOneLine } from "../../api/json";
import { api } from "../../api/server";
import type { RecordView } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { counted, integer } from "../../wording";
import { useMoment } from "./engine_hooks";

const BEFORE = 8;
const AROUND = 17;

interface JournalAroundProps {
  readonly address: EngineAddress;
  readonly at: number;
  readonly onShowRecord: (n: number) => void;
}

export function JournalAround({ address, at, onShowRecord }: JournalAroundProps) {
  const around = useMoment(at, (n, signal) => api.journal(address, Math.max(0, n - BEFORE), AROUND, signal));
  const error = around.error.value;
  return (
    <section class="panel" aria-labelledby="around" data-testid="panel-journal">
      <h2 id="around">Journal</h2>
      {error !== null && <ErrorNote error={error} />}
      <DataTable
        caption={`Records around ${at}`}
        columns={columns(onShowRecord)}
        rows={around.value.value?.records ?? []}
        rowKey={(record) => record.n}
        current={(record) => record.n === at}
        empty="No records."
        testId="journal"
      />
    </section>
  );
}

function columns(onShowRecord: (n: number) => void): Column<RecordView>[] {
  return [
    {
      key: "n",
      title: "record",
      numeric: true,
      cell: ({ n }) => (
        <button
          type="button"
          class="link-button"
          aria-label={`Show the state after record ${n}`}
          onClick={() => onShowRecord(n)}
        >
          {integer(n)}
        </button>
      ),
    },
    { key: "t", title: "time", numeric: true, cell: ({ t }) => integer(t) },
    { key: "kind", title: "kind", cell: ({ kind }) => <code class="code-badge">{kind}</code> },
    { key: "body", title: "body", wide: true, cell: ({ body }) => <span class="clipped">{summaryOf(body)}</span> },
  ];
}

/** A record in one line: the command and its sender, or the events; other bodies whole. */
export function summaryOf(body: Json): string {
  if (!isObject(body)) return inOneLine(body);
  const { command, meta, of, count, events = null } = body;
  // Of a command with its time the time is in its own column.
  const given = isObject(command) && isObject(command["command"]) ? command["command"] : command;
  if (given !== undefined)
    return taggedInOneLine(given) + (isObject(meta) && typeof meta["by"] === "string" ? ` (by ${meta["by"]})` : "");
  if (of === undefined) return inOneLine(body);
  const result =
    isList(events) && events.length > 0 ? events.map(taggedInOneLine).join("; ") : counted(Number(count ?? 0), "event");
  return `of ${inOneLine(of)}: ${result}`;
}
