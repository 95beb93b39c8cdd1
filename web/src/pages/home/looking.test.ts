import { expect, test } from "vitest";

import type { SchedulerView } from "../../api/types";
import { eachEngine } from "./looking";

const SIGNAL = new AbortController().signal;

function scheduler(...names: string[]): SchedulerView {
  const engines = names.map((name) => ({ name, time_unit: "ms", now: 0, commands: 0, broken: null }));
  return { name: "fleet", title: "Fleet", sentence: "", state: "ready", reason: null, engines };
}

test("of very many engines all that needs a person is told, though few are asked at a time", async () => {
  const names = Array.from({ length: 20 }, (_, number) => `hall-${String(number).padStart(2, "0")}`);
  const asked: string[][] = [];
  const look = eachEngine(async (name) => {
    asked.at(-1)?.push(name);
    return { figures: [{ name, value: "1" }], needs: [{ key: name, sentence: `${name} stands`, href: "#/" }] };
  });
  let told = { figures: [], needs: [] } as Awaited<ReturnType<typeof look>>;
  for (let time = 0; time < 3; time += 1) {
    asked.push([]);
    told = await look(scheduler(...names), SIGNAL);
  }

  expect(told.needs.map(({ key }) => key)).toEqual(names);
  expect(told.figures).toEqual([{ name: "hall-00", value: "1" }]);
  expect(asked.map(({ length }) => length)).toEqual([8, 8, 8]);
});

test("what was needed before is asked again in turn, and goes with its engine", async () => {
  let stands = true;
  const look = eachEngine(async (name) => ({
    figures: [],
    needs: stands || name === "a" ? [{ key: name, sentence: name, href: "#/" }] : [],
  }));
  await look(scheduler("a", "b", "c"), SIGNAL);
  stands = false;

  expect((await look(scheduler("a", "b"), SIGNAL)).needs.map(({ key }) => key)).toEqual(["a"]);
  expect((await look(scheduler(), SIGNAL)).needs).toEqual([]);
});

test("what engines count is added up over all of them, and what is no count is that of the first", async () => {
  const done: Readonly<Record<string, number>> = { hall: 3, yard: 4 };
  const look = eachEngine(async (name) => ({
    figures: [
      { name: "tasks done", value: String(done[name]), count: done[name] ?? 0 },
      { name: "first", value: name },
    ],
    needs: [],
  }));
  const { figures } = await look(scheduler("hall", "yard"), SIGNAL);

  expect(figures.map(({ value }) => value)).toEqual(["7", "hall"]);
});
