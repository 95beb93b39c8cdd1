/** Sentences about events of a world. */

import type { Json } from "../../api/json";
import { isList, isObject } from "../../api/json";
import type { WorldNow } from "../../api/types";
import type { Clock, WorldEvent } from "./model";
import { meta, metaNumber, minuteOf, span } from "./model";

const RESUMES: Readonly<Record<string, string>> = {
  auto: "resumes automatically",
  manual: "waits for a resume command",
  drop: "dropped",
};

export type Tone = "plain" | "warn" | "bad";

/** The highlight of an event. */
export function toneOf({ type }: WorldEvent): Tone {
  return type === "rejection" ? "bad" : type === "diagnostic" || type === "interrupt" ? "warn" : "plain";
}

/** A sentence about an event without its actor and action, which are shown beside it. */
export function eventSentence(event: WorldEvent, now: WorldNow, clock: Clock): string {
  const facts = meta(event);
  switch (event.type) {
    case "start": {
      const minutes = metaNumber(event, "d");
      const start = metaNumber(event, "segment") > 0 ? "resumes" : "starts";
      const waited = metaNumber(event, "waited");
      const until = clock.time(minuteOf(event, now) + minutes);
      return `${start}, ${span(minutes)} until ${until}${waited > 0 ? `, after waiting ${span(waited)}` : ""}`;
    }
    case "end":
      return facts["forced"] === true ? `ended early, ${span(metaNumber(event, "d_rem"))} left` : "done";
    case "interrupt":
      return interruption(plain(facts["by"]), plain(facts["resume"]), span(metaNumber(event, "d_rem")));
    case "visibility_change": {
      const scopes = `${plain(facts["from_scope"])} → ${plain(facts["to_scope"])}`;
      if (facts["reason"] === "expired") return `${plain(facts["knowledge"])} expires: ${scopes}`;
      if (facts["knowledge"] === `action:${event.action_id}`) return `becomes visible to the player: ${scopes}`;
      return `reveals ${plain(facts["knowledge"])}: ${scopes}`;
    }
    case "epoch":
      return `epoch ${event.epoch} starts${carried(event.body["carried_in"])}`;
    default:
      return plain(event.body["message"]);
  }
}

function interruption(by: string, resume: string, left: string): string {
  if (by === "cancel" && resume === "drop") return `cancelled with ${left} left`;
  return `interrupted by ${by} with ${left} left; ${RESUMES[resume] ?? ""}`;
}

function carried(list: Json | undefined): string {
  if (list === undefined || !isList(list) || list.length === 0) return "";
  const actions = list.map((carry) => (isObject(carry) ? plain(carry["action_id"]) : "")).join(", ");
  return `; ${actions} ${list.length === 1 ? "continues" : "continue"} from the previous epoch`;
}

function plain(value: Json | undefined): string {
  return value === undefined || value === null ? "" : String(value);
}
