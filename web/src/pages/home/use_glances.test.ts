import { expect, test } from "vitest";

import type { SchedulerView } from "../../api/types";
import { eachEngine } from "./use_glances";

const SIGNAL = new AbortController().signal;

function scheduler(...names: string[]): SchedulerView {
  const engines = names.map((name) => ({ name, time_unit: "ms", now: 0, commands: 0, broken: null }));
  return { name: "fleet", title: "Fleet", sentence: "", state: "ready", reason: null, engines };
}

test("needs of many engines are all listed, though few engines are polled at a time", async () => {
  const names = Array.from({ length: 20 }, (_, number) => `hall-${String(number).padStart(2, "0")}`);
  const polled: string[][] = [];
  const glanceAt = eachEngine(async (name) => {
    polled.at(-1)?.push(name);
    return { figures: [{ name, value: "1" }], needs: [{ key: name, sentence: `${name} is stopped`, href: "#/" }] };
  });
  let glance = { figures: [], needs: [] } as Awaited<ReturnType<typeof glanceAt>>;
  for (let round = 0; round < 3; round += 1) {
    polled.push([]);
    glance = await glanceAt(scheduler(...names), SIGNAL);
  }

  expect(glance.needs.map(({ key }) => key)).toEqual(names);
  expect(glance.figures).toEqual([{ name: "hall-00", value: "1" }]);
  expect(polled.map(({ length }) => length)).toEqual([8, 8, 8]);
});

test("needs are refreshed in turn and disappear with their engine", async () => {
  let stopped = true;
  const glanceAt = eachEngine(async (name) => ({
    figures: [],
    needs: stopped || name === "a" ? [{ key: name, sentence: name, href: "#/" }] : [],
  }));
  await glanceAt(scheduler("a", "b", "c"), SIGNAL);
  stopped = false;

  expect((await glanceAt(scheduler("a", "b"), SIGNAL)).needs.map(({ key }) => key)).toEqual(["a"]);
  expect((await glanceAt(scheduler(), SIGNAL)).needs).toEqual([]);
});

test("counts are summed over engines, other figures are those of the first", async () => {
  const done: Readonly<Record<string, number>> = { hall: 3, yard: 4 };
  const glanceAt = eachEngine(async (name) => ({
    figures: [
      { name: "tasks done", value: String(done[name]), count: done[name] ?? 0 },
      { name: "first", value: name },
    ],
    needs: [],
  }));
  const { figures } = await glanceAt(scheduler("hall", "yard"), SIGNAL);

  expect(figures.map(({ value }) => value)).toEqual(["7", "hall"]);
});
