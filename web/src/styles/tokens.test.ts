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

/** Relative luminance as defined by WCAG 2. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((start) => parseInt(colour.slice(start, start + 2), 16) / 255)
    .map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(first: string, second: string): number {
  const [dark = 0, bright = 0] = [luminance(first), luminance(second)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}

function colour(name: string, theme: "light" | "dark"): string {
  const value = COLOURS.get(name)?.[theme];
  if (value === undefined) throw new Error(`no colour --${name}`);
  return value;
}

test.each(["light", "dark"] as const)("text has enough contrast in the %s theme", (theme) => {
  const faint = PAIRS.filter(([text, ground]) => contrast(colour(text, theme), colour(ground, theme)) < 4.5);

  expect(faint).toEqual([]);
});

test.each(["light", "dark"] as const)("the edges of controls can be seen in the %s theme", (theme) => {
  const faint = ["ground", "surface", "sunken"].filter(
    (ground) => contrast(colour("line-strong", theme), colour(ground, theme)) < 3,
  );

  expect(faint).toEqual([]);
});

/** Simulation matrices of colour blindness (Machado, Oliveira and Fernandes 2009), in linear light. */
const EYES: Readonly<Record<string, readonly (readonly [number, number, number])[]>> = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopic: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopic: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopic: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};
const DISTINCT = [
  ["good", "warn"],
  ["good", "bad"],
  ["warn", "bad"],
  ["accent", "warn"],
  ["accent", "bad"],
  ["accent", "brass"],
] as const;

/** A colour in OKLab coordinates as seen with a kind of colour blindness. */
function seenBy(colour: string, eye: string): number[] {
  const linear = [1, 3, 5]
    .map((start) => parseInt(colour.slice(start, start + 2), 16) / 255)
    .map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
  const [red = 0, green = 0, blue = 0] = (EYES[eye] ?? []).map((row) =>
    Math.max(
      0,
      row.reduce((sum, part, index) => sum + part * (linear[index] ?? 0), 0),
    ),
  );
  const long = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
  const middle = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
  const short = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
  return [
    0.2104542553 * long + 0.793617785 * middle - 0.0040720468 * short,
    1.9779984951 * long - 2.428592205 * middle + 0.4505937099 * short,
    0.0259040371 * long + 0.7827717662 * middle - 0.808675766 * short,
  ];
}

test.each(["light", "dark"] as const)(
  "status colours are distinguishable with colour blindness in the %s theme",
  (theme) => {
    const near = Object.keys(EYES).flatMap((eye) =>
      DISTINCT.filter(([first, second]) => {
        const [from, to] = [seenBy(colour(first, theme), eye), seenBy(colour(second, theme), eye)];
        return Math.hypot(...from.map((part, index) => part - (to[index] ?? 0))) < 0.085;
      }).map((pair) => [eye, ...pair]),
    );

    expect(near).toEqual([]);
  },
);
