import { expect, test } from "vitest";

import type { FleetNow, MapView, TruckNow } from "../../api/types";
import {
  between,
  fitCamera,
  freeSides,
  nearestPosition,
  pan,
  placeNames,
  pointOn,
  scaleBar,
  shortTurn,
  stretch,
  toMap,
  toScreen,
  truckAt,
  zoom,
} from "./geometry";
import { Motion } from "./motion";
import { assignment, fleetTime, isLost } from "./wording";

const SIZE = { width: 400, height: 300 };
const EDGE = {
  points: [
    [0, 0],
    [1000, 0],
    [1000, 1000],
  ] as const,
  s: [0, 1000, 2000],
};
const at = (x: number, y: number, yaw = 0) => ({ x, y, yaw });
const truck = (robot_id: string, place: ReturnType<typeof at> | null) =>
  ({ robot_id, at: place }) as unknown as TruckNow;
const fleet = (...trucks: TruckNow[]) => ({ trucks }) as unknown as FleetNow;

const MAP = { low: [0, 0], high: [40_000, 10_000], nodes: [], profiles: [] } as const;

test("the whole map fits into the picture, north up", () => {
  const camera = fitCamera(MAP, SIZE);
  const [south, north] = [toScreen(camera, SIZE, { x: 0, y: 0 }), toScreen(camera, SIZE, { x: 40_000, y: 10_000 })];

  expect(south.x).toBeCloseTo(32);
  expect(north.x).toBeCloseTo(368);
  expect(north.y).toBeLessThan(south.y);
});

test("trucks and names at the edge of the map are fully visible", () => {
  const outline = { front: 2_100, rear: 2_300, side: 900 };
  const profiles = [{ profile_id: "long", body: outline, envelope: outline }];
  const nodes = [{ id: "GOODS-IN-NORTH", station: true, parking: false }] as unknown as MapView["nodes"];

  const high = fitCamera({ low: [0, 0], high: [5_000, 10_000], nodes: [], profiles }, SIZE);
  const named = fitCamera({ ...MAP, nodes }, SIZE);

  expect(toScreen(high, SIZE, { x: 0, y: 12_300 }).y).toBeGreaterThanOrEqual(0);
  expect(toScreen(named, SIZE, { x: 0, y: 0 }).x).toBeGreaterThanOrEqual(49);
});

test("the point under the pointer stays fixed while zooming", () => {
  const camera = fitCamera(MAP, SIZE);
  const pointer = { x: 100, y: 50 };

  const nearer = zoom(camera, SIZE, pointer, 2);

  expect(toMap(nearer, SIZE, pointer).x).toBeCloseTo(toMap(camera, SIZE, pointer).x);
  expect(toMap(nearer, SIZE, pointer).y).toBeCloseTo(toMap(camera, SIZE, pointer).y);
  expect(toScreen(pan(camera, 10, 5), SIZE, { x: 0, y: 0 }).x).toBeCloseTo(
    toScreen(camera, SIZE, { x: 0, y: 0 }).x + 10,
  );
});

test("a stretch of an edge follows its corners", () => {
  expect(pointOn(EDGE, 1500)).toEqual({ x: 1000, y: 500 });
  expect(stretch(EDGE, 500, 1500)).toEqual([
    { x: 500, y: 0 },
    { x: 1000, y: 0 },
    { x: 1000, y: 500 },
  ]);
});

test("a truck turns the short way, and jumps are not animated", () => {
  expect(shortTurn(3100, -3100)).toBeCloseTo(2 * Math.PI * 1000 - 6200);
  expect(between(at(0, 0), at(1000, 0), 0.25)).toEqual(at(250, 0));
  expect(between(at(0, 0), at(9000, 0), 0.25)).toEqual(at(9000, 0));
  expect(between(null, at(5, 5), 0.5)).toEqual(at(5, 5));
});

test("trucks move from their last painted to their reported position", () => {
  const motion = new Motion();
  motion.update(fleet(truck("R1", at(0, 0))), 0);
  motion.update(fleet(truck("R1", at(1000, 0))), 1000);

  expect(motion.at(1500)[0]?.at.x).toBeCloseTo(500);
  expect(motion.at(9000)[0]?.at.x).toBe(1000);
});

test("nothing is repainted after all trucks have arrived, until the next update", () => {
  const motion = new Motion();
  motion.update(fleet(truck("R1", at(0, 0))), 0);
  const [atStart, , underWay] = [motion.arrived, motion.at(60), motion.arrived];
  motion.at(9000);

  expect([atStart, underWay, motion.arrived]).toEqual([false, false, true]);
  motion.update(fleet(truck("R1", at(0, 0))), 9001);
  expect(motion.arrived).toBe(false);
});

