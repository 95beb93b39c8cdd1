// @vitest-environment happy-dom

import { expect, test, vi } from "vitest";

import { draw, find, interact, texts } from "../testing/drawing";
import { JournalSlider } from "./JournalSlider";
import type { StopSource } from "./player";

const stop = (n: number) => ({ n, t: 10 * n, ms: n });
const INCIDENT = { n: 4, sentence: "R2 was stopped" };

function source(incident: typeof INCIDENT | null = INCIDENT) {
  const findIncident = vi.fn(() => Promise.resolve(incident));
  const made: StopSource = {
    sample: () => Promise.resolve([stop(0), stop(5), stop(9)]),
    atRecord: (n) => Promise.resolve({ stop: stop(n), next: null }),
    atWall: () => Promise.resolve({ stop: null, next: null }),
    incident: findIncident,
  };
  return { made, findIncident };
}

async function drawn(
  made: StopSource,
  at: number | null,
  onMove = vi.fn(),
  snapshots: readonly [number, number][] = [],
) {
  const page = draw(
    <JournalSlider
      first={0}
      last={9}
      at={at}
      snapshots={snapshots}
      onMove={onMove}
      source={made}
      busy={false}
      time="1 min"
      formatTime={({ t }) => `${t} s`}
    />,
  );
  await vi.waitFor(() => interact(() => find(page, "[data-testid=slider-ticks]")));
  return page;
}

test("the slider shows the times of its ends, of moments between them and of the current record", async () => {
  const page = await drawn(source().made, 5);

  expect(texts(page, "[data-testid=slider-ticks] span")).toEqual(["0 s", "50 s", "90 s"]);
  expect(find(page, "input").getAttribute("aria-valuetext")).toBe("1 min, record 5 of 9");
});

test("the next incident is shown with its message", async () => {
  const { made, findIncident } = source();
  const onMove = vi.fn();
  const page = await drawn(made, 2, onMove);

  interact(() => find(page, "[data-testid=incident-after]").click());
  await vi.waitFor(() => expect(onMove).toHaveBeenCalledWith(4));

  expect(findIncident).toHaveBeenCalledWith("after", 2);
  expect(find(page, "[data-testid=slider-status]").textContent).toBe("R2 was stopped");
});

test("when live, the search for the previous incident includes the newest record", async () => {
  const { made, findIncident } = source(null);
  const page = await drawn(made, null);

  interact(() => find(page, "[data-testid=incident-before]").click());
  await vi.waitFor(() => expect(find(page, "[data-testid=slider-status]").textContent).toBe("No earlier incident."));

  expect(findIncident).toHaveBeenCalledWith("before", 10);
});

test("the legend of snapshot marks is shown only when there are marks", async () => {
  const bare = await drawn(source().made, 2);
  expect(texts(bare, ".slider-legend")).toEqual([]);

  const marked = await drawn(source().made, 2, vi.fn(), [[4, 40]]);
  expect(texts(marked, ".slider-legend")).toEqual([" snapshot"]);
});
