/** Choose the light, dark or system theme. */

import { THEMES, theme } from "../theme";

export function ThemeToggle() {
  return (
    <div class="segmented" role="group" aria-label="Theme" data-testid="theme">
      {THEMES.map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={theme.value === name}
          onClick={() => (theme.value = name)}
          data-testid={`theme-${name}`}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
