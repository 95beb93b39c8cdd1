/** A slider over the numbers of a journal's records, with marks where snapshots lie; its right end is now. */

import { integer } from "../wording";
import { roomForMarks } from "./marks";

export interface TimeSliderProps {
  readonly first: number;
  readonly last: number;
  /** The record looked at; `null` is live. */
  readonly at: number | null;
  readonly snapshots: readonly (readonly [number, number])[];
  readonly onMove: (at: number | null) => void;
}

export function TimeSlider({ first, last, at, snapshots, onMove }: TimeSliderProps) {
  const shown = Math.min(Math.max(at ?? last, first), last);
  const moveTo = (n: number) => onMove(n >= last ? null : Math.max(first, n));
  const earlier = snapshots.findLast(([n]) => n < shown)?.[0] ?? first;
  return (
    <div class="slider" data-testid="time-slider" data-live={at === null}>
      <div class="slider-buttons">
        <Step label="Back to the snapshot before" sign="«" disabled={shown <= first} onClick={() => moveTo(earlier)} />
        <Step label="One record back" sign="‹" disabled={shown <= first} onClick={() => moveTo(shown - 1)} />
        <Step label="One record on" sign="›" disabled={at === null} onClick={() => moveTo(shown + 1)} />
      </div>
      <div class="slider-scale">
        <input
          type="range"
          min={first}
          max={last}
          step={1}
          value={shown}
          disabled={last <= first}
          aria-label="Moment in the journal, by record number"
          aria-valuetext={at === null ? `live, record ${last}` : `record ${shown} of ${last}`}
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
