/** One truck: why it stands, as one sentence and as a list to the root, and what a person can do about it. */

import { useSignal } from "@preact/signals";

import type { EngineAddress } from "../../api/client";
import type { FleetNow, MapEdge, MapView, TruckNow } from "../../api/types";
import { ReasonChain } from "../../components/ReasonChain";
import { timeSpan } from "../../wording";
import type { Deed } from "./Deeds";
import { Deeds } from "./Deeds";
import { nearestPlace } from "./geometry";
import { useReason } from "./reason";
import { condition, isLost, phase, speed } from "./wording";

interface TruckPanelProps {
  readonly truck: TruckNow;
  readonly map: MapView;
  readonly now: FleetNow;
  readonly address: EngineAddress;
  readonly live: boolean;
  readonly onChoose: (robot: string | null) => void;
  readonly onDone: () => void;
}

export function TruckPanel({ truck, map, now, address, live, onChoose, onDone }: TruckPanelProps) {
  const chain = truck.because;
  return (
    <section class="panel truck-panel" aria-label={`Truck ${truck.robot_id}`} data-testid="panel-truck">
      <div class="panel-head">
        <h2>{truck.robot_id}</h2>
        <span class="count">
          {condition(truck)}, {phase(truck)}
          {truck.task_id === null ? "" : `, task ${truck.task_id}`}
        </span>
        <button type="button" class="button" onClick={() => onChoose(null)}>
          Close
        </button>
      </div>
      <p class="truck-why" data-testid="truck-why">
        {truck.sentence}
      </p>
      <dl class="truck-facts">
        <dt>speed</dt>
        <dd>{speed(truck.speed)}</dd>
        <dt>heard of</dt>
        <dd>{truck.report_age === null ? "not yet" : `${timeSpan(truck.report_age)} ago`}</dd>
        <dt>load</dt>
        <dd>{truck.load ? "on board" : "none"}</dd>
        <dt>parks at</dt>
        <dd>{truck.park_node_id}</dd>
      </dl>
      {chain.length > 1 && (
        <ol class="truck-chain" aria-label="Who waits for whom" data-testid="truck-chain">
          {chain.map((robot) => (
            <li key={robot}>
              <button type="button" class="link-button" onClick={() => onChoose(robot)}>
                {robot}
              </button>{" "}
              {now.trucks.find((one) => one.robot_id === robot)?.sentence ?? ""}
            </li>
          ))}
        </ol>
      )}
      {live && <Because address={address} robot={truck.robot_id} tick={now.tick} />}
      {live && (
        <Deeds
          // What was asked of one truck is never done to another.
          key={truck.robot_id}
          deeds={deedsFor(truck, map.edges)}
          about={{ robotId: truck.robot_id }}
          of="truck"
          address={address}
          onDone={onDone}
        />
      )}
      {live && !truck.removable && (
        <p class="quiet" data-testid="truck-not-removable">
          It can be taken out of the hall once it is paused and stands, or is offline or faulty.
        </p>
      )}
    </section>
  );
}

/** The whole reason with its facts, asked for when somebody wants to see it. */
function Because({
  address,
  robot,
  tick,
}: {
  readonly address: EngineAddress;
  readonly robot: string;
  readonly tick: number;
}) {
  const open = useSignal(false);
  const reason = useReason(address, open.value ? { robot } : null, tick);
  return (
    <details class="fold" onToggle={(event) => (open.value = (event.currentTarget as HTMLDetailsElement).open)}>
      <summary>All facts</summary>
      {reason !== null && <ReasonChain reason={reason} />}
    </details>
  );
}

/** What a person can do about a truck: all that would be accepted of it now. */
export function deedsFor(truck: TruckNow, edges: readonly MapEdge[]): readonly Deed[] {
  const { robot_id, paused, at, silent, clearable, removable, releasable } = truck;
  const pause: Deed = paused
    ? { type: "RESUME_ROBOT", title: "Let it go on", question: `This lets ${robot_id} drive again.` }
    : { type: "PAUSE_ROBOT", title: "Pause", question: `This stops ${robot_id} where it can, until it is let go on.` };
  const clear: Deed = {
    type: "CLEAR_FAULT",
    title: "Clear fault",
    question: `This says that the fault of ${robot_id} is over: it may go on.`,
  };
  const place = at === null || !isLost(truck) ? null : nearestPlace(edges, at);
  const relocate: Deed[] =
    place === null
      ? []
      : [
          {
            type: "RELOCATE",
            title: "It is where it says",
            question: `This says that ${robot_id} is really on ${place.edgeKey}, ${place.sM} m from its beginning: it goes on from there.`,
            more: { anchor: { edgeKey: place.edgeKey, sM: place.sM } },
          },
        ];
  const absent: Deed = {
    type: "DECLARE_ABSENT",
    title: "It is not there",
    question: `This says that ${robot_id} is not there: the others may set out without having heard of it. It keeps what it holds.`,
  };
  const release: Deed = {
    type: "FORCE_RELEASE",
    title: "Free what it holds",
    question: `This lets others have what is chosen here; where ${robot_id} stands stays closed until it is removed.`,
    resources: releasable,
    grave: true,
  };
  const remove: Deed = {
    type: "REMOVE_ROBOT",
    title: "Remove",
    question: `This takes ${robot_id} out of the hall: all that it holds is freed, and others may have it.`,
    grave: true,
  };
  return [
    pause,
    ...(clearable ? [clear] : []),
    ...relocate,
    ...(silent ? [absent] : []),
    ...(releasable.length > 0 ? [release] : []),
    ...(removable ? [remove] : []),
  ];
}
