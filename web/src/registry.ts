/** Which page shows which scheduler. Each is fetched when it is first opened, and with it whatever only it draws with.
 *
 * A scheduler without a page of its own gets the generic one, which suits every engine.
 */

import { batch, signal } from "@preact/signals";
import type { ComponentType } from "preact";

import { ApiError } from "./api/client";
import type { SchedulerView } from "./api/types";

/** What the page of a scheduler made of engines is given. */
export interface EngineSchedulerProps {
  readonly scheduler: SchedulerView;
  readonly engine: string;
  /** The journal record looked at; `null` is live. */
  readonly at: number | null;
  /** What the address points out. */
  readonly on: string | null;
}

/** What the page of a scheduler without engines is given. */
export interface WholeSchedulerProps {
  readonly scheduler: SchedulerView;
}

/** What the page of a scheduler of runs, or of jobs and objects, is given: they come and go, so that the address may name
 * one or none. */
export interface RunsSchedulerProps {
  readonly scheduler: SchedulerView;
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
      const message = "The page of this scheduler could not be fetched. Reload the control room to try again.";
      this.error.value = new ApiError("room_not_fetched", message);
    }
  }
}

/** How a scheduler is shown: by a page for each of its engines, by one for whichever run is chosen, or by one as a whole. */
export type SchedulerEntry =
  | { readonly shows: "engines"; readonly page: LazyPage<EngineSchedulerProps> }
  | { readonly shows: "runs"; readonly page: LazyPage<RunsSchedulerProps> }
  | { readonly shows: "whole"; readonly page: LazyPage<WholeSchedulerProps> };

const GENERIC: SchedulerEntry = {
  shows: "engines",
  page: new LazyPage(() => import("./schedulers/generic/Scheduler").then(({ GenericScheduler }) => GenericScheduler)),
};

const ENTRIES: Readonly<Record<string, SchedulerEntry>> = {
  actions: {
    shows: "engines",
    page: new LazyPage(() => import("./schedulers/actions/Scheduler").then(({ ActionsScheduler }) => ActionsScheduler)),
  },
  credit: {
    shows: "runs",
    page: new LazyPage(() => import("./schedulers/credit/Scheduler").then(({ CreditScheduler }) => CreditScheduler)),
  },
  fleet: {
    shows: "engines",
    page: new LazyPage(() => import("./schedulers/fleet/Scheduler").then(({ FleetScheduler }) => FleetScheduler)),
  },
  jobs: {
    shows: "runs",
    page: new LazyPage(() => import("./schedulers/jobs/Scheduler").then(({ JobsScheduler }) => JobsScheduler)),
  },
  playback: {
    shows: "engines",
    page: new LazyPage(() =>
      import("./schedulers/playback/Scheduler").then(({ PlaybackScheduler }) => PlaybackScheduler),
    ),
  },
};

export function entryOf(scheduler: string): SchedulerEntry {
  return Object.hasOwn(ENTRIES, scheduler) ? (ENTRIES[scheduler] ?? GENERIC) : GENERIC;
}
