/** Where the marks of snapshots stand on a scale, and how many of them there is room for. */

const MOST_MARKS = 100;

/** Places in percent of the scale, ascending; snapshots closer than one mark's width share it. */
export function spaceForMarks(
  snapshots: readonly (readonly [number, number])[],
  first: number,
  last: number,
): number[] {
  if (last <= first) return [];
  const places = snapshots
    .filter(([n]) => n >= first && n <= last)
    .map(([n]) => (Math.round(((n - first) / (last - first)) * MOST_MARKS) * 100) / MOST_MARKS);
  return [...new Set(places)].sort((one, other) => one - other);
}