test("a waiting truck refers to its blocker if the blocker is visible", () => {
  const waits = (robot: string, blocker: string) => ({ ...truck(robot, at(0, 0)), blocker });
  const motion = new Motion();
  motion.update(fleet(waits("R1", "R2"), waits("R2", "R3"), truck("R3", null)), null);

  expect(motion.at(0).map(({ blocker }) => blocker?.truck.robot_id ?? null)).toEqual(["R2", null]);
});

test("a name is on a side of its node without lanes", () => {
  const node = { x: 0, y: 0 };
  const lane = (x: number, y: number) => ({ start: 0, end: 1, points: [[0, 0] as const, [x, y] as const] });
  const side = (...lanes: ReturnType<typeof lane>[]) => {
    const [{ x, y } = { x: 0, y: 0 }] = freeSides({ nodes: [node, node], edges: lanes } as unknown as MapView);
    return [Math.round(x * 100) / 100, Math.round(y * 100) / 100].map((value) => value + 0);
  };

  expect(side()).toEqual([0, -1]);
  expect([side(lane(5, 0)), side(lane(5, 0), lane(-5, 0))]).toEqual([
    [0, -1],
    [0, -1],
  ]);
  // The lane of a parking node leads south, so its name is north of it.
  expect(side(lane(0, -5))).toEqual([0, 1]);
  // Lanes to the north, south and east: the name is on the west side.
  expect(side(lane(0, 5), lane(0, -5), lane(5, 0))).toEqual([-1, 0]);
  // Both directions of a lane count once.
  expect(side(lane(0, -5), lane(0, -5), lane(0, 5), lane(-5, 0))).toEqual([1, 0]);
});

test("a past moment is not animated", () => {
  const motion = new Motion();
  motion.update(fleet(truck("R1", at(0, 0))), 0);
  motion.update(fleet(truck("R1", at(1000, 0))), null);

  expect(motion.at(1)[0]?.at.x).toBe(1000);
});

test("the nearest truck within reach is hit", () => {
  const trucks = [truck("R1", at(0, 0)), truck("R2", at(100, 0)), truck("R3", null)];

  expect([truckAt(trucks, { x: 80, y: 0 }, 50), truckAt(trucks, { x: 400, y: 0 }, 50)]).toEqual(["R2", null]);
});

test("the scale bar has a round length, and times are formatted", () => {
  expect(scaleBar(0.01, 140).metres).toBe(10);
  expect(fleetTime(3_723_000)).toBe("1:02:03");
});

test("the nearest position is on the nearest edge, in metres along it", () => {
  const edges = [
    { key: "A->B", ...EDGE },
    { key: "C->D", points: [[0, 500] as const, [500, 500] as const], s: [0, 500] },
  ];

  expect(nearestPosition(edges, { x: 1050, y: 250 })).toEqual({ edgeKey: "A->B", sM: 1.25 });
  expect(nearestPosition(edges, { x: 200, y: 480 })).toEqual({ edgeKey: "C->D", sM: 0.2 });
  expect(nearestPosition([], { x: 0, y: 0 })).toBeNull();
});

const mark = (name: string, x: number, y: number, side = { x: 0, y: -1 }) => ({ name, x, y, side });
const textWidth = (name: string) => name.length * 6;

test("a name is on the free side of its mark, or where it covers no other name or mark", () => {
  const [first, second] = placeNames([mark("Presse B4", 100, 50), mark("Presse C4", 125, 50)], textWidth);

  expect(first).toEqual({ left: 73, top: 59, right: 127, bottom: 71 });
  expect(second).toEqual({ left: 98, top: 29, right: 152, bottom: 41 });
});

test("a name without free space is left out", () => {
  const crowd = [-20, -10, 0, 10, 20].flatMap((x) => [-20, -10, 0, 10, 20].map((y) => mark("a long name", x, y)));
  const middle = placeNames(crowd, textWidth)[12];

  expect(middle).toBeNull();
});

test("names beside their marks avoid a lane to the south", () => {
  const [east] = placeNames([mark("Tor", 0, 0, { x: 1, y: 0 })], textWidth);

  expect(east).toEqual({ left: 9, top: -6, right: 27, bottom: 6 });
});

test("the assignment of a truck names its task", () => {
  const text = (phase: string, task_id: string | null) => assignment({ phase, task_id } as TruckNow).join(" ");

  expect([text("TO_DROP", "Z-2"), text("IDLE", null)]).toEqual(["to drop, Z-2", "idle"]);
});

test("only a truck that jumped or was relocated by an operator is lost", () => {
  const isLostWith = (health: string, code: string, paused = false) => isLost({ health, code, paused } as TruckNow);

  expect(isLostWith("POSE_JUMP", "STOP_POSE_JUMP")).toBe(true);
  expect(isLostWith("HEALTHY", "STOP_OPERATOR")).toBe(true);
  expect(isLostWith("HEALTHY", "STOP_OPERATOR", true)).toBe(false);
  expect(isLostWith("HEALTHY", "WAIT_SPACING")).toBe(false);
});
