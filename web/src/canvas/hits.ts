/** What lies where: the span under a pointer, the one nearest to a value, two that overlap. */

import type { Range, Viewport } from "./viewport";
import { xOf } from "./viewport";

// Spans may be thinner than a pointer can be held.
const SLACK = 2;

/** The span under the pixel `x`: of several the last one that is `preferred`, else the last. */
export function spanAt<S extends Range>(
  viewport: Viewport,
  spans: readonly S[],
  x: number,
  preferred: (span: S) => boolean,
): S | undefined {
  const near = spans.filter(({ from, to }) => x >= xOf(viewport, from) - SLACK && x <= xOf(viewport, to) + SLACK);
  return near.findLast(preferred) ?? near.at(-1);
}

/** The place of the span that is nearest to a value, the first of several; -1 when there is none. */
export function nearestTo(spans: readonly Range[], value: number): number {
  const distances = spans.map(({ from, to }) => Math.max(from - value, value - to, 0));
  return distances.indexOf(Math.min(...distances));
}

export function overlap(one: Range, other: Range): boolean {
  return one.from < other.to && other.from < one.to;
}
