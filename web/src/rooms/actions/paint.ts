/** Paints the timeline on a canvas: grid of slots and epochs, lanes, bars, the line of now. */

import type { Bar } from "./bars";
import type { Lane, Layout } from "./lanes";
import { HEAD, isWork, LANE, xOf } from "./lanes";
import type { Clock, Coming, Epoch } from "./model";
import { words } from "./model";

const COLOURS = [
  "surface",
  "sunken",
  "line",
  "line-strong",
  "ink",
  "ink-quiet",
  "accent",
  "accent-ink",
  "accent-wash",
  "brass",
  "warn",
  "warn-wash",
  "warn-line",
  "bad",
] as const;

export type Palette = Readonly<Record<(typeof COLOURS)[number], string>> & { readonly font: string };

/** The colours of the theme in force; canvases know nothing of style sheets. */
export function paletteOf(element: HTMLElement): Palette {
  const probe = document.createElement("span");
  element.append(probe);
  const found = Object.fromEntries(
    COLOURS.map((name) => {
      probe.style.color = `var(--${name})`;
      return [name, getComputedStyle(probe).color];
    }),
  );
  const font = getComputedStyle(probe).fontFamily;
  probe.remove();
  return { ...found, font } as Palette;
}

export interface Scene {
  readonly layout: Layout;
  readonly clock: Clock;
  readonly epoch: Epoch;
  readonly now: number;
  readonly live: boolean;
  readonly pc: string | null;
  /** The action that is pointed out, on all its lanes. */
  readonly chosen: string | null;
}

const BAR_TOP = 4;
const BAR_HEIGHT = LANE - 2 * BAR_TOP;
const ROUND = 4;
const LEAST = 2.5;
const STRIP = 6;
const FADED = 0.5;
const DOT_ROOM = 8;
const TICKS = [15, 30, 60, 120, 180, 360, 720, 1440];
const TICK_ROOM = 46;

export function paint(context: CanvasRenderingContext2D, scene: Scene, colours: Palette): void {
  const { layout } = scene;
  context.clearRect(0, 0, layout.width, layout.height);
  context.textBaseline = "middle";
  paintLanes(context, scene, colours);
  context.save();
  context.beginPath();
  context.rect(layout.gutter, 0, layout.width - layout.gutter, layout.height);
  context.clip();
  paintGrid(context, scene, colours);
  for (const lane of layout.lanes) {
    for (const coming of lane.coming) paintComing(context, scene, colours, lane, coming);
    for (const bar of lane.bars) if (isWork(bar)) paintBar(context, scene, colours, lane, bar);
    for (const bar of lane.bars) if (!isWork(bar)) paintBar(context, scene, colours, lane, bar);
  }
  paintNow(context, scene, colours);
  context.restore();
}

function paintLanes(context: CanvasRenderingContext2D, { layout, pc }: Scene, colours: Palette): void {
  for (const { title, top } of layout.groups) {
    context.font = `600 11px ${colours.font}`;
    context.fillStyle = colours["ink-quiet"];
    context.fillText(title.toUpperCase(), 0, top + 14);
  }
  layout.lanes.forEach((lane, place) => {
    if (place % 2 === 0) {
      context.fillStyle = colours.sunken;
      context.globalAlpha = 0.45;
      context.fillRect(0, lane.top, layout.width, LANE);
      context.globalAlpha = 1;
    }
    const isPlayer = lane.kind === "actor" && lane.name === pc;
    context.font = `${isPlayer ? 600 : 400} 12.5px ${colours.font}`;
    context.fillStyle = colours.ink;
    const name = fitted(context, words(lane.name), layout.gutter - 14);
    context.fillText(name, 6, lane.top + LANE / 2 + 0.5);
  });
}

function paintGrid(context: CanvasRenderingContext2D, scene: Scene, colours: Palette): void {
  const { layout, clock, epoch } = scene;
  const { range, height } = layout;
  const perMinute = (layout.width - layout.gutter) / (range.to - range.from);
  const tick = TICKS.find((minutes) => minutes * perMinute >= TICK_ROOM) ?? 1440;
  const now = xOf(layout, scene.now);
  context.font = `11px ${colours.font}`;
  const hour = Math.min(tick, epoch.slot_minutes);
  const fine = hour * perMinute >= 8;
  for (let minute = clock.nextTick(range.from, hour); fine && minute <= range.to; minute += hour) {
    const x = Math.round(xOf(layout, minute)) + 0.5;
    line(context, x, HEAD - 6, height, colours.line, 1);
  }
  for (let minute = clock.nextTick(range.from, tick); minute <= range.to; minute += tick) {
    const x = Math.round(xOf(layout, minute)) + 0.5;
    line(context, x, HEAD - 10, height, colours.line, 1);
    // The line of now carries its own time; nothing is written under it, nor cut off at the edges.
    if (Math.abs(x - now) < 42 || x < layout.gutter + 16 || x > layout.width - 16) continue;
    context.fillStyle = colours["ink-quiet"];
    context.textAlign = "center";
    context.fillText(clock.time(minute), x, HEAD - 18);
  }
  context.textAlign = "left";
  paintEpochs(context, scene, colours);
}

