/** How numbers, spans of time and short words are written on the page. */

const NARROW_SPACE = "\u202f";

/** An integer with its digits in groups of three from five digits on. */
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
