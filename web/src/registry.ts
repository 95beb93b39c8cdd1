/** Which page shows which room. A room without a page of its own gets the generic one, which suits every engine. */

import type { ComponentType } from "preact";

import type { Room } from "./api/client";
import { ActionsRoom } from "./rooms/actions/Room";
import { GenericRoom } from "./rooms/generic/Room";
import { PlaybackRoom } from "./rooms/playback/Room";

export interface RoomPageProps {
  readonly room: Room;
  readonly engine: string;
  /** The journal record looked at; `null` is live. */
  readonly at: number | null;
}

const PAGES: Readonly<Record<string, ComponentType<RoomPageProps>>> = {
  actions: ActionsRoom,
  playback: PlaybackRoom,
};

export function pageOf(room: string): ComponentType<RoomPageProps> {
  return Object.hasOwn(PAGES, room) ? (PAGES[room] ?? GenericRoom) : GenericRoom;
}
