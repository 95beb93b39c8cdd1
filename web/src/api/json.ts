/** JSON as the engines mean it: integers of any size stay exact.
 *
 * `JSON.parse` rounds integers beyond 2^53; seeds and generator states are 64 bits wide. Such integers are read as
 * `bigint` and written back digit for digit.
 */

export type Json = null | boolean | number | bigint | string | JsonList | JsonObject;
export type JsonList = readonly Json[];
export interface JsonObject {
  readonly [name: string]: Json;
}

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const WIDE_DIGITS = /\d{16}/;
const INTEGER = /^-?\d+$/;
const MARK = "\u0000integer:";
const MARK_ESCAPED = "\\u0000integer:";

/** The value of a JSON text; throws `SyntaxError` like `JSON.parse`. */
export function parseJson(text: string): Json {
  if (!WIDE_DIGITS.test(text)) return JSON.parse(text) as Json;
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${MARK_ESCAPED}${token}"` : token,
  );
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  ) as Json;
}

/** JSON text of a value, integers digit for digit; `indent` spaces a level, none by default. */
export function writeJson(value: Json, indent = 0, level = 1): string {
  if (value === null || typeof value !== "object") return writeScalar(value);
  const [open, close, parts] = isList(value)
    ? ["[", "]", value.map((item) => writeJson(item, indent, level + 1))]
    : [
        "{",
        "}",
        Object.entries(value).map(
          ([name, item]) => `${JSON.stringify(name)}:${indent ? " " : ""}${writeJson(item, indent, level + 1)}`,
        ),
      ];
  if (parts.length === 0) return open + close;
  if (indent === 0) return open + parts.join(",") + close;
  const inner = `\n${" ".repeat(indent * level)}`;
  const outer = `\n${" ".repeat(indent * (level - 1))}`;
  return open + inner + parts.join(`,${inner}`) + outer + close;
}

/** The value in one short line for a table cell: strings bare, the rest as JSON with air. */
export function inOneLine(value: Json): string {
  if (typeof value === "string") return value;
  if (value === null || typeof value !== "object") return writeScalar(value);
  if (isList(value)) return value.length === 0 ? "none" : value.map(nested).join(", ");
  return membersInOneLine(value) || "none";
}

/** A tagged object in one short line, its type first: `add amount 3`. */
export function taggedInOneLine(value: Json): string {
  if (!isObject(value) || typeof value["type"] !== "string") return inOneLine(value);
  return `${value["type"]} ${membersInOneLine(withoutType(value))}`.trim();
}

/** The members of a tagged object beside its type. */
export function withoutType(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== "type"));
}

/** Names and values in one short line; nothing when there are none. */
export function membersInOneLine(value: JsonObject): string {
  return Object.entries(value)
    .map(([name, item]) => `${name} ${nested(item)}`)
    .join(", ");
}

export function isList(value: Json): value is JsonList {
  return Array.isArray(value);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function nested(value: Json): string {
  if (value !== null && typeof value === "object")
    return isList(value) ? `[${value.map(nested).join(", ")}]` : `{${inOneLine(value)}}`;
  return inOneLine(value);
}

function writeScalar(value: null | boolean | number | bigint | string): string {
  return typeof value === "bigint" ? value.toString() : JSON.stringify(value);
}
