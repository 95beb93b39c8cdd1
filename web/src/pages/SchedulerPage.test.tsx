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

test("a scheduler shows its first engine, or the one in the URL", async () => {
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

test("a scheduler of engines without an engine says so", async () => {
  const page = draw(
    <SchedulerContent entry={await engines()} scheduler={scheduler()} engine={null} at={null} on={null} />,
  );

  expect(page.textContent).toContain("This scheduler has no engine yet.");
});

test("a scheduler without engines is shown as a whole", async () => {
  const page = draw(
    <SchedulerContent entry={await whole()} scheduler={scheduler()} engine={null} at={null} on={null} />,
  );

  expect(page.textContent).toBe("all of Mill");
});

test("a scheduler without engines reports an engine in the URL as missing", async () => {
  const page = draw(
    <SchedulerContent entry={await whole()} scheduler={scheduler()} engine="one" at={null} on={null} />,
  );

  expect(page.textContent).toContain("This scheduler has no engine “one”.");
});

test("a page shows that it is loading", () => {
  const never: SchedulerEntry = { shows: "whole", page: new LazyPage(() => new Promise(() => undefined)) };

  expect(
    draw(<SchedulerContent entry={never} scheduler={scheduler()} engine={null} at={null} on={null} />).textContent,
  ).toContain("Loading");
});

test.each([
  [["one"], ["one"]],
  [["one", "two"], []],
])("the page of engines %j shows the name of a single engine", (names, shown) => {
  schedulerList.value = { version: "1", demo: false, schedulers: [scheduler(...names)] };

  const page = draw(<SchedulerPage name="mill" engine={null} at={null} on={null} />);

  expect(texts(page, "[data-testid=engine-name]")).toEqual(shown);
});
