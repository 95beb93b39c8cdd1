/** The outcome of a submitted command: the first event about its actions once time advances. */

import type { Json, JsonObject } from "../../api/json";
import { isList, isObject } from "../../api/json";
import type { Verdict } from "../shared/Ask";

const CANCELLED = "Cancelled";

export function verdictOf(command: Json, event: JsonObject): Verdict | null {
  const { action_id: id, type, message, code } = event;
  if (typeof id !== "string") return null;
  const kind = requestKind(command, id);
  if (kind === null) return null;
  switch (type) {
    case "rejection":
    case "diagnostic":
      // Cancelling a later submission rejects it, which is success for the cancel command.
      return {
        refused: kind !== "cancel" || code !== CANCELLED,
        sentence: `${outcome(kind, code)}: ${String(message)}.`,
      };
    case "interrupt":
      return kind === "resume" ? null : { refused: false, sentence: `Done: ${id} was interrupted.` };
    case "start":
      return kind === "submit" || kind === "resume" ? { refused: false, sentence: `Done: ${id} started.` } : null;
    default:
      return null;
  }
}

function outcome(kind: string, code: Json | undefined): string {
  if (kind === "submit") return "Refused";
  return kind === "cancel" && code === CANCELLED ? "Done" : "No effect";
}

/** What the command does to an action; `null` if it does not mention it. */
function requestKind(command: Json, id: string): string | null {
  if (!isObject(command)) return null;
  const parts = (name: string) => {
    const list = command[name];
    return list !== undefined && isList(list) ? list.filter(isObject) : [];
  };
  if (parts("actions").some((action) => action["id"] === id)) return "submit";
  if (parts("interrupts").some((interrupt) => interrupt["target"] === id)) return "interrupt";
  if (parts("commands").some((request) => request["cancel"] === id)) return "cancel";
  return parts("commands").some((request) => request["resume"] === id) ? "resume" : null;
}
