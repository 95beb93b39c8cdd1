/** Asks the server again and again while the page is looked at, since the scheduler has no stream of events. */

import type { ReadonlySignal } from "@preact/signals";
import { batch, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";

export const EVERY_MS = 3000;

export interface Polled<T> {
  readonly value: ReadonlySignal<T | null>;
  readonly error: ReadonlySignal<ApiError | null>;
  /** Ask at once. */
  readonly refresh: () => void;
}

/** The newest answer to `ask`; another `key` is another question, whose answer is waited for. */
export function usePolled<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Polled<T> {
  const value = useSignal<T | null>(null);
  const error = useSignal<ApiError | null>(null);
  const again = useRef<() => void>(() => undefined);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let newest = 0;
    const abort = new AbortController();
    const settle = (number: number, answer: T | null, failure: ApiError | null) => {
      // Who asked again meanwhile, after a deed, wants what was asked last, and once.
      if (abort.signal.aborted || number !== newest) return;
      batch(() => {
        if (failure === null) value.value = answer;
        error.value = failure;
      });
      timer = setTimeout(look, EVERY_MS);
    };
    const look = () => {
      clearTimeout(timer);
      if (document.visibilityState === "hidden") {
        timer = setTimeout(look, EVERY_MS);
        return;
      }
      newest += 1;
      const number = newest;
      ask(abort.signal).then(
        (answer) => settle(number, answer, null),
        (thrown: unknown) => settle(number, null, asApiError(thrown)),
      );
    };
    value.value = null;
    again.current = look;
    look();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return { value, error, refresh: () => again.current() };
}
