/** The colours of the theme in force, for canvases: they know nothing of style sheets. */

const COLOURS = [
  "surface",
  "sunken",
  "line",
  "line-strong",
  "ink",
  "ink-quiet",
  "accent",
  "accent-ink",
  "accent-wash",
  "brass",
  "warn",
  "warn-wash",
  "warn-line",
  "bad",
] as const;

export type Palette = Readonly<Record<(typeof COLOURS)[number], string>> & { readonly font: string };

/** The colours as `element` would have them. They do not follow a change of theme by themselves. */
export function paletteOf(element: HTMLElement): Palette {
  const probe = document.createElement("span");
  element.append(probe);
  const found = Object.fromEntries(
    COLOURS.map((name) => {
      probe.style.color = `var(--${name})`;
      return [name, getComputedStyle(probe).color];
    }),
  );
  const font = getComputedStyle(probe).fontFamily;
  probe.remove();
  return { ...found, font } as Palette;
}
