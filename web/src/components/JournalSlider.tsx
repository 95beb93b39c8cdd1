/** The slider over a journal with time labels, playback at a chosen speed, and buttons for the previous and next incident. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";

import { asApiError } from "../api/client";
import type { Stop, StopSource } from "./player";
import { Player, SPEEDS } from "./player";
import type { SliderTick, TimeSliderProps } from "./TimeSlider";
import { TimeSlider } from "./TimeSlider";

const POINTS = 5;
/** The growth of a journal after which its times are fetched again. */
const GROWN = 1.05;

interface JournalSliderProps extends Omit<TimeSliderProps, "ticks"> {
  readonly source: StopSource;
  /** Whether the page still shows another moment than the one requested. */
  readonly busy: boolean;
  /** Format the time of a moment in the units of the scheduler. */
  readonly formatTime: (stop: Stop) => string;
}

export function JournalSlider({ source, busy, formatTime, onMove, ...slider }: JournalSliderProps) {
  const { first, last, at, unit = "record" } = slider;
  const isBusy = useRef(busy);
  isBusy.current = busy;
  const stops = useStops(source, last);
  const status = useSignal("");
  const move = useRef(onMove);
  move.current = onMove;
  const player = useMemo(
    () =>
      new Player(
        source,
        (n) => move.current(n),
        () => !isBusy.current,
      ),
    [source],
  );
  useEffect(() => () => player.stop(), [player]);
  const moveManually = (n: number | null) => {
    player.stop();
    status.value = "";
    onMove(n);
  };
  const jump = async (side: "after" | "before") => {
    player.stop();
    try {
      const incident = await source.incident(side, at ?? last + 1);
      status.value = incident?.sentence ?? (side === "after" ? "No later incident." : "No earlier incident.");
      if (incident !== null) onMove(incident.n);
    } catch (thrown) {
      status.value = asApiError(thrown).message;
    }
  };
  const play = () => {
    if (player.on.value) player.stop();
    else void player.start(at ?? first);
  };
  const ticks: SliderTick[] = stops.map((stop) => ({ n: stop.n, label: formatTime(stop) }));
  return (
    <div class="journal-slider">
      <TimeSlider {...slider} ticks={ticks} onMove={moveManually} />
      <div class="slider-play" role="group" aria-label={`Play the ${unit}s`}>
        <button
          type="button"
          class="button"
          aria-pressed={player.on.value}
          disabled={last <= first}
          onClick={play}
          data-testid="play"
        >
          <span aria-hidden="true">{player.on.value ? "⏸" : "▶"}</span> {player.on.value ? "Pause" : "Play"}
        </button>
        <label class="slider-speed">
          Speed
          <select
            value={player.speed.value}
            onChange={({ currentTarget }) => (player.speed.value = Number(currentTarget.value))}
            data-testid="speed"
          >
            {SPEEDS.map((speed) => (
              <option key={speed} value={speed}>
                {speed}×
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="button" onClick={() => void jump("before")} data-testid="incident-before">
          <span aria-hidden="true">‹ ▲</span> Previous incident
        </button>
        <button
          type="button"
          class="button"
          disabled={at === null}
          onClick={() => void jump("after")}
          data-testid="incident-after"
        >
          Next incident <span aria-hidden="true">▲ ›</span>
        </button>
        {slider.snapshots.length > 0 && (
          <span
            class="slider-legend"
            title="Marks below the slider show stored snapshots; moments after a snapshot are replayed from it."
          >
            <span class="slider-legend-mark" aria-hidden="true" /> snapshot
          </span>
        )}
        <p class="slider-status" role="status" data-testid="slider-status">
          {status}
        </p>
      </div>
    </div>
  );
}

/** Evenly spaced moments of the journal with their times, fetched again when it has grown. */
function useStops(source: StopSource, last: number): readonly Stop[] {
  const stops = useSignal<readonly Stop[]>([]);
  const fetchedUpTo = useRef(-1);
  useEffect(() => {
    fetchedUpTo.current = -1;
  }, [source]);
  useEffect(() => {
    if (last <= fetchedUpTo.current * GROWN) return;
    fetchedUpTo.current = last;
    source.sample(POINTS).then(
      (moments) => (stops.value = moments),
      () => undefined,
    );
  }, [source, last]);
  return stops.value;
}
