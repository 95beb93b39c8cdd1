import { expect, test } from "vitest";

import { truncate } from "./shapes";

/** Every character is ten pixels wide. */
const context = { measureText: (text: string) => ({ width: text.length * 10 }) as TextMetrics };

test("a text that does not fit is cut with an ellipsis", () => {
  expect(truncate(context, "mend bridge", 110)).toBe("mend bridge");
  expect(truncate(context, "mend bridge", 80)).toBe("mend br…");
  expect(truncate(context, "mend bridge", 60)).toBe("mend…");
});

test("a text of which too little would remain is dropped", () => {
  expect(truncate(context, "mend bridge", 30)).toBe("");
});
