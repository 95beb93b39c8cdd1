/** Which part of a line of values a picture shows, and on which pixels. */

export interface Range {
  readonly from: number;
  readonly to: number;
}

/** A range drawn from the right of a gutter, which has the names, to the right edge. */
export interface Viewport {
  readonly range: Range;
  readonly gutter: number;
  readonly width: number;
}

/** The pixel at which a value lies; outside of the picture for values outside of the range. */
export function xOf({ range, gutter, width }: Viewport, value: number): number {
  return gutter + ((value - range.from) / (range.to - range.from)) * (width - gutter);
}

export function pixelsPerUnit({ range, gutter, width }: Viewport): number {
  return (width - gutter) / (range.to - range.from);
}

/** The finest of the steps whose ticks have `scheduler` pixels each; the coarsest one where none has. */
export function tickStep(viewport: Viewport, steps: readonly [number, ...number[]], scheduler: number): number {
  const each = pixelsPerUnit(viewport);
  return steps.find((step) => step * each >= scheduler) ?? Math.max(...steps);
}
