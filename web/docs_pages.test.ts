import { expect, test } from "vitest";

import { pageOf, targetOf } from "./docs_pages";
import { helpFor, ROOMS_WITH_HELP } from "./src/pages/help";
import { existsSync } from "node:fs";

const FILES = new Set(["README.md", "how-to/serve.md", "reference/codes.md", "explanation/pictures/hall.svg"]);

test("links lead to pages that are there, and nowhere else", () => {
  expect(targetOf("how-to/serve.md", "../reference/codes.md#busy", FILES)).toBe("/docs/reference/codes.html#busy");
  expect(targetOf("how-to/serve.md", "../README.md", FILES)).toBe("/docs/");
  expect(targetOf("how-to/serve.md", "../../tests/x.py", FILES)).toBeNull();
  expect(targetOf("README.md", "https://example.org/", FILES)).toBe("https://example.org/");
});

test("a page has its title, headings with names, and no markup of its own", () => {
  const page = pageOf(
    "how-to/serve.md",
    "# Serve `it`\n\n## A b\n\n## A b\n\n<script>x</script>\n\n[gone](x.md)\n",
    FILES,
  );

  expect(page).toContain("<title>Serve it · Pendula</title>");
  expect(page).toContain('<h2 id="a-b">');
  expect(page).toContain('<h2 id="a-b-1">');
  expect(page).not.toContain("<script>");
  expect(page).toContain("<p>gone</p>");
});

test("help leads to pages that are there", () => {
  const paths = [...ROOMS_WITH_HELP, "tally"].flatMap((room) => Object.keys(helpFor(room).pages));

  expect(paths.filter((path) => !existsSync(new URL(`../docs/${path}.md`, import.meta.url)))).toEqual([]);
});
