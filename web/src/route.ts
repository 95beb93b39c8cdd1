/** Where in the control room we are: the part of the address after `#`, e.g. `#/schedulers/tally/demo?at=55&on=R2`.
 *
 * The address says everything that a picture depends on, so that a link shows a colleague the same: the scheduler, the
 * engine, the moment (`at`, a record of its journal) and what is pointed out (`on`: a truck, an action, a table). Hash
 * routing needs nothing from the server, so that any static server can hand out the page.
 */

import { signal } from "@preact/signals";

/** A place in a scheduler. */
export interface Place {
  readonly scheduler: string;
  readonly engine: string | null;
  /** The moment looked at; `null` is live. */
  readonly at: number | null;
  /** What is pointed out there; each scheduler has its own names for it. */
  readonly on: string | null;
}

export type Route =
  | { readonly page: "home" }
  | ({ readonly page: "scheduler" } & Place)
  | { readonly page: "unknown"; readonly path: string };

export const route = signal<Route>({ page: "home" });

/** The route an address fragment names. */
export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "");
  if (parts.length === 0) return { page: "home" };
  const [first, scheduler, engine] = parts;
  if (first !== "schedulers" || scheduler === undefined || parts.length > 3) return { page: "unknown", path };
  const asked = new URLSearchParams(query);
  return {
    page: "scheduler",
    scheduler: decode(scheduler),
    engine: engine === undefined ? null : decode(engine),
    at: parseAt(asked.get("at")),
    on: asked.get("on"),
  };
}

/** The address fragment of a place in a scheduler. */
export function schedulerHref(
  scheduler: string,
  engine: string | null = null,
  at: number | null = null,
  on: string | null = null,
): string {
  const path = engine === null ? [scheduler] : [scheduler, engine];
  const query = [at === null ? "" : `at=${at}`, on === null ? "" : `on=${encodeURIComponent(on)}`].filter(Boolean);
  return `#/schedulers/${path.map(encodeURIComponent).join("/")}${query.length === 0 ? "" : `?${query.join("&")}`}`;
}

/** Follow the address bar from now on; returns the way to stop. */
export function followAddress(): () => void {
  const read = () => (route.value = parseRoute(location.hash));
  read();
  addEventListener("hashchange", read);
  return () => removeEventListener("hashchange", read);
}

/** Move to another moment of the same page without a new entry in the browser's history. */
export function replaceAddress(hash: string): void {
  history.replaceState(history.state, "", hash);
  route.value = parseRoute(hash);
}

/** Change where in its scheduler the page is, and nothing else of the address; on a page without a scheduler nothing happens. */
export function moveWithin(change: Partial<Omit<Place, "scheduler">>): void {
  const here = route.value;
  if (here.page !== "scheduler") return;
  const { scheduler, engine, at, on } = { ...here, ...change };
  replaceAddress(schedulerHref(scheduler, engine, at, on));
}

function parseAt(at: string | null): number | null {
  return at !== null && /^\d{1,15}$/.test(at) ? Number(at) : null;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
