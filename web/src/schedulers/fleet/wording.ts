/** Formatting of times, speeds, phases and states of a fleet. */

import type { TruckNow } from "../../api/types";
import { integer } from "../../wording";

/** Fleet time as `1:02:03`. */
export function fleetTime(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${integer(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

export function speed(mmPerSecond: number): string {
  return `${(mmPerSecond / 1000).toFixed(1)} m/s`;
}

const PHASES: Readonly<Record<string, string>> = {
  TO_PICK: "to pick",
  LOADING: "loading",
  TO_DROP: "to drop",
  UNLOADING: "unloading",
  IDLE: "idle",
  TO_PARK: "to parking",
};

export function phase({ phase: code }: TruckNow): string {
  return PHASES[code] ?? code;
}

/** The phase of a truck and its task. */
export function assignment(truck: TruckNow): readonly string[] {
  return truck.task_id === null ? [phase(truck)] : [`${phase(truck)},`, truck.task_id];
}

/** The state of a truck in one word; the most severe applies. */
export function condition(truck: TruckNow): string {
  if (truck.paused) return "paused";
  if (truck.health !== "HEALTHY") return truck.health.toLowerCase().replaceAll("_", " ");
  if (isStopped(truck)) return "stopped";
  if (truck.blocker !== null || truck.hold_reason === "TRAFFIC_HOLD") return "waits";
  if (truck.turning && !truck.obstructed) return "turns";
  if (truck.speed > 0) return "drives";
  if (truck.obstructed && UNDER_WAY.has(truck.code)) return "waits";
  return UNDER_WAY.has(truck.code) && DRIVING_PHASES.has(truck.phase) ? "starts" : "stands";
}

const UNDER_WAY: ReadonlySet<string> = new Set(["UNDER_WAY", "GOING_TO_PARK"]);
const DRIVING_PHASES: ReadonlySet<string> = new Set(["TO_PICK", "TO_DROP", "TO_PARK"]);
const MOVES: ReadonlySet<string> = new Set(["drives", "turns", "starts"]);

/** Whether a truck drives, turns on the spot, or is about to start. */
export function isMoving(truck: TruckNow): boolean {
  return MOVES.has(condition(truck));
}

/** Whether a truck itself is stopped; one that stops because of another truck only waits. */
export function isStopped({ paused, health, code }: TruckNow): boolean {
  return paused || health !== "HEALTHY" || (code.startsWith("STOP_") && code !== "STOP_FOREIGN_OCCUPANCY");
}

const LOST: ReadonlySet<string> = new Set(["POSE_JUMP", "OFF_ROUTE"]);

/** Whether the position of a truck is in doubt, so that an operator may confirm it: after a pose jump, off its route, or
 * after an operator stop without a pause. */
export function isLost({ health, code, paused }: TruckNow): boolean {
  return LOST.has(health) || (code === "STOP_OPERATOR" && !paused);
}
