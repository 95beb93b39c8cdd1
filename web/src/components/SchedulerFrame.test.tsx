// @vitest-environment happy-dom

import { expect, test, vi } from "vitest";

import { ApiError } from "../api/client";
import { draw, find, interact } from "../testing/drawing";
import { SchedulerFrame } from "./SchedulerFrame";

const LIVE = { at: null, journal: null, error: null, loading: null, onMove: () => undefined, children: null };
const EXTENT = { first: 0, last: 9, snapshots: [] };

test("a scheduler without a journal has no slider", () => {
  expect(draw(<SchedulerFrame {...LIVE} />).querySelector("[data-testid=time-slider]")).toBeNull();
  expect(draw(<SchedulerFrame {...LIVE} journal={EXTENT} />).querySelector("[data-testid=time-slider]")).not.toBeNull();
});

test("a past moment is marked, and a button returns to live", () => {
  const moved = vi.fn();
  const page = draw(<SchedulerFrame {...LIVE} journal={EXTENT} at={4} onMove={moved} />);

  interact(() => find(page, "[data-testid=back-to-live]").click());

  expect(find(page, "[data-testid=scheduler]").getAttribute("data-live")).toBe("false");
  expect(moved).toHaveBeenCalledWith(null);
});

test("an error replaces the loading text", () => {
  const loading = "Loading the world …";
  expect(draw(<SchedulerFrame {...LIVE} loading={loading} />).textContent).toBe(loading);

  const page = draw(<SchedulerFrame {...LIVE} loading={loading} error={new ApiError("broken", "It broke.")} />);

  expect(page.textContent).toContain("It broke.");
  expect(page.textContent).not.toContain(loading);
});
