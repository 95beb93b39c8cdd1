/** The light, dark or system theme; the choice is saved in this browser. */

import { effect, signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "pendula.theme";

export const theme = signal<Theme>(savedTheme());

/** Apply and save `theme` whenever it changes, until the returned function is called. */
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
    // Browser settings may block storage; the page works without it.
    return "system";
  }
}

function save(chosen: Theme): void {
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // The choice then lasts until the page is closed.
  }
}
