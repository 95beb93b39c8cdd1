/** Fetching the reason of a truck or a task while it is displayed. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { EngineAddress } from "../../api/client";
import { api } from "../../api/server";
import type { Reason } from "../../api/types";

export type Subject = { readonly robot: string } | { readonly task: string };

const TICKS_BETWEEN = 10;

/** The reason of a truck or task, fetched again every ten ticks; `null` while loading and without a subject. */
export function useReason(address: EngineAddress, subject: Subject | null, tick: number): Reason | null {
  const reason = useSignal<{ readonly key: string; readonly value: Reason } | null>(null);
  const key = subject === null ? null : JSON.stringify(subject);
  const round = Math.floor(tick / TICKS_BETWEEN);
  useEffect(() => {
    if (subject === null || key === null) return;
    let isOutdated = false;
    api.why(address, subject).then(
      (value) => {
        if (!isOutdated) reason.value = { key, value };
      },
      () => undefined,
    );
    return () => {
      isOutdated = true;
    };
  }, [address, key, round]);
  return reason.value?.key === key ? reason.value.value : null;
}
