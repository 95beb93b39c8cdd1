/** What the page knows of its server: who we are, which schedulers there are, whether it is ready, whether it answers.
 *
 * Looked up every few seconds while the page is visible; a server that does not answer is asked with growing pauses.
 */

import type { ReadonlySignal } from "@preact/signals";
import { batch, computed, signal } from "@preact/signals";

import { Api, ApiError, asApiError } from "./client";
import { sharing } from "./sharing";
import type { Connection } from "./stream";
import { pauseMs } from "./stream";
import type { Readiness, SchedulerList, SessionView } from "./types";

const REFRESH_MS = 5_000;
/** A server that takes longer to say how it is counts as gone: what it said before is not shown as live for ever. */
const PATIENCE_MS = 15_000;

export type SessionState =
  | { readonly kind: "unknown" }
  | { readonly kind: "needed" }
  | { readonly kind: "open"; readonly session: SessionView };

/** A stream that a scheduler page holds open; while there is one, it is what the connection badge speaks of. */
export interface OpenStream {
  readonly connection: ReadonlySignal<Connection>;
  readonly retryNow: () => void;
}

export const session = signal<SessionState>({ kind: "unknown" });
export const schedulerList = signal<SchedulerList | null>(null);
export const readiness = signal<Readiness | null>(null);
export const serverError = signal<ApiError | null>(null);
export const openStream = signal<OpenStream | null>(null);

const reached = signal<Connection>({ kind: "connecting" });
export const connection = computed<Connection>(() => openStream.value?.connection.value ?? reached.value);

/** Viewers look; operators and admins also send commands. */
export const mayCommand = computed(() => session.value.kind === "open" && session.value.session.role !== "viewer");

export const api = new Api({
  fetch: (path, init) => fetch(path, init),
  onUnauthorised: () => (session.value = { kind: "needed" }),
});

let failures = 0;
let timer: ReturnType<typeof setTimeout> | null = null;

/** Look now, and again after a while, until the returned function is called. */
export function followServer(): () => void {
  const onVisible = () => {
    if (document.visibilityState === "visible") retryNow();
  };
  document.addEventListener("visibilitychange", onVisible);
  addEventListener("online", retryNow);
  addEventListener("pagehide", leave);
  void lookAgain();
  return () => {
    document.removeEventListener("visibilitychange", onVisible);
    removeEventListener("online", retryNow);
    removeEventListener("pagehide", leave);
    stopTimer();
  };
}

/** Try whatever is lost again at once. */
export function retryNow(): void {
  openStream.value?.retryNow();
  void lookAgain();
}

export async function signIn(token: string): Promise<void> {
  const opened = await api.signIn(token);
  session.value = { kind: "open", session: opened };
  sharing.again();
  await lookAgain();
}

export async function signOut(): Promise<void> {
  await api.signOut();
  sharing.again();
  batch(() => {
    session.value = { kind: "needed" };
    schedulerList.value = null;
  });
}

async function lookAgain(): Promise<void> {
  stopTimer();
  try {
    await within(PATIENCE_MS, look());
    failures = 0;
    batch(() => {
      serverError.value = null;
      if (reached.value.kind !== "live") reached.value = { kind: "live", since: Date.now() };
    });
    schedule(REFRESH_MS);
  } catch (thrown) {
    noteFailure(asApiError(thrown));
  }
}

async function look(): Promise<void> {
  if (session.value.kind === "unknown") session.value = { kind: "open", session: await api.session() };
  if (session.value.kind !== "open") return;
  const [schedulers, ready] = await Promise.all([api.schedulers(), api.readiness()]);
  batch(() => {
    schedulerList.value = schedulers;
    readiness.value = ready;
  });
}

async function within(ms: number, looking: Promise<void>): Promise<void> {
  let late: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    late = setTimeout(() => reject(new ApiError("unreachable", "The server does not answer.")), ms);
  });
  try {
    await Promise.race([looking, silence]);
  } finally {
    clearTimeout(late);
  }
}

function leave(): void {
  sharing.leave();
}

function noteFailure(error: ApiError): void {
  failures += 1;
  const pause = pauseMs(failures, Math.random());
  const now = Date.now();
  batch(() => {
    // Signing in is asked for by its own form, it is no error of the server.
    serverError.value = error.status === 401 ? null : error;
    if (error.status > 0) reached.value = reached.value.kind === "live" ? reached.value : { kind: "live", since: now };
    else
      reached.value = {
        kind: "lost",
        since: reached.value.kind === "lost" ? reached.value.since : now,
        retryAt: now + pause,
      };
  });
  schedule(pause);
}

function schedule(ms: number): void {
  stopTimer();
  timer = setTimeout(() => {
    if (document.visibilityState === "hidden") schedule(REFRESH_MS);
    else void lookAgain();
  }, ms);
}

function stopTimer(): void {
  if (timer !== null) clearTimeout(timer);
  timer = null;
}
