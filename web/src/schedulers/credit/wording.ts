/** Formatting of amounts, causes and times on the page of the credit scheduler. */

const NARROW_SPACE = "\u202f";

/** An amount with at least two decimals and no further trailing zeros, grouped from five digits on. */
export function amount(text: string): string {
  const [whole = "", part] = text.replace(/(\.\d\d)(\d*?)0+$/, "$1$2").split(".");
  const grouped = whole.replace("-", "").length < 5 ? whole : whole.replace(/\B(?=(\d{3})+$)/g, NARROW_SPACE);
  return part === undefined ? grouped : `${grouped}.${part}`;
}

const CAUSES: Readonly<Record<string, string>> = {
  ROUTING_NO_CAPACITY: "no capacity",
  ROUTING_NO_ROUTE: "no route",
  LINE_CLOSED: "line closed to payments",
  CAPACITY_AND_LINE_CLOSED: "no capacity, and a line closed to payments",
  TRUST_LIMIT_EXCEEDED: "over the limit",
  PAYMENT_TIMEOUT: "timeout",
  INTERNAL_ERROR: "internal error",
};

/** The cause of a refusal in a few words; unknown codes in lower case. */
export function cause(code: string): string {
  return CAUSES[code] ?? code.toLowerCase().replaceAll("_", " ");
}

/** What a line would have to change for a refused payment; `debtor` and `creditor` are display names. */
export function obstacle(change: string, debtor: string, creditor: string): string {
  switch (change) {
    case "allow_mediation":
      return `line ${creditor} → ${debtor} does not forward payments through ${creditor}`;
    case "unblock":
      return `line ${creditor} → ${debtor} blocks a participant on the route`;
    default:
      return `no capacity from ${debtor} to ${creditor}`;
  }
}

/** Virtual time as `1:01`, or `1:02:05` from one hour on. */
export function simTime(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** A short number for axis labels. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1_000_000) return `${(value / 1_000_000).toFixed(1)}M`;
  if (size >= 10_000) return `${Math.round(value / 1000)}k`;
  if (size >= 1000) return `${(value / 1000).toFixed(1)}k`;
  return size >= 10 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}
