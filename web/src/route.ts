/** Hash routing: the URL after `#`, for example `#/schedulers/tally/demo?at=55&on=R2`.
 *
 * The URL has everything the page depends on, so that a link shows the same view: scheduler, engine, moment (`at`, a
 * journal record) and selection (`on`: a truck, an action, a table). Hash routing works with any static server.
 */

import { signal } from "@preact/signals";

/** A view of a scheduler. */
export interface SchedulerRoute {
  readonly scheduler: string;
  readonly engine: string | null;
  /** The moment shown; `null` is live. */
  readonly at: number | null;
  /** The selected object, for example a truck or an action; `null` if none is. */
  readonly on: string | null;
}

export type Route =
  | { readonly page: "home" }
  | ({ readonly page: "scheduler" } & SchedulerRoute)
  | { readonly page: "unknown"; readonly path: string };

export const route = signal<Route>({ page: "home" });

/** Parse a URL fragment. */
export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "");
  if (parts.length === 0) return { page: "home" };
  const [first, scheduler, engine] = parts;
  if (first !== "schedulers" || scheduler === undefined || parts.length > 3) return { page: "unknown", path };
  const parameters = new URLSearchParams(query);
  return {
    page: "scheduler",
    scheduler: decode(scheduler),
    engine: engine === undefined ? null : decode(engine),
    at: parseAt(parameters.get("at")),
    on: parameters.get("on"),
  };
}

/** The URL fragment of a view of a scheduler. */
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

/** Follow the address bar until the returned function is called. */
export function followAddress(): () => void {
  const read = () => (route.value = parseRoute(location.hash));
  read();
  addEventListener("hashchange", read);
  return () => removeEventListener("hashchange", read);
}

/** Change the URL without a new entry in the browser history. */
export function replaceAddress(hash: string): void {
  history.replaceState(history.state, "", hash);
  route.value = parseRoute(hash);
}

/** Change parts of the current scheduler view; does nothing on other pages. */
export function moveWithin(change: Partial<Omit<SchedulerRoute, "scheduler">>): void {
  const current = route.value;
  if (current.page !== "scheduler") return;
  const { scheduler, engine, at, on } = { ...current, ...change };
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
