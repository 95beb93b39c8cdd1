/** The selection of a page, kept in the URL, so that a link shows the same. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { moveWithin } from "../../route";

/** The selected name and a function to change it; it starts from the URL and updates it. */
export function useSelection<Name extends string>(
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
