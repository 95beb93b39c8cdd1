// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { csvOf, exportsOf, fileName } from "./exports";

function table(rows: string): HTMLTableElement {
  const holder = document.createElement("div");
  holder.innerHTML = `<table><caption>Trucks, by name</caption><thead><tr><th>truck<span aria-hidden="true">↕</span></th><th>why</th></tr></thead><tbody>${rows}</tbody></table>`;
  return holder.firstElementChild as HTMLTableElement;
}

test("a table is saved as displayed, with CSV quoting and without decorative signs", () => {
  const shown = table(
    '<tr><td><b>R1</b><span class="below">fast</span></td><td>waits, "long"</td></tr><tr><td>-4</td><td>=1+1</td></tr>',
  );

  expect(csvOf(shown)).toBe('truck,why\r\nR1 fast,"waits, ""long"""\r\n-4,\'=1+1\r\n');
});

test("exports have the titles of the page, and empty tables are left out", () => {
  const page = document.createElement("main");
  page.append(table("<tr><td>R1</td><td></td></tr>"), table('<tr class="table-empty"><td>none</td></tr>'));

  expect(exportsOf(page).map(({ kind, title }) => [kind, title])).toEqual([["CSV", "Trucks, by name"]]);
});

test("layered canvases are one file, and a chart has its short name", () => {
  const page = document.createElement("main");
  page.innerHTML =
    '<section><h2>Network</h2><div><canvas width="9" height="9"></canvas><canvas width="9" height="9"></canvas></div>' +
    '<svg role="img" data-title="debt" aria-label="debt, 0:00 to 1:00: now 3"></svg></section>';

  expect(exportsOf(page).map(({ kind, title }) => [kind, title])).toEqual([
    ["PNG", "Network"],
    ["SVG", "debt"],
  ]);
});

test("a file name consists of scheduler, engine, moment and title", () => {
  expect(fileName(["fleet", "hall", "1215", "Open tasks!"], "CSV")).toBe("fleet-hall-1215-open-tasks.csv");
  expect(fileName(["jobs", null, null, "State"], "JSON")).toBe("jobs-state.json");
});
