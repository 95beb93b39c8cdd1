// @vitest-environment happy-dom

import { expect, test, vi } from "vitest";

import { ApiError } from "../api/client";
import { doing, draw, find } from "../testing/drawing";
import { SchedulerFrame } from "./SchedulerFrame";

const LIVE = { at: null, journal: null, error: null, fetching: null, onMove: () => undefined, children: null };
const EXTENT = { first: 0, last: 9, snapshots: [] };

test("a scheduler without a journal has no slider", () => {
  expect(draw(<SchedulerFrame {...LIVE} />).querySelector("[data-testid=time-slider]")).toBeNull();
  expect(draw(<SchedulerFrame {...LIVE} journal={EXTENT} />).querySelector("[data-testid=time-slider]")).not.toBeNull();
});

test("the past is marked, and a button leads back to live", () => {
  const moved = vi.fn();
  const page = draw(<SchedulerFrame {...LIVE} journal={EXTENT} at={4} onMove={moved} />);

  doing(() => find(page, "[data-testid=back-to-live]").click());

  expect(find(page, "[data-testid=scheduler]").getAttribute("data-live")).toBe("false");
  expect(moved).toHaveBeenCalledWith(null);
});

test("what went wrong stands in the place of what is being fetched", () => {
  const fetching = "Fetching the world …";
  expect(draw(<SchedulerFrame {...LIVE} fetching={fetching} />).textContent).toBe(fetching);

  const page = draw(<SchedulerFrame {...LIVE} fetching={fetching} error={new ApiError("broken", "It broke.")} />);

  expect(page.textContent).toContain("It broke.");
  expect(page.textContent).not.toContain(fetching);
});