function paintEpochs(context: CanvasRenderingContext2D, scene: Scene, colours: Palette): void {
  const { layout, clock, epoch } = scene;
  const length = epoch.ends - epoch.starts;
  const first = Math.floor((layout.range.from - epoch.starts) / length);
  const last = Math.floor((layout.range.to - epoch.starts) / length);
  for (let place = first; place <= last; place += 1) {
    const starts = epoch.starts + place * length;
    const index = epoch.index + place;
    if (index < 0 || starts < 0) continue;
    const x = xOf(layout, starts);
    if (x >= layout.gutter) line(context, Math.round(x) + 0.5, 0, layout.height, colours["line-strong"], 1);
    const ends = xOf(layout, starts + length);
    const left = Math.max(x, layout.gutter) + 6;
    context.font = `600 11px ${colours.font}`;
    context.fillStyle = colours["ink-quiet"];
    const title = fitted(context, `Epoch ${index} · ${clock.day(starts)}`, ends - left - 6);
    context.fillText(title, left, 9);
  }
}

function paintBar(context: CanvasRenderingContext2D, scene: Scene, colours: Palette, lane: Lane, bar: Bar): void {
  const { layout, chosen } = scene;
  const from = xOf(layout, bar.from);
  const to = Math.max(xOf(layout, bar.to) - 1, from + LEAST);
  // Whoever waits while their actor does something else is a strip below it.
  const beside = !isWork(bar) && lane.bars.some((other) => isWork(other) && overlap(bar, other));
  const top = beside ? lane.top + LANE - STRIP - 1 : lane.top + BAR_TOP;
  const box = { from, to, top, height: beside ? STRIP : BAR_HEIGHT };
  context.globalAlpha = chosen === null || chosen === bar.action ? 1 : FADED;
  switch (bar.kind) {
    case "done":
    case "interrupted":
      fill(context, box, mixed(colours.accent, colours.surface));
      break;
    case "running":
      paintRunning(context, scene, colours, box);
      break;
    case "waited":
    case "waiting":
      hatch(context, box, colours["warn-wash"], colours["warn-line"]);
      break;
    case "held":
    case "suspended":
      dashed(context, box, bar.kind === "held" ? colours["warn-line"] : colours.bad);
      break;
  }
  if (bar.kind === "interrupted") notch(context, box, colours.bad);
  if (isWork(bar)) label(context, scene, colours, lane, bar, box);
  if (bar.pc && isWork(bar)) dot(context, box, colours);
  if (chosen === bar.action) outline(context, box, colours.brass);
  context.globalAlpha = 1;
}

/** A wish for later: it may start then. */
function paintComing(
  context: CanvasRenderingContext2D,
  { layout, chosen }: Scene,
  colours: Palette,
  lane: Lane,
  { t, verb, action_id }: Coming,
): void {
  const x = xOf(layout, t);
  const y = lane.top + LANE / 2;
  context.globalAlpha = chosen === null || chosen === action_id ? 1 : FADED;
  context.strokeStyle = colours["line-strong"];
  context.fillStyle = colours.surface;
  context.lineWidth = 1.25;
  context.beginPath();
  context.moveTo(x, y - 4);
  context.lineTo(x + 4, y);
  context.lineTo(x, y + 4);
  context.lineTo(x - 4, y);
  context.closePath();
  context.fill();
  context.stroke();
  context.font = `11px ${colours.font}`;
  context.fillStyle = colours["ink-quiet"];
  const next = Math.min(...lane.coming.filter((other) => other.t > t).map((other) => xOf(layout, other.t) - 8));
  context.fillText(fitted(context, words(verb ?? ""), Math.min(next, layout.width) - x - 10), x + 8, y + 0.5);
  context.globalAlpha = 1;
}

interface Box {
  readonly from: number;
  readonly to: number;
  readonly top: number;
  readonly height: number;
}

/** What has been done is full, what is still to do is light. */
function paintRunning(context: CanvasRenderingContext2D, scene: Scene, colours: Palette, box: Box): void {
  const now = Math.min(Math.max(xOf(scene.layout, scene.now), box.from), box.to);
  context.save();
  shape(context, box);
  context.clip();
  context.fillStyle = colours["accent-wash"];
  context.fillRect(box.from, box.top, box.to - box.from, BAR_HEIGHT);
  context.fillStyle = colours.accent;
  context.fillRect(box.from, box.top, now - box.from, BAR_HEIGHT);
  context.restore();
  context.strokeStyle = colours.accent;
  context.lineWidth = 1;
  shape(context, box, 0.5);
  context.stroke();
}

