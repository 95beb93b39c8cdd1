import { expect, test } from "vitest";

import { helpFor, SCHEDULERS_WITH_HELP } from "./src/pages/help";
import { existsSync } from "node:fs";

test("help links to existing documentation pages", () => {
  const paths = [...SCHEDULERS_WITH_HELP, "tally"].flatMap((scheduler) => Object.keys(helpFor(scheduler).pages));

  expect(paths.filter((path) => !existsSync(new URL(`../docs/${path}.md`, import.meta.url)))).toEqual([]);
});
