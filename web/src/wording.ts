/** Formatting of numbers, counts and durations. */

const NARROW_SPACE = "\u202f";

/** An integer with digits in groups of three, from five digits on. */
export function integer(value: number | bigint): string {
  const digits = value.toString();
  return /^-?\d{5,}$/.test(digits) ? digits.replace(/\B(?=(\d{3})+$)/g, NARROW_SPACE) : digits;
}

/** `1 engine`, `2 engines`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${integer(count)}${"\u00a0"}${count === 1 ? one : many}`;
}

/** The time of day of a moment, to the second. */
export function clockTime(ms: number): string {
  return new Date(ms).toLocaleTimeString("en-GB");
}

/** Whole seconds until a moment, never negative. */
export function secondsUntil(ms: number, now: number): number {
  return Math.max(0, Math.ceil((ms - now) / 1000));
}

const SPANS: readonly (readonly [number, string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** A duration in its two largest units: `51 d`, `2 h 18 min`, `45 s`. */
export function timeSpan(ms: number): string {
  const largest = SPANS.findIndex(([unit]) => ms >= unit);
  if (largest < 0) return "0 s";
  const parts = SPANS.slice(largest, largest + 2).map(([unit, name], index) => {
    const whole = Math.floor((index === 0 ? ms : ms % (SPANS[largest]?.[0] ?? 1)) / unit);
    return whole === 0 ? "" : `${integer(whole)} ${name}`;
  });
  return parts.filter(Boolean).join(" ");
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: 60_000, h: 3_600_000 };

/** Engine time in human units; counts such as ticks keep their unit. */
export function engineTime(now: number, unit: string): string {
  const factor = UNIT_MS[unit];
  return factor === undefined ? counted(now, unit) : timeSpan(now * factor);
}
