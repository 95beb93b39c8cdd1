// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { roomList } from "../api/server";
import type { RoomView } from "../api/types";
import type { EngineRoomProps, RoomEntry, WholeRoomProps } from "../registry";
import { LazyPage } from "../registry";
import { draw, texts } from "../testing/drawing";
import { RoomContent, RoomPage } from "./RoomPage";

const engine = (name: string) => ({ name, time_unit: "ms", now: 0, commands: 0, broken: null });
const room = (...engines: string[]): RoomView => ({
  name: "mill",
  title: "Mill",
  sentence: "",
  state: "ready",
  reason: null,
  engines: engines.map(engine),
});

async function engines(): Promise<RoomEntry> {
  const page = new LazyPage<EngineRoomProps>(() => Promise.resolve((props) => <p>engine {props.engine}</p>));
  await page.load();
  return { shows: "engines", page };
}

async function whole(): Promise<RoomEntry> {
  const page = new LazyPage<WholeRoomProps>(() => Promise.resolve((props) => <p>all of {props.room.title}</p>));
  await page.load();
  return { shows: "whole", page };
}

test("a room shows its first engine, or the one that is asked for", async () => {
  const entry = await engines();

  expect(
    texts(draw(<RoomContent entry={entry} room={room("one", "two")} engine={null} at={null} on={null} />), "p"),
  ).toEqual(["engine one"]);
  expect(
    texts(draw(<RoomContent entry={entry} room={room("one", "two")} engine="two" at={null} on={null} />), "p"),
  ).toEqual(["engine two"]);
});

test("a room of engines without any says so", async () => {
  const page = draw(<RoomContent entry={await engines()} room={room()} engine={null} at={null} on={null} />);

  expect(page.textContent).toContain("No engine runs in this room yet.");
});

test("a room without engines is shown as a whole", async () => {
  const page = draw(<RoomContent entry={await whole()} room={room()} engine={null} at={null} on={null} />);

  expect(page.textContent).toBe("all of Mill");
});

test("an engine of a room that has none is not there", async () => {
  const page = draw(<RoomContent entry={await whole()} room={room()} engine="one" at={null} on={null} />);

  expect(page.textContent).toContain("This room has no engine “one”.");
});

test("a page that is not there yet is being fetched", () => {
  const never: RoomEntry = { shows: "whole", page: new LazyPage(() => new Promise(() => undefined)) };

  expect(draw(<RoomContent entry={never} room={room()} engine={null} at={null} on={null} />).textContent).toContain(
    "Fetching",
  );
});

test.each([
  [["one"], ["one"]],
  [["one", "two"], []],
])("the page of engines %j names the one that has no tab", (names, told) => {
  roomList.value = { version: "1", demo: false, rooms: [room(...names)] };

  const page = draw(<RoomPage name="mill" engine={null} at={null} on={null} />);

  expect(texts(page, "[data-testid=engine-name]")).toEqual(told);
});
