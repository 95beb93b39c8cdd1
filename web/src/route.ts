/** Where in the control room we are: the part of the address after `#`, e.g. `#/rooms/tally/demo?at=55`.
 *
 * Hash routing needs nothing from the server, so that any static server can hand out the page.
 */

import { signal } from "@preact/signals";

export type Route =
  | { readonly page: "home" }
  | { readonly page: "room"; readonly room: string; readonly engine: string | null; readonly at: number | null }
  | { readonly page: "unknown"; readonly path: string };

export const route = signal<Route>({ page: "home" });

/** The route an address fragment names. */
export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "");
  if (parts.length === 0) return { page: "home" };
  const [first, room, engine] = parts;
  if (first !== "rooms" || room === undefined || parts.length > 3) return { page: "unknown", path };
  return { page: "room", room: decode(room), engine: engine === undefined ? null : decode(engine), at: parseAt(query) };
}

/** The address fragment of a place in a room. */
export function roomHref(room: string, engine: string | null = null, at: number | null = null): string {
  const path = engine === null ? [room] : [room, engine];
  return `#/rooms/${path.map(encodeURIComponent).join("/")}${at === null ? "" : `?at=${at}`}`;
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

function parseAt(query: string): number | null {
  const at = new URLSearchParams(query).get("at");
  return at !== null && /^\d{1,15}$/.test(at) ? Number(at) : null;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
