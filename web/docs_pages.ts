/** Writes the documentation as pages beside the control room: one HTML file for each Markdown file of `docs/`, below
 * `docs/` of what is built, with a style sheet and no script.
 *
 * Links lead to pages that are there; what lies outside (tests, examples, the changelog) stays as words, because no
 * server hands it out.
 */

import type { Tokens } from "marked";
import { Marked } from "marked";
import type { Plugin } from "vite";

import { readdirSync, readFileSync } from "node:fs";
import { join, posix, relative } from "node:path";

/** A table for those who change the code: its thousands of links lead to tests. */
const LEFT_OUT = new Set(["reference/traceability.md"]);
const COPIED = /\.(svg|png|webp)$/;

export function docsPages(folder: string): Plugin {
  return {
    name: "docs-pages",
    apply: "build",
    generateBundle() {
      const files = walk(folder).filter((path) => !LEFT_OUT.has(path));
      for (const path of files) {
        const source = path.endsWith(".md")
          ? pageOf(path, readFileSync(join(folder, path), "utf8"), new Set(files))
          : COPIED.test(path)
            ? readFileSync(join(folder, path))
            : null;
        if (source !== null) this.emitFile({ type: "asset", fileName: `docs/${addressOf(path)}`, source });
      }
      const style = readFileSync(new URL("./docs.css", import.meta.url), "utf8");
      this.emitFile({ type: "asset", fileName: "docs/docs.css", source: style });
    },
  };
}

/** One page: the way back, and the text with its headings named. */
export function pageOf(path: string, markdown: string, files: ReadonlySet<string>): string {
  const body = rendered(path, markdown, files);
  const title = /^# (.+)$/m.exec(markdown)?.[1]?.replaceAll("`", "") ?? path;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} · Pendula</title>
<link rel="icon" type="image/svg+xml" href="/favicon.svg">
<link rel="stylesheet" href="/docs/docs.css">
</head>
<body>
<nav aria-label="Documentation"><a href="/">Control room</a> <a href="/docs/">All pages</a></nav>
<main>
${body}</main>
</body>
</html>
`;
}

function rendered(path: string, markdown: string, files: ReadonlySet<string>): string {
  const names = new Set<string>();
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const name = nameOf(text, names);
        return `<h${depth} id="${name}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const words = this.parser.parseInline(tokens);
        const to = targetOf(path, href, files);
        return to === null ? words : `<a href="${escaped(to)}">${words}</a>`;
      },
      // What is wider than the window scrolls by itself, and so must be reached with the keyboard.
      code({ text, lang }: Tokens.Code) {
        const kind = lang?.split(" ", 1)[0] ?? "";
        return `<pre tabindex="0"><code data-lang="${escaped(kind)}">${escaped(text)}</code></pre>\n`;
      },
      html({ text }: Tokens.HTML | Tokens.Tag) {
        return escaped(text);
      },
    },
  });
  const html = marked.parse(markdown, { async: false });
  return html
    .replaceAll("<table>", '<div class="table" tabindex="0" role="region" aria-label="Table"><table>')
    .replaceAll("</table>", "</table></div>");
}

/** Where a link leads, or nothing where it would lead out of the documentation. */
export function targetOf(path: string, href: string, files: ReadonlySet<string>): string | null {
  if (/^(https?:|#)/.test(href)) return href;
  const [file = "", heading] = href.split("#", 2);
  const target = posix.normalize(posix.join(posix.dirname(path), file));
  if (!files.has(target)) return null;
  return `/docs/${pageAddress(target)}${heading === undefined ? "" : `#${heading}`}`;
}

/** The file of a page. */
function addressOf(path: string): string {
  return path.replace(/(^|\/)README\.md$/, "$1index.html").replace(/\.md$/, ".html");
}

/** What a browser asks for: the first page has no name. */
function pageAddress(path: string): string {
  return addressOf(path).replace(/(^|\/)index\.html$/, "$1");
}

/** The name of a heading as everybody makes it: small letters, hyphens, and a number from the second on. */
function nameOf(text: string, taken: Set<string>): string {
  const plain = text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");
  let name = plain;
  for (let count = 1; taken.has(name); count += 1) name = `${plain}-${count}`;
  taken.add(name);
  return name;
}

function walk(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split("\\").join("/"))
    .sort();
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
