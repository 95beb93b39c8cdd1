/** Says that a moment of the past is shown, and leads back to the present. */

import { integer } from "../wording";

interface PastBannerProps {
  /** The record looked at. */
  readonly at: number;
  /** Its time, in words. */
  readonly time?: string | null;
  readonly onLive: () => void;
  /** What is numbered. */
  readonly unit?: "record" | "event";
}

export function PastBanner({ at, time = null, onLive, unit = "record" }: PastBannerProps) {
  return (
    <div class="past-banner" role="status" data-testid="past-banner">
      <p>
        You are looking at {time === null ? "the past" : <strong>{time}</strong>}: the state after {unit}{" "}
        <strong>{integer(at)}</strong>.
      </p>
      <button type="button" class="button button-main" onClick={onLive} data-testid="back-to-live">
        Back to live
      </button>
    </div>
  );
}
