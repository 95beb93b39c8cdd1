// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { moveWithin, parseRoute, replaceAddress, schedulerHref } from "./route";

test("the empty address is the overview", () => {
  expect(["", "#", "#/"].map(parseRoute)).toEqual([{ page: "home" }, { page: "home" }, { page: "home" }]);
});

test("scheduler, engine, moment and selection survive a round trip through the URL", () => {
  const tally = { page: "scheduler", scheduler: "tally" };
  expect(parseRoute(schedulerHref("tally"))).toEqual({ ...tally, engine: null, at: null, on: null });
  expect(parseRoute(schedulerHref("tally", "de/mo", 55))).toEqual({ ...tally, engine: "de/mo", at: 55, on: null });
  expect(parseRoute(schedulerHref("tally", "demo", 5, "a&b=c"))).toEqual({
    ...tally,
    engine: "demo",
    at: 5,
    on: "a&b=c",
  });
});

test("a move within a scheduler changes only the given parts", () => {
  replaceAddress(schedulerHref("fleet", "hall", 7, "R2"));

  moveWithin({ at: 9 });

  expect(location.hash).toBe("#/schedulers/fleet/hall?at=9&on=R2");
  replaceAddress("#/");
});

test("a moment that is not a record number is live", () => {
  expect(["-1", "x", "1e3", ""].map((at) => parseRoute(`#/schedulers/tally/demo?at=${at}`))).toEqual(
    Array(4).fill({ page: "scheduler", scheduler: "tally", engine: "demo", at: null, on: null }),
  );
});

test("other URLs are unknown, broken escapes are kept", () => {
  expect(parseRoute("#/x")).toEqual({ page: "unknown", path: "/x" });
  expect(parseRoute("#/schedulers/a/b/c")).toEqual({ page: "unknown", path: "/schedulers/a/b/c" });
  expect(parseRoute("#/schedulers/%E0%A4%A")).toMatchObject({ page: "scheduler", scheduler: "%E0%A4%A" });
});
