/** JSON with exact integers of any size.
 *
 * `JSON.parse` rounds integers beyond 2^53, but seeds and generator states have 64 bits. Such integers are parsed as
 * `bigint` and written back unchanged.
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

/** Parse a JSON text; throws `SyntaxError` like `JSON.parse`. */
export function parseJson(text: string): Json {
  if (!WIDE_DIGITS.test(text)) return JSON.parse(text) as Json;
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${MARK_ESCAPED}${token}"` : token,
  );
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  ) as Json;
}

/** Format a value as JSON with exact integers and `indent` spaces per level. */
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

/** The value in one line for a table cell: strings without quotes, everything else close to JSON. */
export function inOneLine(value: Json): string {
  if (typeof value === "string") return value;
  if (value === null || typeof value !== "object") return writeScalar(value);
  if (isList(value)) return value.length === 0 ? "none" : value.map(nested).join(", ");
  return membersInOneLine(value) || "none";
}

/** A tagged object in one line, its type first: `add amount 3`. */
export function taggedInOneLine(value: Json): string {
  if (!isObject(value) || typeof value["type"] !== "string") return inOneLine(value);
  return `${value["type"]} ${membersInOneLine(withoutType(value))}`.trim();
}

/** The members of a tagged object except its type. */
export function withoutType(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== "type"));
}

/** Names and values in one line; empty when there are none. */
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
