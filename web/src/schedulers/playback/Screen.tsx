/** What is on: the picture, where it comes from, how much of its time is over, and the buttons of a player. */

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
import type { OnCommand } from "./sending";
import { useSending } from "./sending";

const TICK_MS = 100;

interface ScreenProps {
  readonly now: PlayerNow;
  /** When `now` was told, by the clock of this page; null in the past, where time stands. */
  readonly toldAt: number | null;
  readonly onCommand: OnCommand;
}

export function Screen({ now, toldAt, onCommand }: ScreenProps) {
  const { item } = now;
  const caption = item === null ? null : captionOf(item.payload, item.kind);
  return (
    <section class="panel screen" aria-labelledby="screen" data-testid="screen">
      <h2 id="screen">{toldAt === null ? "What was on" : "What is on"}</h2>
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
            <span class="screen-told">
              {originOf(item)}
              {item.ordinal > 0 && `, item ${integer(item.ordinal)} of epoch ${integer(item.epoch_id)}`}
              {now.started_utc !== null && `, since ${timeOfDay(now.started_utc)}`}
            </span>
          </figcaption>
        </figure>
      )}
      <Dwell now={now} toldAt={toldAt} />
      <Buttons now={now} live={toldAt !== null} onCommand={onCommand} />
    </section>
  );
}

function Dwell({ now, toldAt }: Pick<ScreenProps, "now" | "toldAt">) {
  const clock = useClock(now, toldAt);
  const left = leftAt(now, clock);
  if (now.item === null) return null;
  return (
    <div class="dwell" data-paused={now.paused} data-testid="dwell">
      <progress max={1} value={progressAt(now, clock)} aria-label="How much of its time is over" />
      <span class="dwell-left">
        {now.paused ? "paused" : ""} {left === null ? "" : `${duration(left)} left`}
      </span>
    </div>
  );
}

/** The player's clock, counted on while it is live. */
function useClock(now: PlayerNow, toldAt: number | null): number {
  const present = useSignal(Date.now());
  const runs = toldAt !== null && now.ends_at !== null;
  useEffect(() => {
    if (!runs) return;
    const timer = setInterval(() => (present.value = Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [runs]);
  return toldAt === null ? now.clock : now.clock + Math.max(0, present.value - toldAt);
}

interface ButtonsProps extends Pick<ScreenProps, "now" | "onCommand"> {
  readonly live: boolean;
}

function Buttons({ now, live, onCommand }: ButtonsProps) {
  const { error, send } = useSending(onCommand);
  const closed = !live || !canCommand.value;
  const button = (name: string, title: string, command: () => JsonObject, off = false) => (
    <button
      type="button"
      class={name === "next" ? "button button-main" : "button"}
      disabled={closed || off}
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
      {!live && <p class="quiet">Go back to live to use the buttons: the past cannot be changed.</p>}
      {live && closed && <p class="quiet">Your role may look but not command.</p>}
      {error.value !== null && <ErrorNote error={error.value} />}
    </>
  );
}

/** An artwork that nobody has seen before. */
function newArtwork(): JsonObject {
  const drawn = crypto.getRandomValues(new Uint8Array(PAYLOAD_BYTES));
  const [id = 0] = crypto.getRandomValues(new Uint32Array(1));
  return { type: "insert", id, ts: Math.floor(Date.now() / 1000), payload: encoded(drawn) };
}
