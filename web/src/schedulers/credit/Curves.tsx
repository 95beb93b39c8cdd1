/** How a run goes over time: payments made, refusals by cause, debt, what was cleared and how near that was to the best. */

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
  /** What was wanted and paid in the whole run; null while it is not known. */
  readonly demand: DemandView | null;
}

const percent = (value: number) => `${Math.round(value)} %`;
const tick = (at: number) => `tick ${integer(Math.round(at))}`;
const CAUSES_MOST = 4;
const WINDOW = 10;

export function Curves({ metrics, counts, equivalent, demand }: CurvesProps) {
  const causes = causesOf(counts);
  return (
    <section class="panel" aria-labelledby="credit-curves" data-testid="panel-curves">
      <h2 id="credit-curves">How it goes</h2>
      <div class="curves">
        <Curve
          name="payments made"
          points={smoothed(seriesOf(metrics, "success_rate"))}
          writeValue={percent}
          writeAt={simTime}
          max={100}
          note="of those tried"
          empty="Nothing was tried yet."
          testId="curve-made"
        />
        <Curve
          name="paid of what was wanted"
          points={servedShare(metrics)}
          writeValue={percent}
          writeAt={simTime}
          max={100}
          note={servedNote(demand)}
          empty="Nothing was wanted yet."
          testId="curve-served"
        />
        <Curve
          name="debt"
          points={seriesOf(metrics, "total_debt")}
          writeValue={short}
          writeAt={simTime}
          note={equivalent}
          empty="Nobody owes anything yet."
          testId="curve-debt"
        />
        <Curve
          name="cleared"
          points={seriesOf(metrics, "clearing_volume").map((point) => (point.value === 0 ? nothing(point) : point))}
          writeValue={short}
          writeAt={simTime}
          note={equivalent}
          bars
          empty="Nothing was cleared yet."
          testId="curve-cleared"
        />
        <Curve
          name="of the best clearing"
          points={nearnessOf(counts)}
          writeValue={percent}
          writeAt={tick}
          max={100}
          bars
          empty="No clearing was measured against the best one since this page was opened."
          testId="curve-optimum"
        />
        {causes.slice(0, CAUSES_MOST).map(([code, count]) => (
          <Curve
            key={code}
            name={`refused: ${cause(code)}`}
            points={counts.ticks.map(({ tick: at, refused }) => ({ at, value: refused[code] ?? 0 }))}
            writeValue={short}
            writeAt={tick}
            note={`a tick, ${integer(count)} in all`}
            empty=""
            testId={`curve-${code}`}
          />
        ))}
      </div>
    </section>
  );
}

function nothing({ at }: CurvePoint): CurvePoint {
  return { at, value: null };
}

/** The clearings among the ticks that were counted, so that all curves by tick have one axis. */
export function nearnessOf({ ticks, nearness }: Counts): CurvePoint[] {
  const ends = [ticks[0], ticks.at(-1)].flatMap((one) => (one === undefined ? [] : [{ at: one.tick, value: null }]));
  return [...ends, ...nearness.map(({ tick: at, percent: value }) => ({ at, value }))];
}

export function seriesOf(metrics: MetricsView | null, key: string): CurvePoint[] {
  const found = metrics?.series.find((one) => one.key === key);
  return (found?.points ?? []).map(({ t_ms, v }) => ({ at: t_ms, value: v === null ? null : Number(v) }));
}

/** Of what was wanted in the last ten points, how many per cent were paid: single ticks want too little. */
export function servedShare(metrics: MetricsView | null): CurvePoint[] {
  const [wanted, served] = [seriesOf(metrics, "wanted"), seriesOf(metrics, "served")];
  const sum = (points: readonly CurvePoint[], place: number) =>
    points.slice(Math.max(0, place + 1 - WINDOW), place + 1).reduce((total, { value }) => total + (value ?? 0), 0);
  return wanted.map(({ at }, place) => {
    const whole = sum(wanted, place);
    return { at, value: whole === 0 ? null : (100 * sum(served, place)) / whole };
  });
}

function servedNote(demand: DemandView | null): string {
  const share = demand?.served_share ?? null;
  return share === null ? "before the ledger capped it" : `${percent(Number(share))} in all`;
}

/** The mean of the last ten points: what a single tick does says little. */
export function smoothed(points: readonly CurvePoint[]): CurvePoint[] {
  return points.map(({ at }, place) => {
    const window = points.slice(Math.max(0, place + 1 - WINDOW), place + 1).flatMap(({ value }) => value ?? []);
    return { at, value: window.length === 0 ? null : window.reduce((sum, value) => sum + value, 0) / window.length };
  });
}
