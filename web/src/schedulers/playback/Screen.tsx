/** The current item: its picture, origin and elapsed time, and the player's buttons. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { JsonObject } from "../../api/json";
import { canCommand } from "../../api/server";
import type { PlayerNow } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { integer } from "../../wording";
import { channelOf, duration, leftAt, originOf, progressAt, timeOfDay } from "./model";
import { Picture } from "./Picture";
import { captionOf, encoded, PAYLOAD_BYTES } from "./picture";
import type { OnCommand } from "./use_command";
import { useCommand } from "./use_command";

const TICK_MS = 100;

interface ScreenProps {
  readonly now: PlayerNow;
  /** `Date.now()` of the response; `null` in the past. */
  readonly fetchedAt: number | null;
  readonly onCommand: OnCommand;
}

export function Screen({ now, fetchedAt, onCommand }: ScreenProps) {
  const { item } = now;
  const caption = item === null ? null : captionOf(item.payload, item.kind);
  return (
    <section class="panel screen" aria-labelledby="screen" data-testid="screen">
      <h2 id="screen">{fetchedAt === null ? "Shown then" : "Now showing"}</h2>
      {item === null ? (
        <p class="screen-blank" data-testid="blank">
          Nothing to show. Follow a channel, or insert a new artwork.
        </p>
      ) : (
        <figure class="screen-frame">
          <Picture payload={item.payload} id={item.id} title={`Item ${item.id} of ${channelOf(item)}`} />
          <figcaption>
            <strong data-testid="on-channel">{channelOf(item)}</strong>{" "}
            <span data-testid="on-id">{String(item.id)}</span>
            {caption !== null && <span class="quiet"> {caption}</span>}
            <span class="screen-origin">
              {originOf(item)}
              {item.ordinal > 0 && `, item ${integer(item.ordinal)} of epoch ${integer(item.epoch_id)}`}
              {now.started_utc !== null && `, since ${timeOfDay(now.started_utc)}`}
            </span>
          </figcaption>
        </figure>
      )}
      <Dwell now={now} fetchedAt={fetchedAt} />
      <Buttons now={now} live={fetchedAt !== null} onCommand={onCommand} />
    </section>
  );
}

function Dwell({ now, fetchedAt }: Pick<ScreenProps, "now" | "fetchedAt">) {
  const clock = useClock(now, fetchedAt);
  const left = leftAt(now, clock);
  if (now.item === null) return null;
  return (
    <div class="dwell" data-paused={now.paused} data-testid="dwell">
      <progress max={1} value={progressAt(now, clock)} aria-label="Elapsed display time" />
      <span class="dwell-left">
        {now.paused ? "paused" : ""} {left === null ? "" : `${duration(left)} left`}
      </span>
    </div>
  );
}

/** The player's clock, advanced while it is live. */
function useClock(now: PlayerNow, fetchedAt: number | null): number {
  const present = useSignal(Date.now());
  const isRunning = fetchedAt !== null && now.ends_at !== null;
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => (present.value = Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  return fetchedAt === null ? now.clock : now.clock + Math.max(0, present.value - fetchedAt);
}

interface ButtonsProps extends Pick<ScreenProps, "now" | "onCommand"> {
  readonly live: boolean;
}

function Buttons({ now, live, onCommand }: ButtonsProps) {
  const { error, send } = useCommand(onCommand);
  const isDisabled = !live || !canCommand.value;
  const button = (name: string, title: string, command: () => JsonObject, off = false) => (
    <button
      type="button"
      class={name === "next" ? "button button-main" : "button"}
      disabled={isDisabled || off}
      onClick={() => void send(command())}
      data-testid={`do-${name}`}
    >
      {title}
    </button>
  );
  return (
    <>
      <div class="screen-buttons" role="group" aria-label="Player">
        {button("prev", "Previous", () => ({ type: "prev" }), now.before.length === 0)}
        {now.paused
          ? button("resume", "Resume", () => ({ type: "resume" }))
          : button("pause", "Pause", () => ({ type: "pause" }))}
        {button("next", "Next", () => ({ type: "next" }))}
        {button("ban", "Hide until the channel changes", () => ({ type: "ban" }), now.item === null)}
        {button("insert", "New artwork", newArtwork)}
      </div>
      {!live && <p class="quiet">Go back to live to use the controls.</p>}
      {live && isDisabled && <p class="quiet">Read-only: needs the operator role.</p>}
      {error.value !== null && <ErrorNote error={error.value} />}
    </>
  );
}

/** A command that inserts a random new artwork. */
function newArtwork(): JsonObject {
  const bytes = crypto.getRandomValues(new Uint8Array(PAYLOAD_BYTES));
  const [id = 0] = crypto.getRandomValues(new Uint32Array(1));
  return { type: "insert", id, ts: Math.floor(Date.now() / 1000), payload: encoded(bytes) };
}
