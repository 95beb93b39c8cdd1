// @vitest-environment happy-dom

import { expect, test } from "vitest";

import type { FleetNow, MapView } from "../../api/types";
import type { Palette } from "../../canvas/palette";
import { Layers } from "./layers";

const SIZE = { width: 400, height: 300 };
const view = () => ({ map: {} as MapView, camera: { x: 0, y: 0, scale: 1 }, size: SIZE });
const moment = () => ({ trucks: [] }) as unknown as FleetNow;

test("what lies below the trucks is drawn once for a view and a moment", () => {
  const layers = new Layers(SIZE, {} as Palette);
  const [seen, now] = [view(), moment()];

  expect([layers.show(seen, now), layers.show(seen, now)]).toEqual([true, false]);
  expect([layers.show(seen, moment()), layers.show(view(), now)]).toEqual([true, true]);
});
