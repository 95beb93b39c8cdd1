/** What a button began: whether it is under way, and what went wrong with the last of it. */

import type { ReadonlySignal } from "@preact/signals";
import { useSignal } from "@preact/signals";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";

export interface Work {
  readonly busy: ReadonlySignal<boolean>;
  readonly error: ReadonlySignal<ApiError | null>;
  /** Do something; what it throws is kept as the error, and gone with the next that succeeds. */
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
