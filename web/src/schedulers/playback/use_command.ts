/** Sending commands from buttons; an error is shown until the next command succeeds. */

import type { Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";

export type OnCommand = (command: JsonObject) => Promise<void>;

export function useCommand(onCommand: OnCommand): {
  readonly error: Signal<ApiError | null>;
  readonly send: (command: JsonObject) => Promise<void>;
} {
  const error = useSignal<ApiError | null>(null);
  const send = async (command: JsonObject) => {
    try {
      await onCommand(command);
      error.value = null;
    } catch (thrown) {
      error.value = asApiError(thrown);
    }
  };
  return { error, send };
}
