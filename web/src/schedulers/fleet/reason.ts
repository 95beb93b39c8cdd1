/** Why a truck stands or a task waits, asked for while somebody wants to see it. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { EngineAddress } from "../../api/client";
import { api } from "../../api/server";
import type { Reason } from "../../api/types";

export type Asked = { readonly robot: string } | { readonly task: string };

const TICKS_BETWEEN = 10;

/** The reason, asked again every second of the fleet; `null` while there is none, and where nobody asks. */
export function useReason(address: EngineAddress, asked: Asked | null, tick: number): Reason | null {
  const reason = useSignal<{ readonly about: string; readonly told: Reason } | null>(null);
  const about = asked === null ? null : JSON.stringify(asked);
  const turn = Math.floor(tick / TICKS_BETWEEN);
  useEffect(() => {
    if (asked === null || about === null) return;
    let over = false;
    api.why(address, asked).then(
      (told) => {
        if (!over) reason.value = { about, told };
      },
      () => undefined,
    );
    return () => {
      over = true;
    };
  }, [address, about, turn]);
  return reason.value?.about === about ? reason.value.told : null;
}
