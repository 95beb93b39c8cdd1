/** Hooks that tie an engine and a moment of its past to the life of a page. */

import type { ReadonlySignal } from "@preact/signals";
import { batch, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import type { ApiError } from "../../api/client";
import { asApiError, EngineAddress } from "../../api/client";
import { api, openStream } from "../../api/server";
import type { Source } from "./engine";
import { LiveEngine } from "./engine";

const SETTLE_MS = 120;

/** The engine followed as long as the page stands; its stream is what the connection badge speaks of. */
export function useLiveEngine(room: string, engine: string, source: Source = api): LiveEngine {
  const live = useMemo(() => new LiveEngine(source, new EngineAddress(room, engine)), [room, engine]);
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
  return live;
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
