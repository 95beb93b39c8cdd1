import { expect, test } from "vitest";

import tokens from "./tokens.css?raw";

const PAIRS = [
  ["ink", "ground"],
  ["ink", "surface"],
  ["ink", "sunken"],
  ["ink", "accent-wash"],
  ["ink", "bad-wash"],
  ["ink", "warn-wash"],
  ["ink", "glow"],
  ["ink-quiet", "ground"],
  ["ink-quiet", "surface"],
  ["ink-quiet", "sunken"],
  ["ink-quiet", "bad-wash"],
  ["ink-quiet", "warn-wash"],
  ["accent", "ground"],
  ["accent", "surface"],
  ["accent", "accent-wash"],
  ["accent-ink", "accent"],
  ["good", "surface"],
  ["good", "accent-wash"],
  ["warn", "surface"],
  ["warn", "accent-wash"],
  ["warn", "warn-wash"],
  ["bad", "surface"],
  ["bad", "accent-wash"],
  ["bad", "bad-wash"],
] as const;

const COLOURS = new Map(
  [...tokens.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name, light, dark]) => [
    name,
    { light, dark },
  ]),
);

/** Relative luminance and contrast as WCAG 2 defines them. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((place) => parseInt(colour.slice(place, place + 2), 16) / 255)
    .map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark = 0, bright = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}

function colour(name: string, theme: "light" | "dark"): string {
  const found = COLOURS.get(name)?.[theme];
  if (found === undefined) throw new Error(`no colour --${name}`);
  return found;
}

test.each(["light", "dark"] as const)("text stands out from its ground in the %s theme", (theme) => {
  const faint = PAIRS.filter(([text, ground]) => contrast(colour(text, theme), colour(ground, theme)) < 4.5);

  expect(faint).toEqual([]);
});

test.each(["light", "dark"] as const)("the edges of controls can be seen in the %s theme", (theme) => {
  const faint = ["ground", "surface", "sunken"].filter(
    (ground) => contrast(colour("line-strong", theme), colour(ground, theme)) < 3,
  );

  expect(faint).toEqual([]);
});
