/** The fields of command forms: their initial texts, and the command built from their texts. */

import type { Json, JsonObject } from "../../api/json";
import { parseJson, writeJson } from "../../api/json";
import type { FieldView, FormView } from "../../api/types";

/** Field texts by name; an empty text leaves the field out. */
export type FieldTexts = Readonly<Record<string, string>>;

export type CommandOrFault = { readonly command: JsonObject; readonly fault: null } | { readonly fault: string };

/** The initial texts of a form: the examples of its fields. */
export function initialFields({ fields }: FormView): FieldTexts {
  return Object.fromEntries(fields.map((field) => [field.name, textOf(field)]));
}

function textOf({ example, kind }: FieldView): string {
  if (example === null) return "";
  return typeof example === "string" && kind !== "json" ? example : writeJson(example as Json);
}

/** The command of a form, or the fault of its first invalid field. */
export function commandOf({ type, fields, inside }: FormView, texts: FieldTexts): CommandOrFault {
  const values: Record<string, Json> = {};
  for (const field of fields) {
    const text = (texts[field.name] ?? "").trim();
    if (text === "" && !field.required) continue;
    const fault = faultOf(field, text);
    if (fault !== null) return { fault: `${fieldLabel(field.name)} ${fault}.` };
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

/** Labels of fields whose names do not say their units. */
const LABELS: Readonly<Record<string, string>> = {
  t: "at (minute)",
  hold_min: "hold for (minutes)",
  for_ms: "for (ms)",
  dwell_ms: "dwell (ms)",
  ts: "timestamp",
};

/** The label of a field; `evidence_refs` is `evidence refs`. */
export function fieldLabel(name: string): string {
  return (Object.hasOwn(LABELS, name) ? LABELS[name] : undefined) ?? name.replaceAll("_", " ");
}
