/** A state machine drawn, with the state that an object is in lit, and the ways out of it. */

import { useEffect, useRef } from "preact/hooks";

import type { SchedulerMachine } from "../../api/types";
import type { Box, Line } from "./machine";
import { BOX, pictureOf } from "./machine";
import { said } from "./model";

interface MachineDrawingProps {
  readonly machine: SchedulerMachine;
  /** Where the object is. */
  readonly lit: string;
  /** Where it was before. */
  readonly visited?: readonly string[];
}

export function MachineDrawing({ machine, lit, visited = [] }: MachineDrawingProps) {
  const { width, height, boxes, lines } = pictureOf(machine);
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Where the drawing is wider than the screen, the lit state is what is wanted.
    const box = boxes.find(({ place }) => place === lit);
    if (frame.current === null || box === undefined) return;
    const { scrollWidth, clientWidth } = frame.current;
    frame.current.scrollLeft = ((box.x + BOX.width / 2) / width) * scrollWidth - clientWidth / 2;
  }, [lit, machine.object_type]);
  const ordered = [...lines].sort((one, other) => Number(one.source === lit) - Number(other.source === lit));
  return (
    <div ref={frame} class="machine" role="region" aria-label={`The states of a ${machine.object_type}`} tabIndex={0}>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`${boxes.length} states; it is in ${said(lit)}`}
        data-testid="machine"
      >
        <defs>
          {["quiet", "lit"].map((kind) => (
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
          <ArrowLine key={`${line.source}>${line.target}`} line={line} lit={line.source === lit} />
        ))}
        {boxes.map((box) => (
          <StateBox
            key={box.place}
            box={box}
            state={box.place === lit ? "lit" : visited.includes(box.place) ? "visited" : "quiet"}
          />
        ))}
      </svg>
    </div>
  );
}

function ArrowLine({ line, lit }: { readonly line: Line; readonly lit: boolean }) {
  return (
    <path class="machine-line" data-lit={lit} d={line.path} marker-end={`url(#arrow-${lit ? "lit" : "quiet"})`}>
      <title>
        {said(line.source)} to {said(line.target)}: {line.words}
      </title>
    </path>
  );
}

function StateBox({ box, state }: { readonly box: Box; readonly state: "lit" | "visited" | "quiet" }) {
  const [status = "", axis] = box.place.split("/");
  const middle = box.x + BOX.width / 2;
  return (
    <g
      class="machine-state"
      data-state={state}
      data-place={box.place}
      data-testid={state === "lit" ? "lit" : undefined}
    >
      <rect x={box.x} y={box.y} width={BOX.width} height={BOX.height} rx="8" />
      <text x={middle} y={box.y + BOX.height / 2 + (axis === undefined ? 4.5 : -3)}>
        {said(status)}
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
