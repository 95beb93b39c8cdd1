/** Forms of commands as values: what stands in a field at first, and the command that comes of what stands there. */

import type { Json, JsonObject } from "../../api/json";
import { parseJson, writeJson } from "../../api/json";
import type { FieldView, FormView } from "../../api/types";

/** What stands in the fields, by name; an empty text is a field that is left out. */
export type Filled = Readonly<Record<string, string>>;

export type Read = { readonly command: JsonObject; readonly fault: null } | { readonly fault: string };

/** The fields as they are offered. */
export function offered({ fields }: FormView): Filled {
  return Object.fromEntries(fields.map((field) => [field.name, textOf(field)]));
}

function textOf({ example, kind }: FieldView): string {
  if (example === null) return "";
  return typeof example === "string" && kind !== "json" ? example : writeJson(example as Json);
}

/** The command of a form, or what is wrong with one of its fields. */
export function commandOf({ type, fields, inside }: FormView, filled: Filled): Read {
  const values: Record<string, Json> = {};
  for (const field of fields) {
    const text = (filled[field.name] ?? "").trim();
    if (text === "" && !field.required) continue;
    const fault = faultOf(field, text);
    if (fault !== null) return { fault: `${wordsOf(field.name)} ${fault}.` };
    values[field.name] = field.kind === "text" ? text : parseJson(text);
  }
  return { command: { type, ...(inside === null ? values : { [inside]: [values] }) }, fault: null };
}

function faultOf({ kind }: FieldView, text: string): string | null {
  if (text === "") return "is missing";
  if (kind === "text") return null;
  if (kind === "integer") return /^-?(0|[1-9]\d*)$/.test(text) ? null : `must be a whole number, not ${text}`;
  try {
    parseJson(text);
    return null;
  } catch {
    return "is not JSON";
  }
}

/** `hold_min` as `hold min`. */
export function wordsOf(name: string): string {
  return name.replaceAll("_", " ");
}
