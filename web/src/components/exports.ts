/** Export of the page: tables as CSV, pictures as PNG or SVG, and the state behind them as JSON.
 *
 * Tables and pictures are read from the DOM, so that a file has what is displayed, sorted and filtered the same way.
 */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Json } from "../api/json";
import { writeJson } from "../api/json";

export interface Saved {
  readonly name: string;
  readonly blob: Blob;
}

/** One file that can be saved. */
export interface Export {
  readonly kind: "CSV" | "PNG" | "SVG" | "JSON";
  readonly title: string;
  readonly make: () => Promise<Blob>;
}

/** The state the page displays; `null` while there is none. */
const exportedState = signal<unknown>(null);

/** Register the state that the page displays, for the JSON export. */
export function useExportedState(value: unknown): void {
  useEffect(() => {
    exportedState.value = value;
    return () => {
      exportedState.value = null;
    };
  }, [value]);
}

/** Everything on the page that can be saved. */
export function exportsOf(page: ParentNode): Export[] {
  const state = exportedState.peek();
  const json: Export[] =
    state === null ? [] : [{ kind: "JSON", title: "State", make: () => Promise.resolve(jsonBlob(state)) }];
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

/** The rows of a table as CSV (RFC 4180). */
export function csvOf(table: HTMLTableElement): string {
  const rows = [...table.rows].map((row) => [...row.cells].map((cell) => fieldOf(textOf(cell))).join(","));
  return `${rows.join("\r\n")}\r\n`;
}

/** The text of a cell without decorative signs and with spaces between block elements. */
function textOf(cell: Element): string {
  const copy = cell.cloneNode(true) as Element;
  for (const sign of copy.querySelectorAll("[aria-hidden=true]")) sign.remove();
  for (const block of copy.querySelectorAll("li, div, .below, p")) block.prepend(" ");
  return (copy.textContent ?? "").replaceAll(/\s+/g, " ").trim();
}

/** A CSV field that spreadsheets do not evaluate as a formula. */
function fieldOf(text: string): string {
  const safe = /^[=+\-@]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Canvases in the same element are layers of one picture. */
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

/** The layers on the background colour of the page, since a canvas alone is transparent. */
async function pngOf(layers: readonly HTMLCanvasElement[]): Promise<Blob> {
  const copy = document.createElement("canvas");
  copy.width = Math.max(...layers.map(({ width }) => width));
  copy.height = Math.max(...layers.map(({ height }) => height));
  const context = copy.getContext("2d");
  if (context === null) throw new Error("this browser cannot draw on a canvas");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, copy.width, copy.height);
  for (const layer of layers) context.drawImage(layer, 0, 0);
  const blob = await new Promise<Blob | null>((resolve) => copy.toBlob(resolve, "image/png"));
  if (blob === null) throw new Error("the picture is too large to save");
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
  // The label of a chart describes the whole curve; its title is shorter.
  const own = picture.getAttribute("data-title") ?? picture.getAttribute("aria-label");
  return own ?? picture.closest("section")?.querySelector("h2")?.firstChild?.textContent?.trim() ?? "Picture";
}

function jsonBlob(state: unknown): Blob {
  return new Blob([writeJson(plainOf(state))], { type: "application/json" });
}

/** Convert maps and class instances to plain JSON with their own members. */
function plainOf(value: unknown): Json {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(plainOf);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [String(key), plainOf(item)]));
  if (typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainOf(member)]));
  return typeof value === "function" || typeof value === "symbol" ? null : (value as Json);
}

/** Download a file in the browser. */
export function save({ name, blob }: Saved): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has read the blob by the next task.
  setTimeout(() => URL.revokeObjectURL(link.href), 0);
}

/** A descriptive file name: `fleet-hall-1215-open-tasks.csv`. */
export function fileName(parts: readonly (string | null)[], kind: Export["kind"]): string {
  const stem = parts
    .filter((part) => part !== null)
    .join("-")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return `${stem.slice(0, 100)}.${kind.toLowerCase()}`;
}
