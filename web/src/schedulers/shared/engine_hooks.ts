/** Hooks that load an engine, live or at a past moment, while a page is mounted. */

import type { ReadonlySignal } from "@preact/signals";
import { batch, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import type { ApiError } from "../../api/client";
import { asApiError, EngineAddress } from "../../api/client";
import { api, openStream } from "../../api/server";
import type { EventStream } from "../../api/stream";
import type { StopSource } from "../../components/player";
import type { Frame } from "../../components/SchedulerFrame";
import type { EngineSchedulerProps } from "../../registry";
import { replaceAddress, schedulerHref } from "../../route";
import type { Numbered, ReadNow } from "./engine";
import { LiveEngine } from "./engine";
import { EngineJournal } from "./journal_source";

const SETTLE_MS = 120;

/** Fetch the state after record `n`, in the form the scheduler's page needs. */
export type ReadPast<Moment> = (address: EngineAddress, n: number, signal: AbortSignal) => Promise<Moment>;

/** The data of an engine page: the live engine, or a past moment. */
export interface EngineData<State extends Numbered, Moment> {
  readonly live: LiveEngine<State>;
  /** The past moment; `null` while live or loading. */
  readonly past: Moment | null;
  /** Whether the page still shows another moment than the one requested. */
  readonly busy: boolean;
  /** The moments of the journal, for its slider. */
  readonly source: StopSource;
  readonly frame: Frame;
}

/** Load the engine of a page, and the past moment in the URL. */
export function useEngine<State extends Numbered, Moment>(
  { scheduler, engine, at, on }: EngineSchedulerProps,
  readNow: ReadNow<State>,
  readPast: ReadPast<Moment>,
): EngineData<State, Moment> {
  const live = useLiveEngine(scheduler.name, engine, readNow);
  const past = useMoment(at, (n, signal) => readPast(live.address, n, signal));
  const source = useMemo(() => new EngineJournal(api, live.address), [live]);
  const now = live.state.value;
  return {
    live,
    past: past.value.value,
    busy: past.busy.value,
    source,
    frame: {
      at,
      journal: now === null ? null : { ...live.extent.value, last: now.n },
      error: at === null ? live.error.value : past.error.value,
      onMove: (n) => replaceAddress(schedulerHref(scheduler.name, engine, n, on)),
    },
  };
}

/** Follow an engine while the page is mounted; the connection badge shows its stream. */
export function useLiveEngine<State extends Numbered>(
  scheduler: string,
  engine: string,
  readNow: ReadNow<State>,
): LiveEngine<State> {
  const live = useMemo(() => new LiveEngine(api, new EngineAddress(scheduler, engine), readNow), [scheduler, engine]);
  useLiveStream(live);
  return live;
}

/** Something that is updated by a stream. */
interface LiveSource {
  readonly stream: ReadonlySignal<EventStream | null>;
  start(): Promise<void>;
  stop(): void;
}

/** Start and stop a live source with the page; the connection badge shows its stream. */
export function useLiveStream(live: LiveSource): void {
  const stream = live.stream.value;
  useEffect(() => {
    void live.start();
    return () => live.stop();
  }, [live]);
  useEffect(() => {
    if (stream === null) return;
    openStream.value = { connection: stream.connection, retryNow: () => stream.retryNow() };
    return () => {
      openStream.value = null;
    };
  }, [stream]);
}

export interface MomentData<T> {
  readonly value: ReadonlySignal<T | null>;
  readonly error: ReadonlySignal<ApiError | null>;
  /** Whether `value` belongs to an earlier request. */
  readonly busy: ReadonlySignal<boolean>;
}

/** Fetch data about record `at` once the slider has settled; outdated responses are dropped. */
export function useMoment<T>(
  at: number | null,
  fetchAt: (at: number, signal: AbortSignal) => Promise<T>,
): MomentData<T> {
  const value = useSignal<T | null>(null);
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  useEffect(() => {
    const settle = (answer: T | null, failure: ApiError | null) =>
      batch(() => {
        value.value = answer;
        error.value = failure;
        busy.value = false;
      });
    if (at === null) {
      settle(null, null);
      return;
    }
    busy.value = true;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      fetchAt(at, abort.signal).then(
        (answer) => abort.signal.aborted || settle(answer, null),
        (thrown: unknown) => abort.signal.aborted || settle(null, asApiError(thrown)),
      );
    }, SETTLE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [at]);
  return { value, error, busy };
}
