/** The frame of every scheduler page: the journal slider, the banner for past moments, and errors. */

import type { ComponentChildren } from "preact";

import type { ApiError } from "../api/client";
import { ErrorNote } from "./ErrorNote";
import { JournalSlider } from "./JournalSlider";
import { PastBanner } from "./PastBanner";
import type { Stop, StopSource } from "./player";
import { TimeSlider } from "./TimeSlider";

/** The record numbers of a journal, and `[record, time]` of its snapshots. */
export interface JournalExtent {
  readonly first: number;
  readonly last: number;
  readonly snapshots: readonly (readonly [number, number])[];
}

/** The moment a page shows, the moments it can show, and its error. */
export interface Frame {
  /** The record shown; `null` is live. */
  readonly at: number | null;
  /** `null` while it is loading, and for schedulers without a journal. */
  readonly journal: JournalExtent | null;
  readonly error: ApiError | null;
  readonly onMove: (at: number | null) => void;
}

/** What the journal slider of a scheduler needs to label and play times. */
export interface SliderTimes {
  readonly source: StopSource;
  readonly busy: boolean;
  /** The formatted time of the moment shown. */
  readonly time: string | null;
  readonly formatTime: (stop: Stop) => string;
}

interface SchedulerFrameProps extends Frame {
  readonly times?: SliderTimes;
  /** The loading text; `null` when there is something to show. */
  readonly loading: string | null;
  readonly children: ComponentChildren;
}

export function SchedulerFrame({ at, journal, error, loading, onMove, times, children }: SchedulerFrameProps) {
  return (
    <div class="scheduler" data-testid="scheduler" data-live={at === null}>
      {journal !== null &&
        (times === undefined ? (
          <TimeSlider {...journal} at={at} onMove={onMove} />
        ) : (
          <JournalSlider {...journal} {...times} at={at} onMove={onMove} />
        ))}
      {at !== null && <PastBanner at={at} time={times?.time ?? null} onLive={() => onMove(null)} />}
      {error !== null && <ErrorNote error={error} />}
      {loading !== null && error === null && <p class="quiet">{loading}</p>}
      {children}
    </div>
  );
}
