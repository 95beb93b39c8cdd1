/** A table with sortable columns, a sticky header and a text for the empty state. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import type { Direction, SortValue } from "./sorting";
import { sorted } from "./sorting";

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** The sort value of a row; a column without it is not sortable. */
  readonly by?: (row: Row) => SortValue;
  readonly numeric?: boolean;
  readonly wide?: boolean;
}

export interface DataTableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string | number;
  readonly empty: string;
  /** Content that spans the whole row instead of cells, for example for missed events. */
  readonly banner?: (row: Row) => ComponentChildren;
  readonly current?: (row: Row) => boolean;
  readonly testId?: string;
}

interface Order {
  readonly column: string;
  readonly direction: Direction;
}

/** Ascending, descending, then the given order. */
export function nextOrder(order: Order | null, column: string): Order | null {
  if (order === null || order.column !== column) return { column, direction: "ascending" };
  return order.direction === "ascending" ? { column, direction: "descending" } : null;
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const order = useSignal<Order | null>(null);
  const { caption, columns, rows, empty, testId } = props;
  const by = columns.find((column) => column.key === order.value?.column)?.by;
  const shown = by && order.value ? sorted(rows, by, order.value.direction) : rows;
  return (
    <div class="table-frame" role="region" aria-label={caption} tabIndex={0} data-testid={testId}>
      <table class="data-table">
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading
                key={column.key}
                column={column}
                direction={order.value?.column === column.key ? order.value.direction : null}
                onSort={() => (order.value = nextOrder(order.value, column.key))}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.length === 0 ? (
            <tr class="table-empty">
              <td colSpan={columns.length}>{empty}</td>
            </tr>
          ) : (
            shown.map((row) => <BodyRow key={props.rowKey(row)} row={row} {...props} />)
          )}
        </tbody>
      </table>
    </div>
  );
}

interface HeadingProps<Row> {
  readonly column: Column<Row>;
  readonly direction: Direction | null;
  readonly onSort: () => void;
}

function Heading<Row>({ column, direction, onSort }: HeadingProps<Row>) {
  const kind = cellClass(column);
  if (!column.by) {
    return (
      <th scope="col" class={kind}>
        {column.title}
      </th>
    );
  }
  return (
    <th scope="col" class={kind} aria-sort={direction ?? "none"}>
      <button type="button" class="sort-button" onClick={onSort} data-testid={`sort-${column.key}`}>
        {column.title}
        <span class="sort-mark" aria-hidden="true">
          {direction === null ? "↕" : direction === "ascending" ? "↑" : "↓"}
        </span>
      </button>
    </th>
  );
}

function BodyRow<Row>({ row, columns, banner, current }: DataTableProps<Row> & { readonly row: Row }) {
  const sentence = banner?.(row) ?? null;
  if (sentence !== null) {
    return (
      <tr class="table-banner">
        <td colSpan={columns.length}>{sentence}</td>
      </tr>
    );
  }
  return (
    <tr aria-current={current?.(row) ? "true" : undefined}>
      {columns.map((column) => (
        <td key={column.key} class={cellClass(column)}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

function cellClass<Row>(column: Column<Row>): string {
  return [column.numeric ? "numeric" : "", column.wide ? "wide" : ""].join(" ").trim();
}
