/** What became of a command to a world that takes effect when time advances: the first event about its actions. */

import type { Json, JsonObject } from "../../api/json";
import { isList, isObject } from "../../api/json";
import type { Verdict } from "../shared/Ask";

const CANCELLED = "Cancelled";

export function verdictOf(command: Json, event: JsonObject): Verdict | null {
  const { action_id: id, type, message, code } = event;
  if (typeof id !== "string") return null;
  const word = wordFor(command, id);
  if (word === null) return null;
  switch (type) {
    case "rejection":
    case "diagnostic":
      // A submission for later that is cancelled before it comes is rejected: that is what was asked for.
      return {
        refused: word !== "cancel" || code !== CANCELLED,
        sentence: `${outcome(word, code)}: ${String(message)}.`,
      };
    case "interrupt":
      return word === "resume" ? null : { refused: false, sentence: `Done: ${id} was interrupted.` };
    case "start":
      return word === "submit" || word === "resume" ? { refused: false, sentence: `Done: ${id} started.` } : null;
    default:
      return null;
  }
}

function outcome(word: string, code: Json | undefined): string {
  if (word === "submit") return "Refused";
  return word === "cancel" && code === CANCELLED ? "Done" : "No effect";
}

/** What the command asks of an action; null where it does not speak of it. */
function wordFor(command: Json, id: string): string | null {
  if (!isObject(command)) return null;
  const parts = (name: string) => {
    const list = command[name];
    return list !== undefined && isList(list) ? list.filter(isObject) : [];
  };
  if (parts("actions").some((one) => one["id"] === id)) return "submit";
  if (parts("interrupts").some((one) => one["target"] === id)) return "interrupt";
  if (parts("commands").some((one) => one["cancel"] === id)) return "cancel";
  return parts("commands").some((one) => one["resume"] === id) ? "resume" : null;
}