function label(
  context: CanvasRenderingContext2D,
  scene: Scene,
  colours: Palette,
  lane: Lane,
  bar: Bar,
  { from, to, top }: Box,
): void {
  const left = Math.max(from, scene.layout.gutter) + 6;
  const text = lane.kind === "actor" ? words(bar.verb) : bar.actor;
  context.font = `500 11.5px ${colours.font}`;
  const shown = fitted(context, text, to - left - 6 - (bar.pc ? DOT_ROOM : 0));
  if (shown === "") return;
  const y = top + BAR_HEIGHT / 2 + 0.5;
  if (bar.kind !== "running") {
    context.fillStyle = colours.ink;
    context.fillText(shown, left, y);
    return;
  }
  // The text may lie across the line of now: on each side it has the ink of its ground.
  const now = xOf(scene.layout, scene.now);
  for (const [ink, start, end] of [
    [colours["accent-ink"], from, Math.min(now, to)],
    [colours.ink, Math.max(now, from), to],
  ] as const) {
    if (end <= start) continue;
    context.save();
    context.beginPath();
    context.rect(start, top, end - start, BAR_HEIGHT);
    context.clip();
    context.fillStyle = ink;
    context.fillText(shown, left, y);
    context.restore();
  }
}

function paintNow(context: CanvasRenderingContext2D, scene: Scene, colours: Palette): void {
  const { layout, clock, now, live } = scene;
  const x = Math.round(xOf(layout, now)) + 0.5;
  line(context, x, HEAD - 8, layout.height, colours.brass, 1.5);
  const text = clock.time(now);
  context.font = `600 11px ${colours.font}`;
  const width = context.measureText(text).width + 12;
  const left = Math.min(x - width / 2, layout.width - width);
  context.fillStyle = live ? colours.brass : colours.surface;
  context.strokeStyle = colours.brass;
  context.lineWidth = 1;
  context.beginPath();
  context.roundRect(left, HEAD - 26, width, 17, 8.5);
  context.fill();
  context.stroke();
  context.fillStyle = live ? colours.surface : colours.ink;
  context.fillText(text, left + 6, HEAD - 17);
}

function fill(context: CanvasRenderingContext2D, box: Box, colour: string): void {
  context.fillStyle = colour;
  shape(context, box);
  context.fill();
}

function hatch(context: CanvasRenderingContext2D, box: Box, ground: string, stroke: string): void {
  const { from, to, top, height } = box;
  context.save();
  shape(context, box);
  context.clip();
  context.fillStyle = ground;
  context.fillRect(from, top, to - from, height);
  context.strokeStyle = stroke;
  context.lineWidth = 1.5;
  context.beginPath();
  // By the time, not by the bar: stripes of neighbours meet, and stand still while a bar grows.
  for (let x = from - (from % 7) - height; x < to; x += 7) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}

function dashed(context: CanvasRenderingContext2D, { from, to, top, height }: Box, colour: string): void {
  const y = top + height / 2 + 0.5;
  context.save();
  context.setLineDash([2, 4]);
  context.lineCap = "round";
  line(context, from, y, y, colour, 2, to);
  context.restore();
}

/** Where a segment was broken off. */
function notch(context: CanvasRenderingContext2D, { to, top }: Box, colour: string): void {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(to + 1, top);
  context.lineTo(to - 5, top);
  context.lineTo(to + 1, top + 6);
  context.closePath();
  context.fill();
  context.fillRect(to - 1, top, 2, BAR_HEIGHT);
}

/** The player character learned of it. */
function dot(context: CanvasRenderingContext2D, { from, to, top }: Box, colours: Palette): void {
  if (to - from < 2 * DOT_ROOM) return;
  context.fillStyle = colours.brass;
  context.beginPath();
  context.arc(to - 7, top + BAR_HEIGHT / 2, 2.5, 0, 2 * Math.PI);
  context.fill();
}

function outline(context: CanvasRenderingContext2D, box: Box, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  shape(context, box, -1);
  context.stroke();
}

function shape(context: CanvasRenderingContext2D, { from, to, top, height }: Box, inset = 0): void {
  const width = Math.max(to - from - 2 * inset, 1);
  context.beginPath();
  context.roundRect(from + inset, top + inset, width, height - 2 * inset, Math.min(ROUND, width / 2, height / 2));
}

function line(
  context: CanvasRenderingContext2D,
  x: number,
  top: number,
  bottom: number,
  colour: string,
  width: number,
  right = x,
): void {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x, top);
  context.lineTo(right, bottom);
  context.stroke();
}

/** As much of a text as there is room for; nothing when that would say nothing. */
export function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  for (let length = text.length - 1; length >= 3; length -= 1) {
    const cut = `${text.slice(0, length).trimEnd()}…`;
    if (context.measureText(cut).width <= room) return cut;
  }
  return "";
}

function overlap(one: Bar, other: Bar): boolean {
  return one.from < other.to && other.from < one.to;
}

function mixed(colour: string, ground: string): string {
  return `color-mix(in oklab, ${colour} 34%, ${ground})`;
}
