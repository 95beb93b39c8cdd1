/** Hooks that tie an engine and a moment of its past to the life of a page. */

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

/** How a moment of the past is read: the state after record `n`, in the form the scheduler shows it. */
export type ReadPast<Moment> = (address: EngineAddress, n: number, signal: AbortSignal) => Promise<Moment>;

/** What the page of an engine shows: the engine as it is, or a moment of its past. */
export interface Following<State extends Numbered, Moment> {
  readonly live: LiveEngine<State>;
  /** The moment looked at; `null` while it is live, or not told yet. */
  readonly past: Moment | null;
  /** True while the moment shown is an older one than the one asked for. */
  readonly busy: boolean;
  /** The journal as its slider asks for it. */
  readonly source: StopSource;
  readonly frame: Frame;
}

/** Follow the engine of a page, and the moment of its past that the address names. */
export function useFollowing<State extends Numbered, Moment>(
  { scheduler, engine, at, on }: EngineSchedulerProps,
  readNow: ReadNow<State>,
  readPast: ReadPast<Moment>,
): Following<State, Moment> {
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

/** The engine followed as long as the page stands; its stream is what the connection badge speaks of. */
export function useLiveEngine<State extends Numbered>(
  scheduler: string,
  engine: string,
  readNow: ReadNow<State>,
): LiveEngine<State> {
  const live = useMemo(() => new LiveEngine(api, new EngineAddress(scheduler, engine), readNow), [scheduler, engine]);
  useStreaming(live);
  return live;
}

/** What is followed by a stream. */
interface Streaming {
  readonly stream: ReadonlySignal<EventStream | null>;
  start(): Promise<void>;
  stop(): void;
}

/** Started and stopped with the page; its stream is what the connection badge speaks of. */
export function useStreaming(live: Streaming): void {
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

export interface Asked<T> {
  readonly value: ReadonlySignal<T | null>;
  readonly error: ReadonlySignal<ApiError | null>;
  /** True while what is shown answers an older question. */
  readonly busy: ReadonlySignal<boolean>;
}

/** What the server says about record `at`, asked once the slider has settled; a late answer is never shown. */
export function useMoment<T>(at: number | null, ask: (at: number, signal: AbortSignal) => Promise<T>): Asked<T> {
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
      ask(at, abort.signal).then(
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
