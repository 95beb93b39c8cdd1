/** Hit testing of spans. */

import type { Range, Viewport } from "./viewport";
import { xOf } from "./viewport";

// Pixels; thin spans would be hard to hit otherwise.
const TOLERANCE = 2;

/** The span at pixel `x`: the last `preferred` one, else the last. */
export function spanAt<S extends Range>(
  viewport: Viewport,
  spans: readonly S[],
  x: number,
  preferred: (span: S) => boolean,
): S | undefined {
  const near = spans.filter(
    ({ from, to }) => x >= xOf(viewport, from) - TOLERANCE && x <= xOf(viewport, to) + TOLERANCE,
  );
  return near.findLast(preferred) ?? near.at(-1);
}

/** The index of the span nearest to a value, the first of equals; -1 when there is none. */
export function nearestTo(spans: readonly Range[], value: number): number {
  const distances = spans.map(({ from, to }) => Math.max(from - value, value - to, 0));
  return distances.indexOf(Math.min(...distances));
}

export function overlap(a: Range, b: Range): boolean {
  return a.from < b.to && b.from < a.to;
}
