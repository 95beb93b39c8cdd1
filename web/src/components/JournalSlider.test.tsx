// @vitest-environment happy-dom

import { expect, test, vi } from "vitest";

import { doing, draw, find, texts } from "../testing/drawing";
import { JournalSlider } from "./JournalSlider";
import type { StopSource } from "./player";

const stop = (n: number) => ({ n, t: 10 * n, ms: n });
const INCIDENT = { n: 4, sentence: "R2 was stopped" };

function source(incident: typeof INCIDENT | null = INCIDENT) {
  const asked = vi.fn(() => Promise.resolve(incident));
  const made: StopSource = {
    spread: () => Promise.resolve([stop(0), stop(5), stop(9)]),
    atRecord: (n) => Promise.resolve({ stop: stop(n), next: null }),
    atWall: () => Promise.resolve({ stop: null, next: null }),
    incident: asked,
  };
  return { made, asked };
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
      tell={({ t }) => `${t} s`}
    />,
  );
  await vi.waitFor(() => doing(() => find(page, "[data-testid=slider-ticks]")));
  return page;
}

test("the slider says the times of its ends, of moments between them, and of what is shown", async () => {
  const page = await drawn(source().made, 5);

  expect(texts(page, "[data-testid=slider-ticks] span")).toEqual(["0 s", "50 s", "90 s"]);
  expect(find(page, "input").getAttribute("aria-valuetext")).toBe("1 min, record 5 of 9");
});

test("an incident is jumped to and told", async () => {
  const { made, asked } = source();
  const onMove = vi.fn();
  const page = await drawn(made, 2, onMove);

  doing(() => find(page, "[data-testid=incident-after]").click());
  await vi.waitFor(() => expect(onMove).toHaveBeenCalledWith(4));

  expect(asked).toHaveBeenCalledWith("after", 2);
  expect(find(page, "[data-testid=slider-said]").textContent).toBe("R2 was stopped");
});

test("from live the newest record may be the incident", async () => {
  const { made, asked } = source(null);
  const page = await drawn(made, null);

  doing(() => find(page, "[data-testid=incident-before]").click());
  await vi.waitFor(() =>
    expect(find(page, "[data-testid=slider-said]").textContent).toBe("There is no incident before this."),
  );

  expect(asked).toHaveBeenCalledWith("before", 10);
});

test("the marks below the slider are explained where there are some", async () => {
  const bare = await drawn(source().made, 2);
  expect(texts(bare, ".slider-legend")).toEqual([]);

  const marked = await drawn(source().made, 2, vi.fn(), [[4, 40]]);
  expect(texts(marked, ".slider-legend")).toEqual([" snapshot"]);
});
