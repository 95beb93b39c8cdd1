/** The timeline of a world: lanes for actors and locks, bars for running and done actions, stripes for waiting ones.
 *
 * Mouse and arrow keys select an action, which is described below the timeline. The same data is available as a table.
 */

import { useSignal } from "@preact/signals";
import { useId, useLayoutEffect, useMemo, useRef } from "preact/hooks";

import type { WorldNow } from "../../api/types";
import { useDarkScheme } from "../../canvas/colour_scheme";
import { resizeCanvas, useWidth } from "../../canvas/context";
import { paletteOf } from "../../canvas/palette";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { theme } from "../../theme";
import type { Bar, BarKind } from "./bars";
import type { BarOnLane, BarPosition, Layout } from "./lanes";
import { barAt, idOf, layoutOf, positionOf, rangeAround, step } from "./lanes";
import { Clock, span, words } from "./model";
import { paint } from "./paint";

const HOURS = [6, 12, 24] as const;
const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];

interface TimelineProps {
  readonly bars: readonly Bar[];
  readonly now: WorldNow;
  readonly live: boolean;
  readonly chosen: string | null;
  readonly onChoose: (action: string | null) => void;
}

export function Timeline({ bars, now, live, chosen, onChoose }: TimelineProps) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(frame);
  const hours = useSignal<number>(innerWidth < 640 ? 6 : 12);
  const selected = useSignal<BarOnLane | null>(null);
  const pointed = useSignal<Bar | null>(null);
  const dark = useDarkScheme();
  const id = useId();
  const clock = useMemo(() => new Clock(now.start_at), [now.start_at]);
  const range = rangeAround(now.t, hours.value);
  const layout = useMemo(() => layoutOf(bars, now, range, width.value), [bars, now, hours.value, width.value]);
  const chosenBar = byAction(layout, chosen);
  const shown = pointed.value ?? current(layout, selected.value, chosen)?.bar ?? chosenBar;
  // An action outside the visible range dims no other bar.
  const outlined = pointed.value?.action ?? chosenBar?.action ?? null;

  useLayoutEffect(() => {
    const context = resizeCanvas(canvas.current, layout);
    if (context === null || frame.current === null) return;
    const { epoch, pc, t } = now;
    paint(context, { layout, clock, epoch, now: t, live, pc, chosen: outlined }, paletteOf(frame.current));
  }, [layout, clock, live, outlined, theme.value, dark.value]);

  const choose = (lane: string, bar: Bar) => {
    selected.value = { lane, bar };
    onChoose(bar.action);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      selected.value = null;
      onChoose(null);
    }
    if (!ARROWS.includes(event.key)) return;
    event.preventDefault();
    const next = step(layout, current(layout, selected.value, chosen)?.position ?? null, event.key);
    const lane = next && layout.lanes[next.lane];
    const bar = next && lane?.bars[next.bar];
    if (lane && bar) choose(idOf(lane), bar);
  };

  return (
    <section class="panel timeline" aria-labelledby={`${id}title`} data-testid="panel-timeline">
      <div class="panel-head">
        <h2 id={`${id}title`}>Timeline</h2>
        <div class="segmented" role="group" aria-label="Hours shown">
          {HOURS.map((count) => (
            <button
              key={count}
              type="button"
              aria-pressed={hours.value === count}
              onClick={() => (hours.value = count)}
              data-testid={`hours-${count}`}
            >
              {count} h
            </button>
          ))}
        </div>
      </div>
      <div
        ref={frame}
        class="timeline-frame"
        tabIndex={0}
        role="group"
        aria-label="Timeline of actors and locks. Arrow keys select an action, Escape clears the selection. A table follows."
        aria-describedby={`${id}status`}
        onKeyDown={onKey}
        data-testid="timeline"
      >
        <canvas
          ref={canvas}
          aria-hidden="true"
          onPointerMove={(event) => (pointed.value = under(layout, event)?.bar ?? null)}
          onPointerLeave={() => (pointed.value = null)}
          onClick={(event) => {
            const hit = under(layout, event);
            if (hit === null) onChoose(null);
            else choose(hit.lane, hit.bar);
          }}
        />
      </div>
      <p class="timeline-status" id={`${id}status`} aria-live="polite" data-testid="timeline-status">
        {shown === null ? <Legend /> : sentenceOf(shown, clock, now.t)}
      </p>
      <details class="fold">
        <summary>Show as a table</summary>
        <DataTable
          caption="Actions on the timeline"
          columns={columns(clock)}
          rows={layout.lanes.filter(({ kind }) => kind === "actor").flatMap((lane) => lane.bars)}
          rowKey={(bar) => bar.key}
          empty="No actions in these hours."
          testId="timeline-table"
        />
      </details>
    </section>
  );
}

