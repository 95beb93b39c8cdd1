// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { draw, find, interact, texts } from "../testing/drawing";
import type { Column } from "./DataTable";
import { DataTable } from "./DataTable";
import { compare, sorted } from "./sorting";

interface Truck {
  readonly name: string;
  readonly load: number | bigint | null;
}

const TRUCKS: readonly Truck[] = [
  { name: "truck 10", load: 3 },
  { name: "truck 9", load: 18446744073709551557n },
  { name: "truck 11", load: null },
  { name: "truck 1", load: 3 },
];
const COLUMNS: readonly Column<Truck>[] = [
  { key: "name", title: "name", cell: ({ name }) => name, by: ({ name }) => name },
  { key: "load", title: "load", cell: ({ load }) => String(load), by: ({ load }) => load, numeric: true },
  { key: "remark", title: "remark", cell: () => "-" },
];

function table(rows: readonly Truck[] = TRUCKS) {
  return draw(
    <DataTable
      caption="Trucks"
      columns={COLUMNS}
      rows={rows}
      rowKey={({ name }) => name}
      banner={({ name }) => (name === "gap" ? "2 trucks missing." : null)}
      empty="No trucks."
    />,
  );
}

const names = (page: HTMLElement) => texts(page, "tbody td:first-child");
const press = (page: HTMLElement, column: string) => interact(() => find(page, `[data-testid=sort-${column}]`).click());
const sorts = (page: HTMLElement) =>
  [...page.querySelectorAll("th")].map((heading) => heading.getAttribute("aria-sort"));

test("text is sorted with embedded numbers by value", () => {
  expect(sorted(TRUCKS, ({ name }) => name, "ascending").map(({ name }) => name)).toEqual([
    "truck 1",
    "truck 9",
    "truck 10",
    "truck 11",
  ]);
});

test("equal rows keep their order and rows without a value are last in both directions", () => {
  const up = sorted(TRUCKS, ({ load }) => load, "ascending").map(({ name }) => name);
  const down = sorted(TRUCKS, ({ load }) => load, "descending").map(({ name }) => name);

  expect(up).toEqual(["truck 10", "truck 1", "truck 9", "truck 11"]);
  expect(down).toEqual(["truck 9", "truck 10", "truck 1", "truck 11"]);
});

test("event ids are compared component by component", () => {
  expect(compare([9, 1], [10, 0])).toBeLessThan(0);
  expect(compare([9, 1], [9, 0])).toBeGreaterThan(0);
  expect(compare([9], [9, 0])).toBeLessThan(0);
});

test("sorting does not change its input", () => {
  const rows = [...TRUCKS];

  sorted(rows, ({ name }) => name, "ascending");

  expect(rows).toEqual(TRUCKS);
});

test("a heading sorts ascending, then descending, then restores the given order", () => {
  const page = table();
  expect(sorts(page)).toEqual(["none", "none", null]);

  press(page, "name");
  expect(sorts(page)).toEqual(["ascending", "none", null]);
  expect(names(page)).toEqual(["truck 1", "truck 9", "truck 10", "truck 11"]);

  press(page, "name");
  expect(sorts(page)).toEqual(["descending", "none", null]);
  expect(names(page)).toEqual(["truck 11", "truck 10", "truck 9", "truck 1"]);

  press(page, "name");
  expect(sorts(page)).toEqual(["none", "none", null]);
  expect(names(page)).toEqual(TRUCKS.map(({ name }) => name));
});

test("another heading starts ascending", () => {
  const page = table();
  press(page, "name");

  press(page, "load");

  expect(sorts(page)).toEqual(["none", "ascending", null]);
});

test("an empty table shows its empty text", () => {
  expect(texts(table([]), "tbody td")).toEqual(["No trucks."]);
});

test("a banner spans the whole row", () => {
  const cells = table([{ name: "gap", load: null }]).querySelectorAll("tbody td");

  expect(cells).toHaveLength(1);
  expect(cells[0]?.textContent).toBe("2 trucks missing.");
  expect(cells[0]?.getAttribute("colspan")).toBe("3");
});

test("the table can be focused and has a name", () => {
  const frame = find(table(), "[role=region]");

  expect(frame.tabIndex).toBe(0);
  expect(frame.getAttribute("aria-label")).toBe("Trucks");
});
