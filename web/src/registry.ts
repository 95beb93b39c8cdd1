/** The page of each scheduler, loaded as a separate chunk when it is first opened.
 *
 * A scheduler without its own page gets the generic one, which works for every engine.
 */

import { batch, signal } from "@preact/signals";
import type { ComponentType } from "preact";

import { ApiError } from "./api/client";
import type { SchedulerView } from "./api/types";

/** Props of the page of one engine. */
export interface EngineSchedulerProps {
  readonly scheduler: SchedulerView;
  readonly engine: string;
  /** The journal record shown; `null` is live. */
  readonly at: number | null;
  /** What the URL selects. */
  readonly on: string | null;
}

/** Props of the page of a scheduler without engines. */
export interface WholeSchedulerProps {
  readonly scheduler: SchedulerView;
}

/** Props of the page of a scheduler of runs, or of jobs and objects; the URL names one of them or none. */
export interface RunsSchedulerProps {
  readonly scheduler: SchedulerView;
  readonly run: string | null;
  /** The moment shown; `null` is live. */
  readonly at: number | null;
  /** What the URL selects. */
  readonly on: string | null;
}

/** A page that is loaded when it is first shown. */
export class LazyPage<Props> {
  readonly page = signal<ComponentType<Props> | null>(null);
  readonly error = signal<ApiError | null>(null);
  readonly #import: () => Promise<ComponentType<Props>>;

  constructor(importPage: () => Promise<ComponentType<Props>>) {
    this.#import = importPage;
  }

  async load(): Promise<void> {
    if (this.page.value !== null) return;
    try {
      const page = await this.#import();
      batch(() => {
        this.page.value = page;
        this.error.value = null;
      });
    } catch {
      // The server is down, or was upgraded and has other chunks.
      const message = "The page of this scheduler could not be loaded. Reload the control room to try again.";
      this.error.value = new ApiError("page_not_loaded", message);
    }
  }
}

/** How a scheduler is shown: a page per engine, a page for the selected run, or one page for the whole scheduler. */
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
