/** Polling while the page is visible, for schedulers without an event stream. */

import type { ReadonlySignal } from "@preact/signals";
import { batch, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";

export const EVERY_MS = 3000;

export interface Polled<T> {
  readonly value: ReadonlySignal<T | null>;
  readonly error: ReadonlySignal<ApiError | null>;
  /** Poll at once. */
  readonly refresh: () => void;
}

/** The newest result of `fetchData`. Another `key` drops the result and starts again. */
export function usePolled<T>(key: string, fetchData: (signal: AbortSignal) => Promise<T>): Polled<T> {
  const value = useSignal<T | null>(null);
  const error = useSignal<ApiError | null>(null);
  const poll = useRef<() => void>(() => undefined);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let newest = 0;
    const abort = new AbortController();
    const settle = (number: number, answer: T | null, failure: ApiError | null) => {
      // Responses from before the last refresh are dropped.
      if (abort.signal.aborted || number !== newest) return;
      batch(() => {
        if (failure === null) value.value = answer;
        error.value = failure;
      });
      timer = setTimeout(next, EVERY_MS);
    };
    const next = () => {
      clearTimeout(timer);
      if (document.visibilityState === "hidden") {
        timer = setTimeout(next, EVERY_MS);
        return;
      }
      newest += 1;
      const number = newest;
      fetchData(abort.signal).then(
        (answer) => settle(number, answer, null),
        (thrown: unknown) => settle(number, null, asApiError(thrown)),
      );
    };
    value.value = null;
    poll.current = next;
    next();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return { value, error, refresh: () => poll.current() };
}
