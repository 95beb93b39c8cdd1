/** A slider over the records of a journal or the events of an audit trail, labelled with times. Marks show snapshots; the
 * right end is live. */

import { integer } from "../wording";
import { markPositions } from "./marks";

export interface TimeSliderProps {
  readonly first: number;
  readonly last: number;
  /** The record shown; `null` is live. */
  readonly at: number | null;
  readonly snapshots: readonly (readonly [number, number])[];
  readonly onMove: (at: number | null) => void;
  /** What the slider counts. */
  readonly unit?: "record" | "event";
  /** The formatted time of the record shown; `null` when unknown. */
  readonly time?: string | null;
  /** Records with their time labels, ascending. */
  readonly ticks?: readonly SliderTick[];
}

export interface SliderTick {
  readonly n: number;
  readonly label: string;
}

export function TimeSlider(props: TimeSliderProps) {
  const { first, last, at, snapshots, onMove, unit = "record", time = null, ticks = [] } = props;
  const shown = Math.min(Math.max(at ?? last, first), last);
  const moveTo = (n: number) => onMove(n >= last ? null : Math.max(first, n));
  const earlier = snapshots.findLast(([n]) => n < shown)?.[0] ?? first;
  return (
    <div class="slider" data-testid="time-slider" data-live={at === null}>
      <div class="slider-buttons">
        <Step
          label={snapshots.length > 0 ? "Back to the previous snapshot" : `Back to the first ${unit}`}
          sign="«"
          disabled={shown <= first}
          onClick={() => moveTo(earlier)}
        />
        <Step label={`One ${unit} back`} sign="‹" disabled={shown <= first} onClick={() => moveTo(shown - 1)} />
        <Step label={`One ${unit} forward`} sign="›" disabled={at === null} onClick={() => moveTo(shown + 1)} />
      </div>
      <div class="slider-scale">
        <input
          type="range"
          min={first}
          max={last}
          step={1}
          value={shown}
          disabled={last <= first}
          aria-label={`Moment in the ${unit === "record" ? "journal" : "trail"}`}
          aria-valuetext={valueText(at, shown, last, unit, time)}
          data-testid="time-slider-input"
          onInput={(event) => moveTo(Number(event.currentTarget.value))}
        />
        <div class="slider-marks" aria-hidden="true">
          {markPositions(snapshots, first, last).map((share) => (
            <span key={share} class="slider-mark" style={{ left: `${share}%` }} title="snapshot" />
          ))}
        </div>
        <Scale first={first} last={last} ticks={ticks} />
      </div>
      <div class="slider-end">
        <button
          type="button"
          class="button slider-live"
          aria-pressed={at === null}
          onClick={() => onMove(null)}
          data-testid="slider-live"
        >
          Live
        </button>
        {time !== null && (
          <span class="slider-time" title={`${unit} ${shown}`} data-testid="slider-time">
            {time}
          </span>
        )}
      </div>
    </div>
  );
}

function valueText(at: number | null, shown: number, last: number, unit: string, time: string | null): string {
  const position = at === null ? `live, ${unit} ${last}` : `${unit} ${shown} of ${last}`;
  return time === null ? position : `${time}, ${position}`;
}

/** The time labels below the slider; the record numbers of its ends while no time is known. */
function Scale({ first, last, ticks }: Pick<Required<TimeSliderProps>, "first" | "last" | "ticks">) {
  if (ticks.length === 0 || last <= first) {
    return (
      <div class="slider-ends" aria-hidden="true">
        <span>{integer(first)}</span>
        <span>{integer(last)}</span>
      </div>
    );
  }
  return (
    <div class="slider-ticks" aria-hidden="true" data-testid="slider-ticks">
      {ticks.map(({ n, label }, index) => (
        <span
          key={n}
          data-edge={index === 0 ? "first" : index === ticks.length - 1 ? "last" : undefined}
          style={{ left: `${(100 * Math.min(Math.max(n - first, 0), last - first)) / (last - first)}%` }}
        >
          {label}
        </span>
      ))}
    </div>
  );
}

interface StepProps {
  readonly label: string;
  readonly sign: string;
  readonly disabled: boolean;
  readonly onClick: () => void;
}

export function Step({ label, sign, disabled, onClick }: StepProps) {
  return (
    <button
      type="button"
      class="button button-icon"
      aria-label={label}
      title={label}
      disabled={disabled}
      onClick={onClick}
    >
      <span aria-hidden="true">{sign}</span>
    </button>
  );
}
