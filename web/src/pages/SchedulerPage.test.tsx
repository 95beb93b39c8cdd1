// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { schedulerList } from "../api/server";
import type { SchedulerView } from "../api/types";
import type { EngineSchedulerProps, SchedulerEntry, WholeSchedulerProps } from "../registry";
import { LazyPage } from "../registry";
import { draw, texts } from "../testing/drawing";
import { SchedulerContent, SchedulerPage } from "./SchedulerPage";

const engine = (name: string) => ({ name, time_unit: "ms", now: 0, commands: 0, broken: null });
const scheduler = (...engines: string[]): SchedulerView => ({
  name: "mill",
  title: "Mill",
  sentence: "",
  state: "ready",
  reason: null,
  engines: engines.map(engine),
});

async function engines(): Promise<SchedulerEntry> {
  const page = new LazyPage<EngineSchedulerProps>(() => Promise.resolve((props) => <p>engine {props.engine}</p>));
  await page.load();
  return { shows: "engines", page };
}

async function whole(): Promise<SchedulerEntry> {
  const page = new LazyPage<WholeSchedulerProps>(() =>
    Promise.resolve((props) => <p>all of {props.scheduler.title}</p>),
  );
  await page.load();
  return { shows: "whole", page };
}

test("a scheduler shows its first engine, or the one that is asked for", async () => {
  const entry = await engines();

  expect(
    texts(
      draw(<SchedulerContent entry={entry} scheduler={scheduler("one", "two")} engine={null} at={null} on={null} />),
      "p",
    ),
  ).toEqual(["engine one"]);
  expect(
    texts(
      draw(<SchedulerContent entry={entry} scheduler={scheduler("one", "two")} engine="two" at={null} on={null} />),
      "p",
    ),
  ).toEqual(["engine two"]);
});

test("a scheduler of engines without any says so", async () => {
  const page = draw(
    <SchedulerContent entry={await engines()} scheduler={scheduler()} engine={null} at={null} on={null} />,
  );

  expect(page.textContent).toContain("No engine runs in this scheduler yet.");
});

test("a scheduler without engines is shown as a whole", async () => {
  const page = draw(
    <SchedulerContent entry={await whole()} scheduler={scheduler()} engine={null} at={null} on={null} />,
  );

  expect(page.textContent).toBe("all of Mill");
});

test("an engine of a scheduler that has none is not there", async () => {
  const page = draw(
    <SchedulerContent entry={await whole()} scheduler={scheduler()} engine="one" at={null} on={null} />,
  );

  expect(page.textContent).toContain("This scheduler has no engine “one”.");
});

test("a page that is not there yet is being fetched", () => {
  const never: SchedulerEntry = { shows: "whole", page: new LazyPage(() => new Promise(() => undefined)) };

  expect(
    draw(<SchedulerContent entry={never} scheduler={scheduler()} engine={null} at={null} on={null} />).textContent,
  ).toContain("Fetching");
});

test.each([
  [["one"], ["one"]],
  [["one", "two"], []],
])("the page of engines %j names the one that has no tab", (names, told) => {
  schedulerList.value = { version: "1", demo: false, schedulers: [scheduler(...names)] };

  const page = draw(<SchedulerPage name="mill" engine={null} at={null} on={null} />);

  expect(texts(page, "[data-testid=engine-name]")).toEqual(told);
});
