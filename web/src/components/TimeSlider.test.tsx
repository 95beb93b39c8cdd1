// @vitest-environment happy-dom

import { expect, test, vi } from "vitest";

import { draw, find, interact } from "../testing/drawing";
import { TimeSlider } from "./TimeSlider";

function slider(at: number | null, onMove: (n: number | null) => void = () => undefined) {
  return draw(
    <TimeSlider
      first={10}
      last={110}
      at={at}
      snapshots={[
        [35, 1],
        [60, 2],
        [85, 3],
      ]}
      onMove={onMove}
    />,
  );
}

test("the right end of the slider is live", () => {
  const moved = vi.fn();
  const input = find<HTMLInputElement>(slider(50, moved), "input");

  interact(() => {
    input.value = "110";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });

  expect(moved).toHaveBeenCalledWith(null);
});

test("the slider describes its position for screen readers", () => {
  expect(find(slider(null), "input").getAttribute("aria-valuetext")).toBe("live, record 110");
  expect(find(slider(50), "input").getAttribute("aria-valuetext")).toBe("record 50 of 110");
});

test("the step buttons go to the previous snapshot, one record back and one forward", () => {
  const moved = vi.fn();
  const page = slider(60, moved);

  for (const button of page.querySelectorAll<HTMLElement>(".slider-buttons button")) interact(() => button.click());

  expect(moved.mock.calls).toEqual([[35], [59], [61]]);
});
