// @vitest-environment happy-dom

import { expect, test } from "vitest";

import type { FleetNow, MapView } from "../../api/types";
import type { Palette } from "../../canvas/palette";
import { Layers } from "./layers";

const SIZE = { width: 400, height: 300 };
const view = () => ({ map: {} as MapView, camera: { x: 0, y: 0, scale: 1 }, size: SIZE });
const moment = () => ({ trucks: [] }) as unknown as FleetNow;

test("the layers below the trucks are painted once per view and moment", () => {
  const layers = new Layers(SIZE, {} as Palette);
  const [current, now] = [view(), moment()];

  expect([layers.show(current, now), layers.show(current, now)]).toEqual([true, false]);
  expect([layers.show(current, moment()), layers.show(view(), now)]).toEqual([true, true]);
});
