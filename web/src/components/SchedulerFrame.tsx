/** What stands around the page of every scheduler: the slider over its journal, the banner of the past, what went wrong. */

import type { ComponentChildren } from "preact";

import type { ApiError } from "../api/client";
import { ErrorNote } from "./ErrorNote";
import { JournalSlider } from "./JournalSlider";
import { PastBanner } from "./PastBanner";
import type { Stop, StopSource } from "./player";
import { TimeSlider } from "./TimeSlider";

/** Which records a journal has, and where its snapshots lie. */
export interface JournalExtent {
  readonly first: number;
  readonly last: number;
  readonly snapshots: readonly (readonly [number, number])[];
}

/** Where a scheduler stands: the moment it shows, those it can show, and what went wrong with it. */
export interface Frame {
  /** The record looked at; `null` is live. */
  readonly at: number | null;
  /** `null` while it is not known, and where a scheduler has no journal. */
  readonly journal: JournalExtent | null;
  readonly error: ApiError | null;
  readonly onMove: (at: number | null) => void;
}

/** How the slider of a scheduler tells and plays its times. */
export interface SliderTimes {
  readonly source: StopSource;
  readonly busy: boolean;
  /** The time of what is shown, in the words of the scheduler. */
  readonly time: string | null;
  readonly tell: (stop: Stop) => string;
}

interface SchedulerFrameProps extends Frame {
  readonly times?: SliderTimes;
  /** Said in the place of what is being fetched; `null` when there is something to show. */
  readonly fetching: string | null;
  readonly children: ComponentChildren;
}

export function SchedulerFrame({ at, journal, error, fetching, onMove, times, children }: SchedulerFrameProps) {
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
      {fetching !== null && error === null && <p class="quiet">{fetching}</p>}
      {children}
    </div>
  );
}
