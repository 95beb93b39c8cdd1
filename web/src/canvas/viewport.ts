/** Mapping of a range of values to pixels. */

export interface Range {
  readonly from: number;
  readonly to: number;
}

/** A range drawn from the gutter, which has the names, to the right edge. */
export interface Viewport {
  readonly range: Range;
  readonly gutter: number;
  readonly width: number;
}

/** The x pixel of a value; outside the picture for values outside the range. */
export function xOf({ range, gutter, width }: Viewport, value: number): number {
  return gutter + ((value - range.from) / (range.to - range.from)) * (width - gutter);
}

export function pixelsPerUnit({ range, gutter, width }: Viewport): number {
  return (width - gutter) / (range.to - range.from);
}

/** The finest step whose ticks are at least `minPixels` apart, or the coarsest step. */
export function tickStep(viewport: Viewport, steps: readonly [number, ...number[]], minPixels: number): number {
  const scale = pixelsPerUnit(viewport);
  return steps.find((step) => step * scale >= minPixels) ?? Math.max(...steps);
}
