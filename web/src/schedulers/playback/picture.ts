/** A picture generated deterministically from the 32 bytes of a payload.
 *
 * Two bytes are the hue, one a second hue, one the pattern, the rest the shapes. Any 32 bytes are valid; for an empty
 * payload the bytes are derived from the id.
 */

export const WIDTH = 96;
export const HEIGHT = 64;
export const PAYLOAD_BYTES = 32;

export interface Shape {
  readonly kind: "rect" | "circle" | "path";
  readonly at: Readonly<Record<string, number | string>>;
  readonly fill: string;
}

type Bytes = readonly number[];
type Pattern = (bytes: Bytes, hue: number, second: number) => Shape[];

/** The bytes of a payload; derived from the id if the payload is empty or does not have 32 bytes. */
export function bytesOf(payload: string, id: number | bigint): number[] {
  const bytes = decoded(payload);
  return bytes.length === PAYLOAD_BYTES && bytes.some((byte) => byte !== 0) ? bytes : fromId(id);
}

/** The shapes of a picture, back to front. */
export function shapesOf(bytes: Bytes): Shape[] {
  const hue = (byte(bytes, 0) + byte(bytes, 1) * 256) % 360;
  const second = (hue + 15 + Math.floor((byte(bytes, 2) * 40) / 256)) % 360;
  const pattern = PATTERNS[byte(bytes, 3) % PATTERNS.length];
  return [
    { kind: "rect", at: { x: 0, y: 0, width: WIDTH, height: HEIGHT }, fill: colour(hue, 55, 88) },
    ...(pattern?.(bytes.slice(4), hue, second) ?? []),
  ];
}

/** The start of a media file's name, which is in the payload; `null` for other items. */
export function captionOf(payload: string, kind: number): string | null {
  if (kind === 0) return null;
  const bytes = decoded(payload);
  const end = bytes.indexOf(0);
  const text = new TextDecoder().decode(new Uint8Array(end < 0 ? bytes : bytes.slice(0, end)));
  return /^[^\p{C}\ufffd]+$/u.test(text) ? text : null;
}

/** Bytes as base64. */
export function encoded(bytes: Iterable<number>): string {
  return btoa(String.fromCharCode(...bytes));
}

function decoded(payload: string): number[] {
  try {
    return [...atob(payload)].map((character) => character.charCodeAt(0));
  } catch {
    return [];
  }
}

function fromId(id: number | bigint): number[] {
  let state = Number(BigInt.asUintN(32, BigInt(id) ^ (BigInt(id) >> 32n))) || 1;
  return Array.from({ length: PAYLOAD_BYTES }, () => {
    // xorshift, 32 bits
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state & 255;
  });
}

function byte(bytes: Bytes, index: number): number {
  return bytes[index % bytes.length] ?? 0;
}

/** A byte scaled to an integer from `min` to `max`. */
function within(bytes: Bytes, index: number, min: number, max: number): number {
  return min + Math.floor((byte(bytes, index) * (max - min + 1)) / 256);
}

function colour(hue: number, saturation: number, lightness: number): string {
  return `hsl(${hue} ${saturation}% ${lightness}%)`;
}

function count(length: number): number[] {
  return Array.from({ length }, (_, i) => i);
}

/** A sun above a horizon of hills. */
const sunrise: Pattern = (bytes, hue, second) => [
  {
    kind: "circle",
    at: { cx: within(bytes, 0, 20, 76), cy: within(bytes, 1, 14, 34), r: within(bytes, 2, 7, 13) },
    fill: colour(second, 85, 58),
  },
  ...count(4).map((row): Shape => {
    const top = 30 + row * 9;
    const bend = (i: number) => top + within(bytes, 3 + row * 3 + i, -8, 8);
    return {
      kind: "path",
      at: { d: `M0 ${bend(0)} Q${WIDTH / 2} ${bend(1)} ${WIDTH} ${bend(2)} V${HEIGHT} H0 Z` },
      fill: colour(hue, 45, 68 - row * 14),
    };
  }),
];

/** Waves, one behind the other. */
const waves: Pattern = (bytes, hue, second) =>
  count(5).map((row): Shape => {
    const top = 10 + row * 10;
    const high = within(bytes, row, 3, 9);
    const start = -within(bytes, 8 + row, 0, 31);
    const crests = count(5).map(() => `q8 ${-high} 16 0 t16 0`);
    return {
      kind: "path",
      at: { d: `M${start} ${top} ${crests.join(" ")} V${HEIGHT} H${start} Z` },
      fill: colour(row % 2 === 0 ? hue : second, 55, 76 - row * 12),
    };
  });

/** Blades of grass, some in flower. */
const meadow: Pattern = (bytes, hue, second) =>
  count(14).flatMap((i): Shape[] => {
    const x = 3 + i * 7;
    const top = within(bytes, i, 10, 48);
    const lean = x + within(bytes, i + 9, -9, 9);
    const half = (HEIGHT + top) / 2;
    const outline = `M${x - 2} ${HEIGHT} Q${x} ${half} ${lean} ${top} Q${x + 3} ${half} ${x + 3} ${HEIGHT} Z`;
    const blade: Shape = { kind: "path", at: { d: outline }, fill: colour(hue, 40, 34 + (i % 3) * 9) };
    const r = within(bytes, i + 5, 2, 4);
    const flower: Shape = { kind: "circle", at: { cx: lean, cy: top, r }, fill: colour(second, 75, 60) };
    return byte(bytes, i + 13) % 2 === 0 ? [blade, flower] : [blade];
  });

/** Rings around a centre. */
const rings: Pattern = (bytes, hue, second) => {
  const [cx, cy] = [within(bytes, 0, 30, 66), within(bytes, 1, 22, 42)];
  return count(6).map((ring) => ({
    kind: "circle",
    at: { cx, cy, r: 46 - ring * 7 - within(bytes, 2 + ring, 0, 4) },
    fill: colour(ring % 2 === 0 ? hue : second, 60, 44 + ring * 6),
  }));
};

/** Tiles. */
const mosaic: Pattern = (bytes, hue, second) =>
  count(24).map((i) => ({
    kind: "rect",
    at: { x: (i % 6) * 16 + 1, y: Math.floor(i / 6) * 16 + 1, width: 14, height: 14 },
    fill: colour(byte(bytes, i) % 3 === 0 ? second : hue, 55, within(bytes, i, 35, 78)),
  }));

/** Rays from a corner. */
const rays: Pattern = (bytes, hue, second) =>
  count(7).map((ray) => {
    const from = ray * 22 - 10 + within(bytes, ray, -5, 5);
    return {
      kind: "path",
      at: { d: `M0 ${HEIGHT} L${from} -8 L${from + within(bytes, 7 + ray, 6, 16)} -8 Z` },
      fill: colour(ray % 2 === 0 ? hue : second, 65, within(bytes, 14 + ray, 42, 66)),
    };
  });

const PATTERNS: readonly Pattern[] = [sunrise, waves, meadow, rings, mosaic, rays];
