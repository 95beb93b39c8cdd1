/** The colours of the current theme for canvases, which cannot use style sheets. */

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

/** The colours computed for `element`. Call again after a change of theme. */
export function paletteOf(element: HTMLElement): Palette {
  const probe = document.createElement("span");
  element.append(probe);
  const colours = Object.fromEntries(
    COLOURS.map((name) => {
      probe.style.color = `var(--${name})`;
      return [name, getComputedStyle(probe).color];
    }),
  );
  const font = getComputedStyle(probe).fontFamily;
  probe.remove();
  return { ...colours, font } as Palette;
}
