import { expect, test } from "vitest";

import { parseRoute, roomHref } from "./route";

test("the empty address is the overview", () => {
  expect(["", "#", "#/"].map(parseRoute)).toEqual([{ page: "home" }, { page: "home" }, { page: "home" }]);
});

test("a room, its engine and a moment come back from the address they made", () => {
  expect(parseRoute(roomHref("tally"))).toEqual({ page: "room", room: "tally", engine: null, at: null });
  expect(parseRoute(roomHref("tally", "de/mo", 55))).toEqual({ page: "room", room: "tally", engine: "de/mo", at: 55 });
});

test("a moment that is no record number is live", () => {
  expect(["-1", "x", "1e3", ""].map((at) => parseRoute(`#/rooms/tally/demo?at=${at}`))).toEqual(
    Array(4).fill({ page: "room", room: "tally", engine: "demo", at: null }),
  );
});

test("other addresses are unknown, broken escapes included", () => {
  expect(parseRoute("#/x")).toEqual({ page: "unknown", path: "/x" });
  expect(parseRoute("#/rooms/a/b/c")).toEqual({ page: "unknown", path: "/rooms/a/b/c" });
  expect(parseRoute("#/rooms/%E0%A4%A")).toMatchObject({ page: "room", room: "%E0%A4%A" });
});
