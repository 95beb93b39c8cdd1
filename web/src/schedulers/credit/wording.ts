/** How amounts, causes and states of runs are written on the page of the credit scheduler. */

const NARROW_SPACE = "\u202f";

/** An amount as the ledger writes it, without needless zeros, its whole digits in groups of three from five on. */
export function amount(text: string): string {
  const [whole = "", part] = text.replace(/(\.\d\d)(\d*?)0+$/, "$1$2").split(".");
  const grouped = whole.replace("-", "").length < 5 ? whole : whole.replace(/\B(?=(\d{3})+$)/g, NARROW_SPACE);
  return part === undefined ? grouped : `${grouped}.${part}`;
}

const CAUSES: Readonly<Record<string, string>> = {
  ROUTING_NO_CAPACITY: "no capacity",
  ROUTING_NO_ROUTE: "no route",
  LINE_CLOSED: "a line lets no payments pass",
  CAPACITY_AND_LINE_CLOSED: "no capacity, and a line lets no payments pass",
  TRUST_LIMIT_EXCEEDED: "over the limit",
  PAYMENT_TIMEOUT: "took too long",
  INTERNAL_ERROR: "technical",
};

/** The cause of a refusal in a few words; codes without words of their own are written as they are, in small letters. */
export function cause(code: string): string {
  return CAUSES[code] ?? code.toLowerCase().replaceAll("_", " ");
}

/** What a line would have to change for a refused payment: `debtor` and `creditor` are names as they are shown. */
export function standsInTheWay(change: string, debtor: string, creditor: string): string {
  switch (change) {
    case "allow_mediation":
      return `the line of ${creditor} to ${debtor} lets no payments pass through ${creditor}`;
    case "unblock":
      return `the line of ${creditor} to ${debtor} blocks a participant on the way`;
    default:
      return `no capacity from ${debtor} to ${creditor}`;
  }
}

/** Virtual time: minutes and seconds, hours from one hour on. */
export function simTime(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** A number in as few digits as an axis has room for. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1_000_000) return `${(value / 1_000_000).toFixed(1)}M`;
  if (size >= 10_000) return `${Math.round(value / 1000)}k`;
  if (size >= 1000) return `${(value / 1000).toFixed(1)}k`;
  return size >= 10 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}
