/** The state of the request behind a button: whether it is running, and its last error. */

import type { ReadonlySignal } from "@preact/signals";
import { useSignal } from "@preact/signals";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";

export interface Work {
  readonly busy: ReadonlySignal<boolean>;
  readonly error: ReadonlySignal<ApiError | null>;
  /** Run a task. An exception becomes `error`, which the next success clears. */
  readonly work: (task: () => Promise<void>) => Promise<void>;
}

export function useWork(): Work {
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const work = async (task: () => Promise<void>) => {
    busy.value = true;
    try {
      await task();
      error.value = null;
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      busy.value = false;
    }
  };
  return { busy, error, work };
}
