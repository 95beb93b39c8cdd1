/** A drawing of a state machine, with the current state and its outgoing transitions highlighted. */

import { useEffect, useRef } from "preact/hooks";

import type { SchedulerMachine } from "../../api/types";
import type { Box, Line } from "./machine";
import { BOX, pictureOf } from "./machine";
import { readable } from "./model";

interface MachineDrawingProps {
  readonly machine: SchedulerMachine;
  /** The state of the object. */
  readonly current: string;
  /** Its earlier states. */
  readonly visited?: readonly string[];
}

export function MachineDrawing({ machine, current, visited = [] }: MachineDrawingProps) {
  const { width, height, boxes, lines } = pictureOf(machine);
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // A drawing wider than the screen is scrolled to the current state.
    const box = boxes.find(({ place }) => place === current);
    if (frame.current === null || box === undefined) return;
    const { scrollWidth, clientWidth } = frame.current;
    frame.current.scrollLeft = ((box.x + BOX.width / 2) / width) * scrollWidth - clientWidth / 2;
  }, [current, machine.object_type]);
  const ordered = [...lines].sort((a, b) => Number(a.source === current) - Number(b.source === current));
  return (
    <div ref={frame} class="machine" role="region" aria-label={`State machine of ${machine.object_type}`} tabIndex={0}>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`${boxes.length} states; current: ${readable(current)}`}
        data-testid="machine"
      >
        <defs>
          {["quiet", "current"].map((kind) => (
            <marker
              key={kind}
              id={`arrow-${kind}`}
              class={`machine-head-${kind}`}
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="7"
              markerHeight="7"
              orient="auto-start-reverse"
            >
              <path d="M0 0 L8 4 L0 8 Z" />
            </marker>
          ))}
        </defs>
        {ordered.map((line) => (
          <ArrowLine key={`${line.source}>${line.target}`} line={line} isCurrent={line.source === current} />
        ))}
        {boxes.map((box) => (
          <StateBox
            key={box.place}
            box={box}
            state={box.place === current ? "current" : visited.includes(box.place) ? "visited" : "quiet"}
          />
        ))}
      </svg>
    </div>
  );
}

function ArrowLine({ line, isCurrent }: { readonly line: Line; readonly isCurrent: boolean }) {
  return (
    <path
      class="machine-line"
      data-current={isCurrent}
      d={line.path}
      marker-end={`url(#arrow-${isCurrent ? "current" : "quiet"})`}
    >
      <title>
        {readable(line.source)} to {readable(line.target)}: {line.label}
      </title>
    </path>
  );
}

function StateBox({ box, state }: { readonly box: Box; readonly state: "current" | "visited" | "quiet" }) {
  const [status = "", axis] = box.place.split("/");
  const middle = box.x + BOX.width / 2;
  return (
    <g
      class="machine-state"
      data-state={state}
      data-place={box.place}
      data-testid={state === "current" ? "current-state" : undefined}
    >
      <rect x={box.x} y={box.y} width={BOX.width} height={BOX.height} rx="8" />
      <text x={middle} y={box.y + BOX.height / 2 + (axis === undefined ? 4.5 : -3)}>
        {readable(status)}
      </text>
      {axis !== undefined && (
        <text class="machine-axis" x={middle} y={box.y + BOX.height / 2 + 13}>
          {axis}
        </text>
      )}
      {state === "visited" && <circle cx={box.x + BOX.width - 9} cy={box.y + 9} r="3" />}
    </g>
  );
}
