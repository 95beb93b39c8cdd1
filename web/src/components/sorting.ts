/** The order of table rows: numbers by size, words by their letters with numbers inside them by size, nothing last. */

export type SortValue = number | bigint | string | boolean | null | readonly number[];
export type Direction = "ascending" | "descending";

const words = new Intl.Collator("en", { numeric: true });

/** A sorted copy. Equal rows keep the order they came in, and rows without a value are last in both directions. */
export function sorted<Row>(rows: readonly Row[], by: (row: Row) => SortValue, direction: Direction): Row[] {
  const sign = direction === "ascending" ? 1 : -1;
  return rows
    .map((row) => ({ row, value: by(row) }))
    .sort((one, other) => {
      if (one.value === null || other.value === null) return Number(one.value === null) - Number(other.value === null);
      return sign * compare(one.value, other.value);
    })
    .map(({ row }) => row);
}

/** Negative, zero or positive; values of different kinds are ordered by their kind. */
export function compare(one: NonNullable<SortValue>, other: NonNullable<SortValue>): number {
  if (isNumber(one) && isNumber(other)) return one < other ? -1 : one > other ? 1 : 0;
  if (typeof one === "string" && typeof other === "string") return words.compare(one, other);
  if (typeof one === "boolean" && typeof other === "boolean") return Number(one) - Number(other);
  if (typeof one === "object" && typeof other === "object") return compareLists(one, other);
  return rank(one) - rank(other);
}

function compareLists(one: readonly number[], other: readonly number[]): number {
  for (let place = 0; place < Math.min(one.length, other.length); place += 1) {
    const difference = (one[place] ?? 0) - (other[place] ?? 0);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}

function isNumber(value: NonNullable<SortValue>): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

function rank(value: NonNullable<SortValue>): number {
  if (typeof value === "boolean") return 0;
  if (isNumber(value)) return 1;
  return typeof value === "string" ? 2 : 3;
}
