/** What stands around the page of every room: the slider over its journal, the banner of the past, what went wrong. */

import type { ComponentChildren } from "preact";

import type { ApiError } from "../api/client";
import { ErrorNote } from "./ErrorNote";
import { PastBanner } from "./PastBanner";
import { TimeSlider } from "./TimeSlider";

/** Which records a journal has, and where its snapshots lie. */
export interface JournalExtent {
  readonly first: number;
  readonly last: number;
  readonly snapshots: readonly (readonly [number, number])[];
}

/** Where a room stands: the moment it shows, those it can show, and what went wrong with it. */
export interface Frame {
  /** The record looked at; `null` is live. */
  readonly at: number | null;
  /** `null` while it is not known, and where a room has no journal. */
  readonly journal: JournalExtent | null;
  readonly error: ApiError | null;
  readonly onMove: (at: number | null) => void;
}

interface RoomFrameProps extends Frame {
  /** Said in the place of what is being fetched; `null` when there is something to show. */
  readonly fetching: string | null;
  readonly children: ComponentChildren;
}

export function RoomFrame({ at, journal, error, fetching, onMove, children }: RoomFrameProps) {
  return (
    <div class="room" data-testid="room" data-live={at === null}>
      {journal !== null && <TimeSlider {...journal} at={at} onMove={onMove} />}
      {at !== null && <PastBanner at={at} onLive={() => onMove(null)} />}
      {error !== null && <ErrorNote error={error} />}
      {fetching !== null && error === null && <p class="quiet">{fetching}</p>}
      {children}
    </div>
  );
}
