/** Events of a world in plain sentences. */

import type { Json } from "../../api/json";
import { isList, isObject } from "../../api/json";
import type { WorldNow } from "../../api/types";
import type { Clock, WorldEvent } from "./model";
import { meta, metaNumber, minuteOf, span } from "./model";

const RESUMES: Readonly<Record<string, string>> = {
  auto: "goes on by itself",
  manual: "waits to be resumed",
  drop: "is dropped",
};

export type Tone = "plain" | "warn" | "bad";

/** How much an event asks for attention. */
export function toneOf({ type }: WorldEvent): Tone {
  return type === "rejection" ? "bad" : type === "diagnostic" || type === "interrupt" ? "warn" : "plain";
}

/** What happened, without whom it happened to: that stands beside it. */
export function told(event: WorldEvent, now: WorldNow, clock: Clock): string {
  const facts = meta(event);
  switch (event.type) {
    case "start": {
      const minutes = metaNumber(event, "d");
      const again = metaNumber(event, "segment") > 0 ? "goes on" : "starts";
      const waited = metaNumber(event, "waited");
      const until = clock.time(minuteOf(event, now) + minutes);
      return `${again}, ${span(minutes)} until ${until}${waited > 0 ? `, after waiting ${span(waited)}` : ""}`;
    }
    case "end":
      return facts["forced"] === true ? `is ended by force, ${span(metaNumber(event, "d_rem"))} left` : "is done";
    case "interrupt":
      return `is interrupted by ${plain(facts["by"])}, ${span(metaNumber(event, "d_rem"))} left; ${
        RESUMES[plain(facts["resume"])] ?? ""
      }`;
    case "visibility_change": {
      const scopes = `${plain(facts["from_scope"])} → ${plain(facts["to_scope"])}`;
      if (facts["reason"] === "expired") return `${plain(facts["knowledge"])} expires: ${scopes}`;
      if (facts["knowledge"] === `action:${event.action_id}`) return `becomes known to the player: ${scopes}`;
      return `brings ${plain(facts["knowledge"])} to light: ${scopes}`;
    }
    case "epoch":
      return `epoch ${event.epoch} begins${carried(event.body["carried_in"])}`;
    default:
      return plain(event.body["message"]);
  }
}

function carried(list: Json | undefined): string {
  if (list === undefined || !isList(list) || list.length === 0) return "";
  return `; ${list.map((one) => (isObject(one) ? plain(one["action_id"]) : "")).join(", ")} ${
    list.length === 1 ? "runs" : "run"
  } on from before`;
}

function plain(value: Json | undefined): string {
  return value === undefined || value === null ? "" : String(value);
}
