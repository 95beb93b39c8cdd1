import { expect, test } from "vitest";

import { helpFor, ROOMS_WITH_HELP } from "./src/pages/help";
import { existsSync } from "node:fs";

test("help leads to pages that are there", () => {
  const paths = [...ROOMS_WITH_HELP, "tally"].flatMap((room) => Object.keys(helpFor(room).pages));

  expect(paths.filter((path) => !existsSync(new URL(`../docs/${path}.md`, import.meta.url)))).toEqual([]);
});
