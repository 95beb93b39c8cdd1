/** Marks that pictures on a canvas are made of: boxes full, hatched and outlined, lines, and text that fits its room. */

const ROUND = 4;
const STRIPE = 7;

/** A box by its left and right edge, as bars along a line of time are told. */
export interface Box {
  readonly from: number;
  readonly to: number;
  readonly top: number;
  readonly height: number;
}

export function fillBox(context: CanvasRenderingContext2D, box: Box, colour: string): void {
  context.fillStyle = colour;
  boxPath(context, box);
  context.fill();
}

/** Stripes on a ground. */
export function hatchBox(context: CanvasRenderingContext2D, box: Box, ground: string, stroke: string): void {
  const { from, to, top, height } = box;
  context.save();
  boxPath(context, box);
  context.clip();
  context.fillStyle = ground;
  context.fillRect(from, top, to - from, height);
  context.strokeStyle = stroke;
  context.lineWidth = 1.5;
  context.beginPath();
  // By the time, not by the bar: stripes of neighbours meet, and stand still while a bar grows.
  for (let x = from - (from % STRIPE) - height; x < to; x += STRIPE) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}

/** Dots along the middle of a box. */
export function dotBox(context: CanvasRenderingContext2D, { from, to, top, height }: Box, colour: string): void {
  const y = top + height / 2 + 0.5;
  context.save();
  context.setLineDash([2, 4]);
  context.lineCap = "round";
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(from, y);
  context.lineTo(to, y);
  context.stroke();
  context.restore();
}

export function outlineBox(context: CanvasRenderingContext2D, box: Box, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  boxPath(context, box, -1);
  context.stroke();
}

/** The path of a box with round corners, to fill, to stroke or to clip with. */
export function boxPath(context: CanvasRenderingContext2D, { from, to, top, height }: Box, inset = 0): void {
  const width = Math.max(to - from - 2 * inset, 1);
  context.beginPath();
  context.roundRect(from + inset, top + inset, width, height - 2 * inset, Math.min(ROUND, width / 2, height / 2));
}

interface Upright {
  readonly x: number;
  readonly top: number;
  readonly bottom: number;
}

export function upright(context: CanvasRenderingContext2D, line: Upright, colour: string, width: number): void {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(line.x, line.top);
  context.lineTo(line.x, line.bottom);
  context.stroke();
}

/** As much of a text as there is room for; nothing when that would say nothing. */
export function fitted(context: Pick<CanvasRenderingContext2D, "measureText">, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  for (let length = text.length - 1; length >= 3; length -= 1) {
    const cut = `${text.slice(0, length).trimEnd()}…`;
    if (context.measureText(cut).width <= room) return cut;
  }
  return "";
}
