/** A small chart over time with its name, its last value and a text description for screen readers. */

import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";

export interface CurvePoint {
  readonly at: number;
  /** `null` is a gap in the curve. */
  readonly value: number | null;
}

export interface CurveProps {
  readonly name: string;
  readonly points: readonly CurvePoint[];
  readonly writeValue: (value: number) => string;
  readonly writeAt: (at: number) => string;
  /** The top of the axis; the highest value by default. */
  readonly max?: number;
  readonly note?: string;
  /** Draw one bar per value instead of a line. */
  readonly bars?: boolean;
  /** A second curve for comparison, dashed. */
  readonly other?: readonly CurvePoint[];
  readonly empty: string;
  readonly testId: string;
}

export const [WIDTH, HEIGHT] = [320, 84];

interface Extent {
  readonly from: number;
  readonly to: number;
  readonly max: number;
}

export function Curve(props: CurveProps) {
  const { name, points, writeValue, writeAt, note, empty, testId } = props;
  const id = useId();
  const pointed = useSignal<number | null>(null);
  const extent = extentOf([...points, ...(props.other ?? [])], props.max);
  const known = points.filter(({ value }) => value !== null);
  const shown = pointed.value === null ? known.at(-1) : nearest(known, pointed.value);
  return (
    <figure class="curve" aria-labelledby={`${id}name`} data-testid={testId}>
      <figcaption id={`${id}name`}>
        <span class="curve-name">{name}</span>{" "}
        <span class="curve-value">{shown?.value == null ? "–" : writeValue(shown.value)}</span>
        {note !== undefined && <span class="curve-note"> {note}</span>}
      </figcaption>
      {known.length === 0 ? (
        <p class="quiet curve-empty">{empty}</p>
      ) : (
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          data-title={name}
          aria-label={summary(name, known, writeValue, writeAt)}
          onPointerMove={(event) => {
            const box = event.currentTarget.getBoundingClientRect();
            pointed.value = extent.from + ((event.clientX - box.left) / box.width) * (extent.to - extent.from);
          }}
          onPointerLeave={() => (pointed.value = null)}
        >
          <line class="curve-ground" x1={0} x2={WIDTH} y1={HEIGHT - 1} y2={HEIGHT - 1} />
          {props.bars ? <Bars points={known} extent={extent} /> : <Line points={points} extent={extent} />}
          {partsOf(props.other ?? []).map((part, index) => (
            <path key={index} class="curve-other" d={pathOf(part, extent)} />
          ))}
          {pointed.value !== null && shown !== undefined && (
            <line class="curve-pointed" x1={xOf(extent, shown.at)} x2={xOf(extent, shown.at)} y1={0} y2={HEIGHT} />
          )}
        </svg>
      )}
      <p class="curve-axis" aria-hidden="true">
        <span>{known.length === 0 ? "" : writeAt(extent.from)}</span>
        <span>{pointed.value !== null && shown !== undefined ? writeAt(shown.at) : ""}</span>
        <span>{known.length === 0 ? "" : `${writeAt(extent.to)} · up to ${writeValue(extent.max)}`}</span>
      </p>
    </figure>
  );
}

function Line({ points, extent }: { readonly points: readonly CurvePoint[]; readonly extent: Extent }) {
  return (
    <>
      {partsOf(points).map((part, index) => (
        <g key={index}>
          <path
            class="curve-area"
            d={`${pathOf(part, extent)}L${xOf(extent, part.at(-1)?.at ?? 0)},${HEIGHT}L${xOf(extent, part[0]?.at ?? 0)},${HEIGHT}Z`}
          />
          <path class="curve-line" d={pathOf(part, extent)} />
        </g>
      ))}
    </>
  );
}

function Bars({ points, extent }: { readonly points: readonly CurvePoint[]; readonly extent: Extent }) {
  return (
    <>
      {points.map(({ at, value }) => (
        <line
          key={at}
          class="curve-bar"
          x1={xOf(extent, at)}
          x2={xOf(extent, at)}
          y1={HEIGHT}
          y2={yOf(extent, value ?? 0)}
        />
      ))}
    </>
  );
}

/** The points split at gaps. */
export function partsOf(points: readonly CurvePoint[]): CurvePoint[][] {
  const parts: CurvePoint[][] = [[]];
  for (const point of points) {
    if (point.value === null) parts.push([]);
    else parts.at(-1)?.push(point);
  }
  return parts.filter((part) => part.length > 0);
}

export function pathOf(points: readonly CurvePoint[], extent: Extent): string {
  return points
    .map(({ at, value }, index) => `${index === 0 ? "M" : "L"}${xOf(extent, at)},${yOf(extent, value ?? 0)}`)
    .join("");
}

export function extentOf(points: readonly CurvePoint[], max?: number): Extent {
  const times = points.map(({ at }) => at);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const highest = Math.max(0, ...points.map(({ value }) => value ?? 0));
  return { from, to: to > from ? to : from + 1, max: max ?? (highest > 0 ? highest : 1) };
}

function xOf({ from, to }: Extent, at: number): number {
  return Math.round((10 * WIDTH * (at - from)) / (to - from)) / 10;
}

function yOf({ max }: Extent, value: number): number {
  return Math.round(10 * (HEIGHT - 2 - (HEIGHT - 4) * Math.min(1, value / max))) / 10;
}

function nearest(points: readonly CurvePoint[], at: number): CurvePoint | undefined {
  return points.reduce<CurvePoint | undefined>(
    (best, point) => (best === undefined || Math.abs(point.at - at) < Math.abs(best.at - at) ? point : best),
    undefined,
  );
}

function summary(
  name: string,
  known: readonly CurvePoint[],
  writeValue: (value: number) => string,
  writeAt: (at: number) => string,
): string {
  const values = known.map(({ value }) => value ?? 0);
  const [first, last] = [known[0], known.at(-1)];
  if (first === undefined || last === undefined) return name;
  const min = writeValue(Math.min(...values));
  const max = writeValue(Math.max(...values));
  return `${name}, ${writeAt(first.at)} to ${writeAt(last.at)}: now ${writeValue(last.value ?? 0)}, between ${min} and ${max}`;
}
