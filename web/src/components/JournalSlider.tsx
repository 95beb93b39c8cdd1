/** The slider over a journal with all that belongs to it: its times, playing at a chosen speed, and the way from one
 * incident to the next. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";

import { asApiError } from "../api/client";
import type { Stop, StopSource } from "./player";
import { Playing, SPEEDS } from "./player";
import type { SliderTick, TimeSliderProps } from "./TimeSlider";
import { TimeSlider } from "./TimeSlider";

const POINTS = 5;
/** How much a journal grows before its times are asked for again. */
const GROWN = 1.05;

interface JournalSliderProps extends Omit<TimeSliderProps, "ticks"> {
  readonly source: StopSource;
  /** True while what is shown is an older moment than the one asked for. */
  readonly busy: boolean;
  /** A moment's time in the words of the scheduler. */
  readonly tell: (stop: Stop) => string;
}

export function JournalSlider({ source, busy, tell, onMove, ...slider }: JournalSliderProps) {
  const { first, last, at, unit = "record" } = slider;
  const waits = useRef(busy);
  waits.current = busy;
  const stops = useStops(source, last);
  const said = useSignal("");
  const move = useRef(onMove);
  move.current = onMove;
  const playing = useMemo(
    () =>
      new Playing(
        source,
        (n) => move.current(n),
        () => !waits.current,
      ),
    [source],
  );
  useEffect(() => () => playing.stop(), [playing]);
  const moveByHand = (n: number | null) => {
    playing.stop();
    said.value = "";
    onMove(n);
  };
  const jump = async (side: "after" | "before") => {
    playing.stop();
    try {
      const found = await source.incident(side, at ?? last + 1);
      said.value =
        found?.sentence ??
        (side === "after" ? "There is no incident after this." : "There is no incident before this.");
      if (found !== null) onMove(found.n);
    } catch (thrown) {
      said.value = asApiError(thrown).message;
    }
  };
  const play = () => {
    if (playing.on.value) playing.stop();
    else void playing.start(at ?? first);
  };
  const ticks: SliderTick[] = stops.map((stop) => ({ n: stop.n, words: tell(stop) }));
  return (
    <div class="journal-slider">
      <TimeSlider {...slider} ticks={ticks} onMove={moveByHand} />
      <div class="slider-play" role="group" aria-label={`Play the ${unit}s`}>
        <button
          type="button"
          class="button"
          aria-pressed={playing.on.value}
          disabled={last <= first}
          onClick={play}
          data-testid="play"
        >
          <span aria-hidden="true">{playing.on.value ? "⏸" : "▶"}</span> {playing.on.value ? "Pause" : "Play"}
        </button>
        <label class="slider-speed">
          Speed
          <select
            value={playing.speed.value}
            onChange={({ currentTarget }) => (playing.speed.value = Number(currentTarget.value))}
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
          <span aria-hidden="true">‹ ▲</span> Incident before
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
            title="Snapshots of the state are kept at the marks below the slider; moments after them are worked out."
          >
            <span class="slider-legend-mark" aria-hidden="true" /> snapshot
          </span>
        )}
        <p class="slider-said" role="status" data-testid="slider-said">
          {said}
        </p>
      </div>
    </div>
  );
}

/** Moments of the journal with their times, asked for again when it has grown. */
function useStops(source: StopSource, last: number): readonly Stop[] {
  const stops = useSignal<readonly Stop[]>([]);
  const asked = useRef(-1);
  useEffect(() => {
    asked.current = -1;
  }, [source]);
  useEffect(() => {
    if (last <= asked.current * GROWN) return;
    asked.current = last;
    source.spread(POINTS).then(
      (found) => (stops.value = found),
      () => undefined,
    );
  }, [source, last]);
  return stops.value;
}
