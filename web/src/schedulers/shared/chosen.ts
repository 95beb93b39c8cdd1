/** What a page points out, kept in the address, so that a link shows the same. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { moveWithin } from "../../route";

/** What is pointed out, and the way to point out something else; the address says it first and follows. */
export function useChosen<Name extends string>(
  on: Name | null,
  engine: string | null,
): readonly [Name | null, (next: Name | null) => void] {
  const chosen = useSignal(on);
  useEffect(() => {
    chosen.value = on;
  }, [on]);
  const choose = (next: Name | null) => {
    chosen.value = next;
    moveWithin({ engine, on: next });
  };
  return [chosen.value, choose];
}
