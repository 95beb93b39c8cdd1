/** Whether the system is dark, as it changes: the colours on a canvas do not follow by themselves. */

import type { ReadonlySignal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

export function useDarkScheme(): ReadonlySignal<boolean> {
  const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const dark = useSignal(query.matches);
  useEffect(() => {
    const follow = () => {
      dark.value = query.matches;
    };
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, [query]);
  return dark;
}
