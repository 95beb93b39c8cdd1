/** Which page shows which room. Each is fetched when it is first opened, and with it whatever only it draws with.
 *
 * A room without a page of its own gets the generic one, which suits every engine.
 */

import { batch, signal } from "@preact/signals";
import type { ComponentType } from "preact";

import { ApiError } from "./api/client";
import type { RoomView } from "./api/types";

/** What the page of a room made of engines is given. */
export interface EngineRoomProps {
  readonly room: RoomView;
  readonly engine: string;
  /** The journal record looked at; `null` is live. */
  readonly at: number | null;
  /** What the address points out. */
  readonly on: string | null;
}

/** What the page of a room without engines is given. */
export interface WholeRoomProps {
  readonly room: RoomView;
}

/** What the page of a room of runs, or of jobs and objects, is given: they come and go, so that the address may name
 * one or none. */
export interface RunsRoomProps {
  readonly room: RoomView;
  readonly run: string | null;
  /** The moment looked at; `null` is live. */
  readonly at: number | null;
  /** What the address points out. */
  readonly on: string | null;
}

/** A page that is fetched when it is first shown, and kept from then on. */
export class LazyPage<Props> {
  readonly page = signal<ComponentType<Props> | null>(null);
  readonly error = signal<ApiError | null>(null);
  readonly #fetch: () => Promise<ComponentType<Props>>;

  constructor(fetch: () => Promise<ComponentType<Props>>) {
    this.#fetch = fetch;
  }

  async load(): Promise<void> {
    if (this.page.value !== null) return;
    try {
      const page = await this.#fetch();
      batch(() => {
        this.page.value = page;
        this.error.value = null;
      });
    } catch {
      // The server may be gone, or be a newer one that has other files.
      const message = "The page of this room could not be fetched. Reload the control room to try again.";
      this.error.value = new ApiError("room_not_fetched", message);
    }
  }
}

/** How a room is shown: by a page for each of its engines, by one for whichever run is chosen, or by one as a whole. */
export type RoomEntry =
  | { readonly shows: "engines"; readonly page: LazyPage<EngineRoomProps> }
  | { readonly shows: "runs"; readonly page: LazyPage<RunsRoomProps> }
  | { readonly shows: "whole"; readonly page: LazyPage<WholeRoomProps> };

const GENERIC: RoomEntry = {
  shows: "engines",
  page: new LazyPage(() => import("./rooms/generic/Room").then(({ GenericRoom }) => GenericRoom)),
};

const ENTRIES: Readonly<Record<string, RoomEntry>> = {
  actions: {
    shows: "engines",
    page: new LazyPage(() => import("./rooms/actions/Room").then(({ ActionsRoom }) => ActionsRoom)),
  },
  credit: {
    shows: "runs",
    page: new LazyPage(() => import("./rooms/credit/Room").then(({ CreditRoom }) => CreditRoom)),
  },
  fleet: {
    shows: "engines",
    page: new LazyPage(() => import("./rooms/fleet/Room").then(({ FleetRoom }) => FleetRoom)),
  },
  jobs: {
    shows: "runs",
    page: new LazyPage(() => import("./rooms/jobs/Room").then(({ JobsRoom }) => JobsRoom)),
  },
  playback: {
    shows: "engines",
    page: new LazyPage(() => import("./rooms/playback/Room").then(({ PlaybackRoom }) => PlaybackRoom)),
  },
};

export function entryOf(room: string): RoomEntry {
  return Object.hasOwn(ENTRIES, room) ? (ENTRIES[room] ?? GENERIC) : GENERIC;
}
