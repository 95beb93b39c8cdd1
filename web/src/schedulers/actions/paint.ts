/** Painting of the timeline: grid of slots and epochs, lanes, bars, the line of now. */

import type { ComingView, EpochView } from "../../api/types";
import { overlap } from "../../canvas/hits";
import type { Palette } from "../../canvas/palette";
import type { Box } from "../../canvas/shapes";
import { boxPath, dotBox, drawVertical, fillBox, hatchBox, outlineBox, truncate } from "../../canvas/shapes";
import { pixelsPerUnit, tickStep, xOf } from "../../canvas/viewport";
import type { Bar } from "./bars";
import type { Lane, Layout } from "./lanes";
import { HEAD, isSegment, LANE } from "./lanes";
import type { Clock } from "./model";
import { words } from "./model";

export interface Scene {
  readonly layout: Layout;
  readonly clock: Clock;
  readonly epoch: EpochView;
  readonly now: number;
  readonly live: boolean;
  readonly pc: string | null;
  /** The highlighted action. */
  readonly chosen: string | null;
}

const BAR_TOP = 4;
const BAR_HEIGHT = LANE - 2 * BAR_TOP;
const MIN_WIDTH = 2.5;
const STRIP = 6;
const FADED = 0.5;
const DOT_SPACE = 8;
const TICKS = [15, 30, 60, 120, 180, 360, 720, 1440] as const;
const TICK_SPACE = 46;

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
    for (const bar of lane.bars) if (isSegment(bar)) paintBar(context, scene, colours, lane, bar);
    for (const bar of lane.bars) if (!isSegment(bar)) paintBar(context, scene, colours, lane, bar);
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
  layout.lanes.forEach((lane, index) => {
    if (index % 2 === 0) {
      context.fillStyle = colours.sunken;
      context.globalAlpha = 0.45;
      context.fillRect(0, lane.top, layout.width, LANE);
      context.globalAlpha = 1;
    }
    const isPlayer = lane.kind === "actor" && lane.name === pc;
    context.font = `${isPlayer ? 600 : 400} 12.5px ${colours.font}`;
    context.fillStyle = colours.ink;
    const name = truncate(context, words(lane.name), layout.gutter - 14);
    context.fillText(name, 6, lane.top + LANE / 2 + 0.5);
  });
}

function paintGrid(context: CanvasRenderingContext2D, scene: Scene, colours: Palette): void {
  const { layout, clock, epoch } = scene;
  const { range, height } = layout;
  const tick = tickStep(layout, TICKS, TICK_SPACE);
  context.font = `12px ${colours.font}`;
  const hour = Math.min(tick, epoch.slot_minutes);
  const fine = hour * pixelsPerUnit(layout) >= 8;
  for (let minute = clock.nextTick(range.from, hour); fine && minute <= range.to; minute += hour) {
    const x = Math.round(xOf(layout, minute)) + 0.5;
    drawVertical(context, { x, top: HEAD - 6, bottom: height }, colours.line, 1);
  }
  for (let minute = clock.nextTick(range.from, tick); minute <= range.to; minute += tick) {
    const x = Math.round(xOf(layout, minute)) + 0.5;
    drawVertical(context, { x, top: HEAD - 10, bottom: height }, colours.line, 1);
    // Labels that would be cut off at the edges are left out.
    if (x < layout.gutter + 16 || x > layout.width - 16) continue;
    context.fillStyle = colours.ink;
    context.textAlign = "center";
    context.fillText(clock.time(minute), x, HEAD - 34);
  }
  context.textAlign = "left";
  paintEpochs(context, scene, colours);
}

function paintEpochs(context: CanvasRenderingContext2D, scene: Scene, colours: Palette): void {
  const { layout, clock, epoch } = scene;
  const length = epoch.ends - epoch.starts;
  const first = Math.floor((layout.range.from - epoch.starts) / length);
  const last = Math.floor((layout.range.to - epoch.starts) / length);
  for (let offset = first; offset <= last; offset += 1) {
    const starts = epoch.starts + offset * length;
    const index = epoch.index + offset;
    if (index < 0 || starts < 0) continue;
    const x = xOf(layout, starts);
    if (x >= layout.gutter)
      drawVertical(context, { x: Math.round(x) + 0.5, top: 0, bottom: layout.height }, colours["line-strong"], 1);
    const ends = xOf(layout, starts + length);
    const left = Math.max(x, layout.gutter) + 6;
    context.font = `600 11px ${colours.font}`;
    context.fillStyle = colours["ink-quiet"];
    const title = truncate(context, `Epoch ${index} · ${clock.day(starts)}`, ends - left - 6);
    context.fillText(title, left, 9);
  }
}

