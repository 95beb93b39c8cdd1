/** The map with its trucks. Drag to pan, wheel or keys to zoom, click or arrow keys to select a truck; the same data is
 * available as a table. */

import { useSignal } from "@preact/signals";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";

import type { FleetNow, MapView } from "../../api/types";
import { useDarkScheme } from "../../canvas/colour_scheme";
import { resizeCanvas, useWidth } from "../../canvas/context";
import { paletteOf } from "../../canvas/palette";
import { theme } from "../../theme";
import { counted } from "../../wording";
import type { Camera, Size } from "./geometry";
import { extentOf, fitCamera, pan, toMap, truckAt, zoom } from "./geometry";
import { Legend } from "./Legend";
import { Layers } from "./layers";
import { Motion } from "./motion";
import type { View } from "./paint";
import { TruckPainter } from "./truck_painter";

interface HallProps {
  readonly map: MapView;
  readonly now: FleetNow;
  readonly live: boolean;
  readonly chosen: string | null;
  readonly onChoose: (robot: string | null) => void;
}

const CLICK_PX = 26;
const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function Hall({ map, now, live, chosen, onChoose }: HallProps) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const moved = useSignal<Camera | null>(null);
  const drag = useRef<{ x: number; y: number; far: number } | null>(null);
  const dark = useDarkScheme();
  const id = useId();
  const size = useMemo(() => sizeFor(width.value, map), [width.value, map]);
  const camera = moved.value ?? fitCamera(map, size);
  const view = useMemo(() => ({ map, camera, size }), [map, camera.x, camera.y, camera.scale, size]);

  const setCamera = (next: Camera) => {
    moved.value = next;
  };
  const onKey = (event: KeyboardEvent) => {
    const middle = { x: size.width / 2, y: size.height / 2 };
    const step = STEPS[event.key];
    if (event.key === "+" || event.key === "=") setCamera(zoom(camera, size, middle, 1.3));
    else if (event.key === "-") setCamera(zoom(camera, size, middle, 1 / 1.3));
    else if (event.key === "0") moved.value = null;
    else if (event.key === "Escape") onChoose(null);
    else if (step !== undefined) onChoose(nextTruck(now, chosen, step));
    else return;
    event.preventDefault();
  };
  const choose = (x: number, y: number) =>
    onChoose(truckAt(now.trucks, toMap(camera, size, { x, y }), CLICK_PX / camera.scale));

  return (
    <section class="panel hall" aria-labelledby={`${id}title`} data-testid="panel-hall">
      <div class="panel-head">
        <h2 id={`${id}title`}>Map</h2>
        <span class="count">
          {map.map_id}, {counted(now.trucks.length, "truck")}
        </span>
        <span class="hall-buttons">
          <button
            type="button"
            class="button"
            aria-label="Zoom in"
            onClick={() => setCamera(zoom(camera, size, middleOf(size), 1.3))}
          >
            +
          </button>
          <button
            type="button"
            class="button"
            aria-label="Zoom out"
            onClick={() => setCamera(zoom(camera, size, middleOf(size), 1 / 1.3))}
          >
            −
          </button>
          <button type="button" class="button" onClick={() => (moved.value = null)} data-testid="hall-fit">
            Fit map
          </button>
        </span>
      </div>
      <div
        ref={frame}
        class="hall-frame"
        tabIndex={0}
        role="group"
        aria-label="Map with trucks. Arrow keys select a truck, + and − zoom, 0 shows the whole map. A table follows."
        onKeyDown={onKey}
        data-testid="hall"
        data-tick={now.tick}
      >
        <Picture view={view} now={now} live={live} chosen={chosen} dark={dark.value} />
        <div
          class="hall-touch"
          aria-hidden="true"
          style={{ height: `${size.height}px` }}
          onPointerDown={(event) => {
            drag.current = { x: event.offsetX, y: event.offsetY, far: 0 };
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={(event) => {
            const from = drag.current;
            if (from === null) return;
            const [dx, dy] = [event.offsetX - from.x, event.offsetY - from.y];
            drag.current = { x: event.offsetX, y: event.offsetY, far: from.far + Math.abs(dx) + Math.abs(dy) };
            setCamera(pan(moved.value ?? camera, dx, dy));
          }}
          onPointerUp={(event) => {
            if ((drag.current?.far ?? 0) < 5) choose(event.offsetX, event.offsetY);
            drag.current = null;
          }}
          onWheel={(event) => {
            event.preventDefault();
            setCamera(zoom(camera, size, { x: event.offsetX, y: event.offsetY }, event.deltaY < 0 ? 1.15 : 1 / 1.15));
          }}
        />
      </div>
      <Legend />
    </section>
  );
}

interface PictureProps {
  readonly view: View;
  readonly now: FleetNow;
  readonly live: boolean;
  readonly chosen: string | null;
  readonly dark: boolean;
}

/** The canvas, repainted for each frame in which a truck moves; everything below the trucks is cached. */
function Picture({ view, now, live, chosen, dark }: PictureProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const motion = useRef(new Motion());
  const latest = useRef({ view, now, chosen });
  latest.current = { view, now, chosen };
  useMemo(() => motion.current.update(now, live ? performance.now() : null), [now, live]);
  const { width, height } = view.size;
  useEffect(() => {
    const context = resizeCanvas(canvas.current, { width, height }, { alpha: false });
    const parent = canvas.current?.parentElement ?? null;
    if (context === null || parent === null) return;
    const colours = paletteOf(parent);
    const layers = new Layers({ width, height }, colours);
    const painter = new TruckPainter(context, colours, devicePixelRatio);
    const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let frameId = 0;
    let paintedChosen: string | null | undefined;
    const paint = () => {
      const { view: currentView, now: moment, chosen: currentChosen } = latest.current;
      const changed = layers.show(currentView, moment) || paintedChosen !== currentChosen || !motion.current.arrived;
      const time = reducedMotion ? Infinity : performance.now();
      if (changed) painter.paint(currentView, layers.below, motion.current.at(time), currentChosen);
      paintedChosen = currentChosen;
      frameId = requestAnimationFrame(paint);
    };
    paint();
    return () => cancelAnimationFrame(frameId);
  }, [width, height, theme.value, dark]);
  return <canvas ref={canvas} aria-hidden="true" />;
}

function nextTruck({ trucks }: FleetNow, chosen: string | null, step: number): string | null {
  const at = trucks.findIndex(({ robot_id }) => robot_id === chosen);
  const next = at < 0 ? (step > 0 ? 0 : trucks.length - 1) : (at + step + trucks.length) % trucks.length;
  return trucks[next]?.robot_id ?? null;
}

function sizeFor(width: number, map: MapView): Size {
  const { width: across, height: up } = extentOf(map);
  const shape = up / across;
  return { width, height: Math.round(Math.min(620, Math.max(260, width * Math.min(shape, 0.9)))) };
}

function middleOf({ width, height }: Size) {
  return { x: width / 2, y: height / 2 };
}
