/** Metrics of a run over time: successful payments, served demand, debt, clearing, refusals by cause. */

import type { DemandView, MetricsView } from "../../api/types";
import type { CurvePoint } from "../../charts/Curve";
import { Curve } from "../../charts/Curve";
import { integer } from "../../wording";
import type { Counts } from "./counts";
import { causesOf } from "./counts";
import { cause, short, simTime } from "./wording";

interface CurvesProps {
  readonly metrics: MetricsView | null;
  readonly counts: Counts;
  readonly equivalent: string;
  /** Demand and served demand of the whole run; `null` while loading. */
  readonly demand: DemandView | null;
}

const percent = (value: number) => `${Math.round(value)} %`;
const tick = (at: number) => `tick ${integer(Math.round(at))}`;
const MAX_CAUSES = 4;
const WINDOW = 10;

export function Curves({ metrics, counts, equivalent, demand }: CurvesProps) {
  const causes = causesOf(counts);
  return (
    <section class="panel" aria-labelledby="credit-curves" data-testid="panel-curves">
      <h2 id="credit-curves">Metrics</h2>
      <div class="curves">
        <Curve
          name="successful payments"
          points={smoothed(seriesOf(metrics, "success_rate"))}
          writeValue={percent}
          writeAt={simTime}
          max={100}
          note="of attempts"
          empty="No attempts yet."
          testId="curve-made"
        />
        <Curve
          name="served demand"
          points={servedShare(metrics)}
          writeValue={percent}
          writeAt={simTime}
          max={100}
          note={servedNote(demand)}
          empty="No demand yet."
          testId="curve-served"
        />
        <Curve
          name="debt"
          points={seriesOf(metrics, "total_debt")}
          writeValue={short}
          writeAt={simTime}
          note={equivalent}
          empty="No debt yet."
          testId="curve-debt"
        />
        <Curve
          name="cleared"
          points={seriesOf(metrics, "clearing_volume").map((point) => (point.value === 0 ? gapAt(point) : point))}
          writeValue={short}
          writeAt={simTime}
          note={equivalent}
          bars
          empty="Nothing cleared yet."
          testId="curve-cleared"
        />
        <Curve
          name="clearing efficiency"
          points={efficiencyOf(counts)}
          writeValue={percent}
          writeAt={tick}
          max={100}
          bars
          empty="No clearing compared with its optimum since this page was opened."
          testId="curve-optimum"
        />
        {causes.slice(0, MAX_CAUSES).map(([code, count]) => (
          <Curve
            key={code}
            name={`refused: ${cause(code)}`}
            points={counts.ticks.map(({ tick: at, refused }) => ({ at, value: refused[code] ?? 0 }))}
            writeValue={short}
            writeAt={tick}
            note={`per tick, ${integer(count)} in total`}
            empty=""
            testId={`curve-${code}`}
          />
        ))}
      </div>
    </section>
  );
}

function gapAt({ at }: CurvePoint): CurvePoint {
  return { at, value: null };
}

/** Clearing efficiency with the first and last counted tick, so that all curves by tick share one axis. */
export function efficiencyOf({ ticks, efficiency }: Counts): CurvePoint[] {
  const ends = [ticks[0], ticks.at(-1)].flatMap((end) => (end === undefined ? [] : [{ at: end.tick, value: null }]));
  return [...ends, ...efficiency.map(({ tick: at, percent: value }) => ({ at, value }))];
}

export function seriesOf(metrics: MetricsView | null, key: string): CurvePoint[] {
  const series = metrics?.series.find((candidate) => candidate.key === key);
  return (series?.points ?? []).map(({ t_ms, v }) => ({ at: t_ms, value: v === null ? null : Number(v) }));
}

/** Served demand in percent over the last ten points; the demand of single ticks is too small. */
export function servedShare(metrics: MetricsView | null): CurvePoint[] {
  const [demand, served] = [seriesOf(metrics, "wanted"), seriesOf(metrics, "served")];
  const sum = (points: readonly CurvePoint[], index: number) =>
    points.slice(Math.max(0, index + 1 - WINDOW), index + 1).reduce((total, { value }) => total + (value ?? 0), 0);
  return demand.map(({ at }, index) => {
    const whole = sum(demand, index);
    return { at, value: whole === 0 ? null : (100 * sum(served, index)) / whole };
  });
}

function servedNote(demand: DemandView | null): string {
  const share = demand?.served_share ?? null;
  return share === null ? "before caps" : `${percent(Number(share))} in total`;
}

/** The moving mean over ten points, since single ticks vary too much. */
export function smoothed(points: readonly CurvePoint[]): CurvePoint[] {
  return points.map(({ at }, index) => {
    const window = points.slice(Math.max(0, index + 1 - WINDOW), index + 1).flatMap(({ value }) => value ?? []);
    return { at, value: window.length === 0 ? null : window.reduce((sum, value) => sum + value, 0) / window.length };
  });
}
