/** What is shown, as files: tables as CSV, pictures as PNG or SVG, and the state behind them as JSON.
 *
 * Tables and pictures are taken from the page itself, so that a file holds what the reader sees: sorted and filtered as
 * it is, at the moment that is shown.
 */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Json } from "../api/json";
import { writeJson } from "../api/json";

export interface Saved {
  readonly name: string;
  readonly blob: Blob;
}

/** One thing that can be saved. */
export interface Export {
  readonly kind: "CSV" | "PNG" | "SVG" | "JSON";
  readonly title: string;
  readonly make: () => Promise<Blob>;
}

/** What the page is drawn from; `null` while there is nothing. */
const shown = signal<unknown>(null);

/** Say what the page is drawn from, as long as it stands. */
export function useShown(value: unknown): void {
  useEffect(() => {
    shown.value = value;
    return () => {
      shown.value = null;
    };
  }, [value]);
}

/** All that is on the page now and can be saved. */
export function exportsOf(page: ParentNode): Export[] {
  const state = shown.peek();
  const json: Export[] =
    state === null ? [] : [{ kind: "JSON", title: "The state", make: () => Promise.resolve(jsonBlob(state)) }];
  return [
    ...json,
    ...[...page.querySelectorAll("table")].flatMap(tableExport),
    ...layersOf(page).flatMap(canvasExport),
    ...[...page.querySelectorAll<SVGSVGElement>("svg[role=img]")].flatMap(svgExport),
  ];
}

function tableExport(table: HTMLTableElement): Export[] {
  if (table.tBodies[0]?.querySelector("tr:not(.table-empty)") == null) return [];
  const title = table.caption?.textContent ?? "Table";
  return [{ kind: "CSV", title, make: () => Promise.resolve(new Blob([csvOf(table)], { type: "text/csv" })) }];
}

/** The rows of a table as they stand, after RFC 4180. */
export function csvOf(table: HTMLTableElement): string {
  const rows = [...table.rows].map((row) => [...row.cells].map((cell) => fieldOf(wordsOf(cell))).join(","));
  return `${rows.join("\r\n")}\r\n`;
}

/** The words of a cell; signs that only decorate are left out, and words of blocks do not run together. */
function wordsOf(cell: Element): string {
  const copy = cell.cloneNode(true) as Element;
  for (const sign of copy.querySelectorAll("[aria-hidden=true]")) sign.remove();
  for (const block of copy.querySelectorAll("li, div, .below, p")) block.prepend(" ");
  return (copy.textContent ?? "").replaceAll(/\s+/g, " ").trim();
}

/** A field that no spreadsheet takes for a formula. */
function fieldOf(words: string): string {
  const safe = /^[=+\-@]/.test(words) && Number.isNaN(Number(words)) ? `'${words}` : words;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Canvases that lie upon each other are layers of one picture. */
function layersOf(page: ParentNode): HTMLCanvasElement[][] {
  const pictures = new Map<Element | null, HTMLCanvasElement[]>();
  for (const canvas of page.querySelectorAll("canvas")) {
    if (canvas.width === 0) continue;
    pictures.set(canvas.parentElement, [...(pictures.get(canvas.parentElement) ?? []), canvas]);
  }
  return [...pictures.values()];
}

function canvasExport(layers: readonly HTMLCanvasElement[]): Export[] {
  const lowest = layers[0];
  return lowest === undefined ? [] : [{ kind: "PNG", title: titleOf(lowest), make: () => pngOf(layers) }];
}

/** The picture on the ground that the page gives it: alone, a canvas is transparent. */
async function pngOf(layers: readonly HTMLCanvasElement[]): Promise<Blob> {
  const copy = document.createElement("canvas");
  copy.width = Math.max(...layers.map(({ width }) => width));
  copy.height = Math.max(...layers.map(({ height }) => height));
  const context = copy.getContext("2d");
  if (context === null) throw new Error("this browser draws no pictures");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, copy.width, copy.height);
  for (const layer of layers) context.drawImage(layer, 0, 0);
  const blob = await new Promise<Blob | null>((resolve) => copy.toBlob(resolve, "image/png"));
  if (blob === null) throw new Error("the picture is too large to be saved");
  return blob;
}

function svgExport(svg: SVGSVGElement): Export[] {
  const make = () => {
    const copy = svg.cloneNode(true) as SVGSVGElement;
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    return Promise.resolve(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  };
  return [{ kind: "SVG", title: titleOf(svg), make }];
}

function titleOf(picture: Element): string {
  // A chart says in its label how it runs; its name is shorter.
  const own = picture.getAttribute("data-title") ?? picture.getAttribute("aria-label");
  return own ?? picture.closest("section")?.querySelector("h2")?.firstChild?.textContent?.trim() ?? "Picture";
}

function jsonBlob(state: unknown): Blob {
  return new Blob([writeJson(plainOf(state))], { type: "application/json" });
}

/** Maps and classes of the page have no form in JSON: only their own members are written. */
function plainOf(value: unknown): Json {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(plainOf);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, one]) => [String(key), plainOf(one)]));
  if (typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainOf(member)]));
  return typeof value === "function" || typeof value === "symbol" ? null : (value as Json);
}

/** Hand a file to the browser. */
export function save({ name, blob }: Saved): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has read it by the next turn.
  setTimeout(() => URL.revokeObjectURL(link.href), 0);
}

/** A name that says what is in the file: `fleet-hall-1215-open-tasks.csv`. */
export function fileName(parts: readonly (string | null)[], kind: Export["kind"]): string {
  const words = parts
    .filter((part) => part !== null)
    .join("-")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return `${words.slice(0, 100)}.${kind.toLowerCase()}`;
}
