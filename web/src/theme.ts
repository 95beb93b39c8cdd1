/** Light, dark or as the system says; the choice is kept in this browser. */

import { effect, signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "pendula.theme";

export const theme = signal<Theme>(savedTheme());

/** Keep the document and the saved choice in step with `theme`; returns the way to stop. */
export function followTheme(): () => void {
  return effect(() => {
    const chosen = theme.value;
    if (chosen === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = chosen;
    save(chosen);
  });
}

function savedTheme(): Theme {
  try {
    const saved = localStorage.getItem(KEY);
    return THEMES.find((name) => name === saved) ?? "system";
  } catch {
    // Storage can be forbidden by the browser's settings; the page works without it.
    return "system";
  }
}

function save(chosen: Theme): void {
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // The choice then holds until the page is closed.
  }
}
