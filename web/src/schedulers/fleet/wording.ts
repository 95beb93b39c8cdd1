/** How times, speeds and phases of a fleet are written. */

import type { TruckNow } from "../../api/types";
import { integer } from "../../wording";

/** `1:02:03` of the fleet's own time. */
export function fleetTime(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${integer(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

export function speed(mmPerSecond: number): string {
  return `${(mmPerSecond / 1000).toFixed(1)} m/s`;
}

const PHASES: Readonly<Record<string, string>> = {
  TO_PICK: "to its pick",
  LOADING: "loading",
  TO_DROP: "to its drop",
  UNLOADING: "unloading",
  IDLE: "idle",
  TO_PARK: "to its parking place",
};

export function phase({ phase: told }: TruckNow): string {
  return PHASES[told] ?? told;
}

/** What a truck is about, and for which task. */
export function errand(truck: TruckNow): readonly string[] {
  return truck.task_id === null ? [phase(truck)] : [`${phase(truck)},`, truck.task_id];
}

/** How a truck is in one word, worst first. */
export function condition(truck: TruckNow): string {
  if (truck.paused) return "paused";
  if (truck.health !== "HEALTHY") return truck.health.toLowerCase().replaceAll("_", " ");
  if (isStopped(truck)) return "stopped";
  if (truck.blocker !== null || truck.hold_reason === "TRAFFIC_HOLD") return "waits";
  if (truck.turning && !truck.obstructed) return "turns";
  if (truck.speed > 0) return "drives";
  if (truck.obstructed && UNDER_WAY.has(truck.code)) return "waits";
  return UNDER_WAY.has(truck.code) && ON_THE_ROAD.has(truck.phase) ? "sets out" : "stands";
}

const UNDER_WAY: ReadonlySet<string> = new Set(["UNDER_WAY", "GOING_TO_PARK"]);
const ON_THE_ROAD: ReadonlySet<string> = new Set(["TO_PICK", "TO_DROP", "TO_PARK"]);
const MOVES: ReadonlySet<string> = new Set(["drives", "turns", "sets out"]);

/** Whether a truck is on the move: it drives, turns on the spot, or has just got its way. */
export function isMoving(truck: TruckNow): boolean {
  return MOVES.has(condition(truck));
}

/** Whether a truck is stopped for its own sake; one that stops for another truck only waits for it. */
export function isStopped({ paused, health, code }: TruckNow): boolean {
  return paused || health !== "HEALTHY" || (code.startsWith("STOP_") && code !== "STOP_FOREIGN_OCCUPANCY");
}

const LOST: ReadonlySet<string> = new Set(["POSE_JUMP", "OFF_ROUTE"]);

/** Whether a truck may be elsewhere than it is believed to be, so that a person may say that it is: its pose says so, or
 * an operator set it aside, whom it obeys without being paused. */
export function isLost({ health, code, paused }: TruckNow): boolean {
  return LOST.has(health) || (code === "STOP_OPERATOR" && !paused);
}
