/** Drawing primitives: filled, hatched, dotted and outlined boxes, vertical lines, truncated text. */

const ROUND = 4;
const STRIPE = 7;

/** A box given by its left and right edge, like bars on a time axis. */
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

/** Diagonal stripes on a background. */
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
  // Stripes are aligned to the canvas, not to the bar, so that neighbours match and a growing bar does not flicker.
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

/** Set the path of a box with round corners, to fill, stroke or clip. */
export function boxPath(context: CanvasRenderingContext2D, { from, to, top, height }: Box, inset = 0): void {
  const width = Math.max(to - from - 2 * inset, 1);
  context.beginPath();
  context.roundRect(from + inset, top + inset, width, height - 2 * inset, Math.min(ROUND, width / 2, height / 2));
}

interface VerticalLine {
  readonly x: number;
  readonly top: number;
  readonly bottom: number;
}

export function drawVertical(
  context: CanvasRenderingContext2D,
  line: VerticalLine,
  colour: string,
  width: number,
): void {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(line.x, line.top);
  context.lineTo(line.x, line.bottom);
  context.stroke();
}

/** Cut a text to a width in pixels with an ellipsis; empty when fewer than three characters would remain. */
export function truncate(context: Pick<CanvasRenderingContext2D, "measureText">, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  for (let length = text.length - 1; length >= 3; length -= 1) {
    const cut = `${text.slice(0, length).trimEnd()}…`;
    if (context.measureText(cut).width <= width) return cut;
  }
  return "";
}