function paintBar(context: CanvasRenderingContext2D, scene: Scene, colours: Palette, lane: Lane, bar: Bar): void {
  const { layout, chosen } = scene;
  const from = xOf(layout, bar.from);
  const to = Math.max(xOf(layout, bar.to) - 1, from + MIN_WIDTH);
  // A wait during another action of the same actor is a strip below that action's bar.
  const beside = !isSegment(bar) && lane.bars.some((other) => isSegment(other) && overlap(bar, other));
  const top = beside ? lane.top + LANE - STRIP - 1 : lane.top + BAR_TOP;
  const box = { from, to, top, height: beside ? STRIP : BAR_HEIGHT };
  context.globalAlpha = chosen === null || chosen === bar.action ? 1 : FADED;
  switch (bar.kind) {
    case "done":
    case "interrupted":
      fillBox(context, box, mixed(colours.accent, colours.surface));
      break;
    case "running":
      paintRunning(context, scene, colours, box);
      break;
    case "waited":
    case "waiting":
      hatchBox(context, box, colours["warn-wash"], colours["warn-line"]);
      break;
    case "held":
    case "suspended":
      dotBox(context, box, bar.kind === "held" ? colours["warn-line"] : colours.bad);
      break;
  }
  if (bar.kind === "interrupted") notch(context, box, colours.bad);
  if (isSegment(bar)) label(context, scene, colours, lane, bar, box);
  if (bar.pc && isSegment(bar)) dot(context, box, colours);
  if (chosen === bar.action) outlineBox(context, box, colours.brass);
  context.globalAlpha = 1;
}

/** A submission for later. */
function paintComing(
  context: CanvasRenderingContext2D,
  { layout, chosen }: Scene,
  colours: Palette,
  lane: Lane,
  { t, verb, action_id }: ComingView,
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
  context.fillText(truncate(context, words(verb ?? ""), Math.min(next, layout.width) - x - 10), x + 8, y + 0.5);
  context.globalAlpha = 1;
}

/** The elapsed part is solid, the rest is light. */
function paintRunning(context: CanvasRenderingContext2D, scene: Scene, colours: Palette, box: Box): void {
  const now = Math.min(Math.max(xOf(scene.layout, scene.now), box.from), box.to);
  context.save();
  boxPath(context, box);
  context.clip();
  context.fillStyle = colours["accent-wash"];
  context.fillRect(box.from, box.top, box.to - box.from, BAR_HEIGHT);
  context.fillStyle = colours.accent;
  context.fillRect(box.from, box.top, now - box.from, BAR_HEIGHT);
  context.restore();
  context.strokeStyle = colours.accent;
  context.lineWidth = 1;
  boxPath(context, box, 0.5);
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
  const shown = truncate(context, text, to - left - 6 - (bar.pc ? DOT_SPACE : 0));
  if (shown === "") return;
  const y = top + BAR_HEIGHT / 2 + 0.5;
  if (bar.kind !== "running") {
    context.fillStyle = colours.ink;
    context.fillText(shown, left, y);
    return;
  }
  // The label may cross the line of now; each side has the text colour for its background.
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
  drawVertical(context, { x, top: HEAD - 8, bottom: layout.height }, colours.brass, 1.5);
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

/** Mark the end of an interrupted segment. */
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

/** Mark a segment seen by the player character. */
function dot(context: CanvasRenderingContext2D, { from, to, top }: Box, colours: Palette): void {
  if (to - from < 2 * DOT_SPACE) return;
  context.fillStyle = colours.brass;
  context.beginPath();
  context.arc(to - 7, top + BAR_HEIGHT / 2, 2.5, 0, 2 * Math.PI);
  context.fill();
}

function mixed(colour: string, ground: string): string {
  return `color-mix(in oklab, ${colour} 34%, ${ground})`;
}
