import { expect, test } from "vitest";

import { fitted } from "./shapes";

/** Every character is ten pixels wide. */
const context = { measureText: (text: string) => ({ width: text.length * 10 }) as TextMetrics };

test("a text that fits is written whole, one that does not is cut", () => {
  expect(fitted(context, "mend bridge", 110)).toBe("mend bridge");
  expect(fitted(context, "mend bridge", 80)).toBe("mend br…");
  expect(fitted(context, "mend bridge", 60)).toBe("mend…");
});

test("a text of which nothing would be left is not written", () => {
  expect(fitted(context, "mend bridge", 30)).toBe("");
});
