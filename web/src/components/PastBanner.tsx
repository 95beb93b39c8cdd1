/** A banner shown while the page displays a past moment, with a button back to live. */

import { integer } from "../wording";

interface PastBannerProps {
  /** The record shown. */
  readonly at: number;
  /** Its formatted time. */
  readonly time?: string | null;
  readonly onLive: () => void;
  /** What `at` counts. */
  readonly unit?: "record" | "event";
}

export function PastBanner({ at, time = null, onLive, unit = "record" }: PastBannerProps) {
  return (
    <div class="past-banner" role="status" data-testid="past-banner">
      <p>
        Viewing {time === null ? "the past" : <strong>{time}</strong>}: the state after {unit}{" "}
        <strong>{integer(at)}</strong>.
      </p>
      <button type="button" class="button button-main" onClick={onLive} data-testid="back-to-live">
        Back to live
      </button>
    </div>
  );
}
