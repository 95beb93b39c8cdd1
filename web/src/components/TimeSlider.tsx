/** A slider over the numbers of a journal's records, or of a trail's events; marks show where snapshots lie, and its
 * right end is now. */

import { integer } from "../wording";
import { roomForMarks } from "./marks";

export interface TimeSliderProps {
  readonly first: number;
  readonly last: number;
  /** The record looked at; `null` is live. */
  readonly at: number | null;
  readonly snapshots: readonly (readonly [number, number])[];
  readonly onMove: (at: number | null) => void;
  /** What is numbered. */
  readonly unit?: "record" | "event";
}

export function TimeSlider({ first, last, at, snapshots, onMove, unit = "record" }: TimeSliderProps) {
  const shown = Math.min(Math.max(at ?? last, first), last);
  const moveTo = (n: number) => onMove(n >= last ? null : Math.max(first, n));
  const earlier = snapshots.findLast(([n]) => n < shown)?.[0] ?? first;
  return (
    <div class="slider" data-testid="time-slider" data-live={at === null}>
      <div class="slider-buttons">
        <Step
          label={snapshots.length > 0 ? "Back to the snapshot before" : `Back to the first ${unit}`}
          sign="«"
          disabled={shown <= first}
          onClick={() => moveTo(earlier)}
        />
        <Step label={`One ${unit} back`} sign="‹" disabled={shown <= first} onClick={() => moveTo(shown - 1)} />
        <Step label={`One ${unit} on`} sign="›" disabled={at === null} onClick={() => moveTo(shown + 1)} />
      </div>
      <div class="slider-scale">
        <input
          type="range"
          min={first}
          max={last}
          step={1}
          value={shown}
          disabled={last <= first}
          aria-label={`Moment in the ${unit === "record" ? "journal" : "trail"}, by ${unit} number`}
          aria-valuetext={at === null ? `live, ${unit} ${last}` : `${unit} ${shown} of ${last}`}
          data-testid="time-slider-input"
          onInput={(event) => moveTo(Number(event.currentTarget.value))}
        />
        <div class="slider-marks" aria-hidden="true">
          {roomForMarks(snapshots, first, last).map((share) => (
            <span key={share} class="slider-mark" style={{ left: `${share}%` }} title="snapshot" />
          ))}
        </div>
        <div class="slider-ends" aria-hidden="true">
          <span>{integer(first)}</span>
          <span>{integer(last)}</span>
        </div>
      </div>
      <button
        type="button"
        class="button slider-live"
        aria-pressed={at === null}
        onClick={() => onMove(null)}
        data-testid="slider-live"
      >
        Live
      </button>
    </div>
  );
}

interface StepProps {
  readonly label: string;
  readonly sign: string;
  readonly disabled: boolean;
  readonly onClick: () => void;
}

function Step({ label, sign, disabled, onClick }: StepProps) {
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
