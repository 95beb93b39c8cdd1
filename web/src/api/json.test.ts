import { expect, test } from "vitest";

import { inOneLine, parseJson, taggedInOneLine, writeJson } from "./json";

test("integers beyond 2^53 survive a round trip", () => {
  const text = '{"state":18446744073709551557,"below":-9007199254740993,"small":7}';

  const value = parseJson(text);

  expect(value).toEqual({ state: 18446744073709551557n, below: -9007199254740993n, small: 7 });
  expect(writeJson(value)).toBe(text);
});

test("digits inside strings and member names stay strings", () => {
  const text = '{"18446744073709551557":"a \\" 18446744073709551557","n":[1.5,18446744073709551557]}';

  expect(writeJson(parseJson(text))).toBe(text);
});

test("wide decimals stay numbers", () => {
  expect(parseJson("[0.12345678901234567, 1e20]")).toEqual([Number("0.12345678901234567"), 1e20]);
});

test("invalid JSON is rejected, with or without wide integers", () => {
  expect(() => parseJson("{")).toThrow(SyntaxError);
  expect(() => parseJson("{18446744073709551557")).toThrow(SyntaxError);
});

test("indented output equals that of JSON.stringify", () => {
  const value = { a: [1, { b: null }], c: {}, d: [] };

  expect(writeJson(value, 2)).toBe(JSON.stringify(value, null, 2));
});

test("one line has names and values without JSON punctuation", () => {
  expect(inOneLine({ by: 3, parts: [1, 2], who: { name: "ada" } })).toBe("by 3, parts [1, 2], who {name ada}");
  expect(inOneLine([])).toBe("none");
  expect(inOneLine(null)).toBe("null");
});

test("a tagged object starts with its type", () => {
  expect(taggedInOneLine({ amount: 3, type: "add" })).toBe("add amount 3");
  expect(taggedInOneLine({ type: "stop" })).toBe("stop");
  expect(taggedInOneLine({ amount: 3 })).toBe("amount 3");
});
