/** The closed engines of a scheduler, each with a button to open it. */

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

interface EngineAdmin {
  /** What an engine of the scheduler is called. */
  readonly noun: string;
  readonly list: (signal: AbortSignal) => Promise<readonly Summary[]>;
  readonly open: (name: string) => Promise<readonly Summary[]>;
}

/** The schedulers whose engines can be closed and opened. */
const ADMINS: Readonly<Record<string, EngineAdmin>> = {
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
  const admin = Object.hasOwn(ADMINS, scheduler) ? ADMINS[scheduler] : undefined;
  return admin === undefined ? null : <ClosedList key={scheduler} admin={admin} />;
}

function ClosedList({ admin }: { readonly admin: EngineAdmin }) {
  const closed = useSignal<readonly string[]>([]);
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const update = (engines: readonly Summary[]) => {
    closed.value = engines.filter(({ state }) => state === "closed").map(({ name }) => name);
  };
  // Refreshed together with the list of schedulers.
  const list = schedulerList.value;
  useEffect(() => {
    const abort = new AbortController();
    admin.list(abort.signal).then(
      (engines) => {
        if (!abort.signal.aborted) update(engines);
      },
      () => undefined,
    );
    return () => abort.abort();
  }, [admin, list]);
  const open = async (name: string) => {
    busy.value = true;
    error.value = null;
    try {
      update(await admin.open(name));
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
            The {admin.noun} <strong>{name}</strong> is closed.
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
