/** The state of the connection: connecting, live, or lost with the time of the loss and of the next retry. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Connection } from "../api/stream";
import { clockTime, secondsUntil } from "../wording";

interface ConnectionBadgeProps {
  readonly connection: Connection;
  readonly onRetry: () => void;
}

export function ConnectionBadge({ connection, onRetry }: ConnectionBadgeProps) {
  return (
    <div class="connection" data-testid="connection" data-state={connection.kind}>
      <span class="connection-dot" aria-hidden="true" />
      <span role="status" aria-live="polite">
        {sentenceOf(connection)}
      </span>
      {connection.kind === "lost" && (
        <>
          <Countdown until={connection.retryAt} />
          <button type="button" class="button button-quiet" onClick={onRetry} data-testid="retry-now">
            Retry now
          </button>
        </>
      )}
    </div>
  );
}

function sentenceOf(connection: Connection): string {
  switch (connection.kind) {
    case "connecting":
      return "Connecting";
    case "live":
      return "Live";
    case "lost":
      return `Connection lost at ${clockTime(connection.since)}`;
  }
}

/** Hidden from screen readers, which would read it out every second. */
function Countdown({ until }: { readonly until: number }) {
  const now = useSignal(Date.now());
  useEffect(() => {
    now.value = Date.now();
    const timer = setInterval(() => (now.value = Date.now()), 1000);
    return () => clearInterval(timer);
  }, [until]);
  const seconds = secondsUntil(until, now.value);
  return (
    <span class="connection-countdown" aria-hidden="true">
      {seconds === 0 ? "retrying" : `retrying in ${seconds} s`}
    </span>
  );
}