function Legend() {
  return (
    <span class="legend">
      {(
        [
          ["running", "runs"],
          ["done", "done"],
          ["waiting", "waits"],
          ["held", "held or suspended"],
          ["interrupted", "interrupted"],
          ["coming", "scheduled for later"],
          ["pc", "seen by the player character"],
        ] as const
      ).map(([kind, word]) => (
        <span key={kind} class="legend-item">
          <span class="swatch" data-kind={kind} aria-hidden="true" />
          {word}
        </span>
      ))}
    </span>
  );
}

const KIND_LABELS: Readonly<Record<BarKind, string>> = {
  done: "done",
  interrupted: "interrupted",
  running: "runs",
  waited: "waited",
  waiting: "waits",
  held: "held",
  suspended: "suspended",
};

/** The description of a bar. */
export function sentenceOf(bar: Bar, clock: Clock, now: number): string {
  const { action, actor, verb, kind, from, to, by, locks } = bar;
  const who = `${action}: ${actor}, ${words(verb)}`;
  const part = bar.segment > 0 ? `, part ${bar.segment + 1}` : "";
  const needs = locks.length > 0 ? ` Locks: ${locks.join(", ")}.` : "";
  const reason = by === null ? "" : ` by ${by}`;
  switch (kind) {
    case "running": {
      const left = span(Math.max(0, to - now));
      return `${who}${part}. Running since ${clock.moment(from)}, until ${clock.time(to)} (${left} left).${needs}`;
    }
    case "done":
      return `${who}${part}. ${clock.moment(from)} to ${clock.time(to)}, done in ${span(to - from)}.${needs}`;
    case "interrupted":
      return `${who}${part}. ${clock.moment(from)} to ${clock.time(to)}, then interrupted${reason}.${needs}`;
    case "waited":
      return `${who}${part}. Waited ${span(to - from)}, from ${clock.moment(from)} to ${clock.time(to)}.${needs}`;
    case "waiting":
      return `${who}${part}. Waiting since ${clock.moment(from)}, for ${span(to - from)} now.${needs}`;
    case "held":
      return `${who}${part}. Interrupted${reason}, held from ${clock.moment(from)} to ${clock.time(to)}.`;
    case "suspended":
      return `${who}${part}. Interrupted${reason} at ${clock.moment(from)}, suspended until resumed.`;
  }
}

function columns(clock: Clock): Column<Bar>[] {
  return [
    { key: "actor", title: "actor", by: ({ actor }) => actor, cell: ({ actor }) => actor },
    { key: "action", title: "action", by: ({ action }) => action, cell: ({ action }) => <code>{action}</code> },
    { key: "verb", title: "verb", by: ({ verb }) => verb, cell: ({ verb }) => words(verb) },
    { key: "from", title: "from", by: ({ from }) => from, cell: ({ from }) => clock.moment(from) },
    { key: "to", title: "to", by: ({ to }) => to, cell: ({ to }) => clock.moment(to) },
    { key: "kind", title: "state", by: ({ kind }) => kind, cell: ({ kind }) => KIND_LABELS[kind] },
    { key: "locks", title: "locks", wide: true, cell: ({ locks }) => locks.join(", ") },
  ];
}

/** The position of the selection; a bar that was replaced (a wait that ended) is found again by its action. */
function current(
  layout: Layout,
  selected: BarOnLane | null,
  chosen: string | null,
): { readonly position: BarPosition; readonly bar: Bar } | null {
  if (selected === null || selected.bar.action !== chosen) return null;
  const position =
    positionOf(layout, selected.lane, ({ key }) => key === selected.bar.key) ??
    positionOf(layout, selected.lane, ({ action }) => action === selected.bar.action);
  const bar = position && layout.lanes[position.lane]?.bars[position.bar];
  return position && bar ? { position, bar } : null;
}

function byAction(layout: Layout, action: string | null): Bar | null {
  return layout.lanes.flatMap(({ bars }) => bars).findLast((bar) => bar.action === action) ?? null;
}

function under(layout: Layout, event: MouseEvent): BarOnLane | null {
  return barAt(layout, event.offsetX, event.offsetY);
}
