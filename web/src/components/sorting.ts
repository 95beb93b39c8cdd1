/** The order of table rows: numbers by value, text with embedded numbers by value, missing values last. */

export type SortValue = number | bigint | string | boolean | null | readonly number[];
export type Direction = "ascending" | "descending";

const collator = new Intl.Collator("en", { numeric: true });

/** A stably sorted copy; rows without a value are last in both directions. */
export function sorted<Row>(rows: readonly Row[], by: (row: Row) => SortValue, direction: Direction): Row[] {
  const sign = direction === "ascending" ? 1 : -1;
  return rows
    .map((row) => ({ row, value: by(row) }))
    .sort((a, b) => {
      if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null);
      return sign * compare(a.value, b.value);
    })
    .map(({ row }) => row);
}

/** Negative, zero or positive; values of different types are ordered by type. */
export function compare(a: NonNullable<SortValue>, b: NonNullable<SortValue>): number {
  if (isNumber(a) && isNumber(b)) return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === "string" && typeof b === "string") return collator.compare(a, b);
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  if (typeof a === "object" && typeof b === "object") return compareLists(a, b);
  return rank(a) - rank(b);
}

function compareLists(a: readonly number[], b: readonly number[]): number {
  for (let index = 0; index < Math.min(a.length, b.length); index += 1) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function isNumber(value: NonNullable<SortValue>): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

function rank(value: NonNullable<SortValue>): number {
  if (typeof value === "boolean") return 0;
  if (isNumber(value)) return 1;
  return typeof value === "string" ? 2 : 3;
}
