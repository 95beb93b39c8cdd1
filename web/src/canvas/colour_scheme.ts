/** Whether the system theme is dark, as a signal: a canvas has to be redrawn when it changes. */

import type { ReadonlySignal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

export function useDarkScheme(): ReadonlySignal<boolean> {
  const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const dark = useSignal(query.matches);
  useEffect(() => {
    const update = () => {
      dark.value = query.matches;
    };
    query.addEventListener("change", update);
    return () => query.removeEventListener("change", update);
  }, [query]);
  return dark;
}
