/** Positions of snapshot marks on a scale. */

const MAX_MARKS = 100;

/** Positions in percent of the scale, ascending, at most 101; snapshots closer than one percent share a mark. */
export function markPositions(
  snapshots: readonly (readonly [number, number])[],
  first: number,
  last: number,
): number[] {
  if (last <= first) return [];
  const positions = snapshots
    .filter(([n]) => n >= first && n <= last)
    .map(([n]) => (Math.round(((n - first) / (last - first)) * MAX_MARKS) * 100) / MAX_MARKS);
  return [...new Set(positions)].sort((a, b) => a - b);
}
