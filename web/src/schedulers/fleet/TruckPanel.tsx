/** One truck: the reason for its state, the chain of waiting trucks, and operator actions. */

import { useSignal } from "@preact/signals";

import type { EngineAddress } from "../../api/client";
import type { FleetNow, MapEdge, MapView, TruckNow } from "../../api/types";
import { ReasonChain } from "../../components/ReasonChain";
import { timeSpan } from "../../wording";
import type { Action } from "./Actions";
import { Actions } from "./Actions";
import { nearestPosition } from "./geometry";
import { useReason } from "./use_reason";
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
        <dt>last contact</dt>
        <dd>{truck.report_age === null ? "none yet" : `${timeSpan(truck.report_age)} ago`}</dd>
        <dt>load</dt>
        <dd>{truck.load ? "on board" : "none"}</dd>
        <dt>parks at</dt>
        <dd>{truck.park_node_id}</dd>
      </dl>
      {chain.length > 1 && (
        <ol class="truck-chain" aria-label="Chain of waiting trucks" data-testid="truck-chain">
          {chain.map((robot) => (
            <li key={robot}>
              <button type="button" class="link-button" onClick={() => onChoose(robot)}>
                {robot}
              </button>{" "}
              {now.trucks.find(({ robot_id }) => robot_id === robot)?.sentence ?? ""}
            </li>
          ))}
        </ol>
      )}
      {live && <FullReason address={address} robot={truck.robot_id} tick={now.tick} />}
      {live && (
        <Actions
          // Keyed by truck, so that a pending action never applies to another one.
          key={truck.robot_id}
          actions={truckActions(truck, map.edges)}
          target={{ robotId: truck.robot_id }}
          targetName="truck"
          address={address}
          onDone={onDone}
        />
      )}
      {live && !truck.removable && (
        <p class="quiet" data-testid="truck-not-removable">
          A truck can be removed once it is paused and stands still, or is offline or faulty.
        </p>
      )}
    </section>
  );
}

/** The full reason with its facts, fetched when it is opened. */
function FullReason({
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

/** The actions on a truck that would be accepted now. */
export function truckActions(truck: TruckNow, edges: readonly MapEdge[]): readonly Action[] {
  const { robot_id, paused, at, silent, clearable, removable, releasable } = truck;
  const pause: Action = paused
    ? { type: "RESUME_ROBOT", title: "Resume", question: `This lets ${robot_id} drive again.` }
    : { type: "PAUSE_ROBOT", title: "Pause", question: `This pauses ${robot_id}: it stops as soon as it can.` };
  const clear: Action = {
    type: "CLEAR_FAULT",
    title: "Clear fault",
    question: `This clears the fault of ${robot_id}: it may drive again.`,
  };
  const position = at === null || !isLost(truck) ? null : nearestPosition(edges, at);
  const relocate: Action[] =
    position === null
      ? []
      : [
          {
            type: "RELOCATE",
            title: "Confirm position",
            question: `This confirms that ${robot_id} is on ${position.edgeKey}, ${position.sM} m from its start: it continues from there.`,
            more: { anchor: { edgeKey: position.edgeKey, sM: position.sM } },
          },
        ];
  const absent: Action = {
    type: "DECLARE_ABSENT",
    title: "Declare absent",
    question: `This declares ${robot_id} absent: the other trucks may start without a report from it. It keeps its resources.`,
  };
  const release: Action = {
    type: "FORCE_RELEASE",
    title: "Release resources",
    question: `This releases the selected resources; the place of ${robot_id} stays closed until it is removed.`,
    resources: releasable,
    irreversible: true,
  };
  const remove: Action = {
    type: "REMOVE_ROBOT",
    title: "Remove",
    question: `This removes ${robot_id} from the map and releases all its resources.`,
    irreversible: true,
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
