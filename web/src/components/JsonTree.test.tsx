// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { draw, find, texts } from "../testing/drawing";
import { JsonTree } from "./JsonTree";

test("a tree shows members by name and lists of similar objects as tables", () => {
  const page = draw(
    <JsonTree
      name="state"
      value={{
        total: 18446744073709551557n,
        pending: [
          { at: 1, amount: 2 },
          { at: 3, amount: 4 },
        ],
        empty: [],
      }}
    />,
  );

  expect(texts(page, ".members > div > dt")).toEqual(["total", "pending", "empty"]);
  expect(find(page, ".leaf").textContent).toBe("18446744073709551557");
  expect(texts(page, "tbody td")).toEqual(["1", "2", "3", "4"]);
});

test("only a changed value is highlighted", () => {
  draw(<JsonTree name="state" value={{ total: 1, now: 5 }} />);

  const page = draw(<JsonTree name="state" value={{ total: 2, now: 5 }} />);

  expect(texts(page, ".leaf-changed")).toEqual(["2"]);
});
