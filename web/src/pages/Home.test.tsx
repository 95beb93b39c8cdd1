// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { roomList } from "../api/server";
import type { RoomView } from "../api/types";
import { draw, find } from "../testing/drawing";
import { Home } from "./Home";

const ROOM: RoomView = { name: "actions", title: "Actions", sentence: "…", state: "ready", reason: null, engines: [] };

test("only rooms of engines are told to have none", () => {
  roomList.value = { version: "0.1.0", demo: false, rooms: [ROOM, { ...ROOM, name: "jobs", title: "Jobs" }] };
  const page = draw(<Home />);

  expect(find(page, "[data-testid=room-card-actions]").textContent).toContain("No engine runs in this room.");
  expect(find(page, "[data-testid=room-card-jobs]").textContent).not.toContain("engine");
  roomList.value = null;
});
