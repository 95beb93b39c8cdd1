/** A canvas as wide as its parent element and sharp on every screen. */

import type { ReadonlySignal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

interface Size {
  readonly width: number;
  readonly height: number;
}

/** The width of an element in whole pixels as a signal; 0 before the first measurement. */
export function useWidth(element: RefObject<HTMLElement | null>): ReadonlySignal<number> {
  const width = useSignal(0);
  useEffect(() => {
    if (element.current === null) return;
    const observer = new ResizeObserver(([entry]) => {
      width.value = Math.floor(entry?.contentRect.width ?? 0);
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** Resize a canvas for the device pixel ratio and return its context; `null` when there is nothing to draw on. */
export function resizeCanvas(
  canvas: HTMLCanvasElement | null,
  { width, height }: Size,
  settings?: CanvasRenderingContext2DSettings,
): CanvasRenderingContext2D | null {
  const context = width > 0 ? (canvas?.getContext("2d", settings) ?? null) : null;
  if (canvas === null || context === null) return null;
  const ratio = devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
