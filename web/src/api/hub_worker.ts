/** The shared worker of all tabs: one hub with a port for each tab. */

import type { FromHub, ToHub } from "./hub";
import { Hub } from "./hub";

const hub = new Hub((address) => new EventSource(address));

/** The used part of a shared worker's scope; the DOM types do not have it. */
interface Scope {
  onconnect: ((event: MessageEvent) => void) | null;
}

(globalThis as unknown as Scope).onconnect = (event) => {
  const port = event.ports[0];
  if (port === undefined) return;
  const page = { postMessage: (message: FromHub) => port.postMessage(message) };
  port.onmessage = (message: MessageEvent<ToHub>) => hub.receive(page, message.data);
};
