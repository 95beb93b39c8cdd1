/** The shared worker of all tabs: a hub, and a port for each of them. */

import type { FromHub, ToHub } from "./hub";
import { Hub } from "./hub";

const hub = new Hub((address) => new EventSource(address));

/** The part of a shared worker's scope that is used; the types of pages do not know it. */
interface Scope {
  onconnect: ((event: MessageEvent) => void) | null;
}

(globalThis as unknown as Scope).onconnect = (event) => {
  const port = event.ports[0];
  if (port === undefined) return;
  const page = { postMessage: (message: FromHub) => port.postMessage(message) };
  port.onmessage = (message: MessageEvent<ToHub>) => hub.take(page, message.data);
};
