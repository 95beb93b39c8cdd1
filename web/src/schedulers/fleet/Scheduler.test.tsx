// @vitest-environment happy-dom

import { expect, test } from "vitest";

import type { FleetNow } from "../../api/types";
import { draw, find } from "../../testing/drawing";
import { Figures } from "./Scheduler";

const moment = (done: number) =>
  ({
    now: 0,
    tick: 1,
    trucks: [],
    counts: { DONE: done },
    override: false,
    degraded: null,
    broken: [],
  }) as unknown as FleetNow;

test.each([
  [0, "0 tasks"],
  [1, "1 task"],
  [2, "2 tasks"],
])("the count of %i done tasks has the right plural", (done, text) => {
  const page = draw(<Figures now={moment(done)} />);

  expect(find(page, "[data-testid=readout-done] dd").textContent).toBe(text);
});
