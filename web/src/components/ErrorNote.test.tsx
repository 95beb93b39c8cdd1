// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { ApiError } from "../api/client";
import { draw, find, texts } from "../testing/drawing";
import { ErrorNote } from "./ErrorNote";

test("an error shows code, message, facts and request id", () => {
  const page = draw(
    <ErrorNote error={new ApiError("no_such_record", "There is no record 9", 404, { last_n: 4 }, "r-17")} />,
  );

  const note = find(page, "[role=alert]");
  expect(note.getAttribute("data-code")).toBe("no_such_record");
  expect(note.textContent).toContain("There is no record 9");
  expect(find(note, "[data-testid=request-id]").textContent).toBe("r-17");
  expect(texts(note, "dd")).toEqual(["4"]);
});
