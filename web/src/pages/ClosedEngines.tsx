/** The engines of a scheduler that somebody closed, each with the way to open it again. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { ApiError } from "../api/client";
import { asApiError } from "../api/client";
import { api, canCommand, retryNow, schedulerList } from "../api/server";
import { ErrorNote } from "../components/ErrorNote";

interface Summary {
  readonly name: string;
  readonly state: string;
}

interface Doors {
  /** What one of them is called. */
  readonly noun: string;
  readonly list: (signal: AbortSignal) => Promise<readonly Summary[]>;
  readonly open: (name: string) => Promise<readonly Summary[]>;
}

/** The schedulers whose engines come and go. */
const DOORS: Readonly<Record<string, Doors>> = {
  actions: {
    noun: "world",
    list: (signal) => api.get("/api/v1/actions", {}, {}, signal).then(({ worlds }) => worlds),
    open: (world) => api.post("/api/v1/actions/{world}/open", { world }).then(({ worlds }) => worlds),
  },
  fleet: {
    noun: "fleet",
    list: (signal) => api.get("/api/v1/fleet", {}, {}, signal).then(({ fleets }) => fleets),
    open: (fleet) => api.post("/api/v1/fleet/{fleet}/open", { fleet }).then(({ fleets }) => fleets),
  },
  playback: {
    noun: "player",
    list: (signal) => api.get("/api/v1/playback", {}, {}, signal).then(({ players }) => players),
    open: (player) => api.post("/api/v1/playback/{player}/open", { player }).then(({ players }) => players),
  },
};

export function ClosedEngines({ scheduler }: { readonly scheduler: string }) {
  const doors = Object.hasOwn(DOORS, scheduler) ? DOORS[scheduler] : undefined;
  return doors === undefined ? null : <Closed key={scheduler} doors={doors} />;
}

function Closed({ doors }: { readonly doors: Doors }) {
  const closed = useSignal<readonly string[]>([]);
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const take = (engines: readonly Summary[]) => {
    closed.value = engines.filter(({ state }) => state === "closed").map(({ name }) => name);
  };
  // Asked again as often as the schedulers are.
  const list = schedulerList.value;
  useEffect(() => {
    const abort = new AbortController();
    doors.list(abort.signal).then(
      (engines) => {
        if (!abort.signal.aborted) take(engines);
      },
      () => undefined,
    );
    return () => abort.abort();
  }, [doors, list]);
  const open = async (name: string) => {
    busy.value = true;
    error.value = null;
    try {
      take(await doors.open(name));
      retryNow();
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      busy.value = false;
    }
  };
  if (closed.value.length === 0 && error.value === null) return null;
  return (
    <div class="closed-engines" data-testid="closed-engines">
      {closed.value.map((name) => (
        <p key={name} data-testid={`closed-${name}`}>
          <span>
            The {doors.noun} <strong>{name}</strong> is closed.
          </span>
          <button
            type="button"
            class="button"
            aria-label={`Open ${name}`}
            disabled={busy.value || !canCommand.value}
            onClick={() => void open(name)}
            data-testid={`open-${name}`}
          >
            Open
          </button>
        </p>
      ))}
      {error.value !== null && <ErrorNote error={error.value} />}
    </div>
  );
}
