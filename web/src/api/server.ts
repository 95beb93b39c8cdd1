/** Server status as signals: session, schedulers, readiness and connection.
 *
 * Polled every few seconds while the page is visible, with backoff when the server does not answer.
 */

import type { ReadonlySignal } from "@preact/signals";
import { batch, computed, signal } from "@preact/signals";

import { Api, ApiError, asApiError } from "./client";
import { sharedConnection } from "./shared_connection";
import type { Connection } from "./stream";
import { retryDelayMs } from "./stream";
import type { Readiness, SchedulerList, SessionView } from "./types";

const REFRESH_MS = 5_000;
/** A slower status response counts as a lost connection, so that old values are not shown as live. */
const TIMEOUT_MS = 15_000;

export type SessionState =
  | { readonly kind: "unknown" }
  | { readonly kind: "needed" }
  | { readonly kind: "open"; readonly session: SessionView };

/** The stream of the open scheduler page; while there is one, the connection badge shows its state. */
export interface OpenStream {
  readonly connection: ReadonlySignal<Connection>;
  readonly retryNow: () => void;
}

export const session = signal<SessionState>({ kind: "unknown" });
export const schedulerList = signal<SchedulerList | null>(null);
export const readiness = signal<Readiness | null>(null);
export const serverError = signal<ApiError | null>(null);
export const openStream = signal<OpenStream | null>(null);

const polling = signal<Connection>({ kind: "connecting" });
export const connection = computed<Connection>(() => openStream.value?.connection.value ?? polling.value);

/** Whether the session may send commands: operators and admins may, viewers may not. */
export const canCommand = computed(() => session.value.kind === "open" && session.value.session.role !== "viewer");

export const api = new Api({
  fetch: (path, init) => fetch(path, init),
  onUnauthorised: () => (session.value = { kind: "needed" }),
});

let failures = 0;
let timer: ReturnType<typeof setTimeout> | null = null;

/** Poll the server until the returned function is called. */
export function followServer(): () => void {
  const onVisible = () => {
    if (document.visibilityState === "visible") retryNow();
  };
  document.addEventListener("visibilitychange", onVisible);
  addEventListener("online", retryNow);
  addEventListener("pagehide", leave);
  void refresh();
  return () => {
    document.removeEventListener("visibilitychange", onVisible);
    removeEventListener("online", retryNow);
    removeEventListener("pagehide", leave);
    stopTimer();
  };
}

/** Retry the status request and a lost stream at once. */
export function retryNow(): void {
  openStream.value?.retryNow();
  void refresh();
}

export async function signIn(token: string): Promise<void> {
  const opened = await api.signIn(token);
  session.value = { kind: "open", session: opened };
  sharedConnection.reconnect();
  await refresh();
}

export async function signOut(): Promise<void> {
  await api.signOut();
  sharedConnection.reconnect();
  batch(() => {
    session.value = { kind: "needed" };
    schedulerList.value = null;
  });
}

async function refresh(): Promise<void> {
  stopTimer();
  try {
    await withTimeout(TIMEOUT_MS, fetchStatus());
    failures = 0;
    batch(() => {
      serverError.value = null;
      if (polling.value.kind !== "live") polling.value = { kind: "live", since: Date.now() };
    });
    schedule(REFRESH_MS);
  } catch (thrown) {
    noteFailure(asApiError(thrown));
  }
}

async function fetchStatus(): Promise<void> {
  if (session.value.kind === "unknown") session.value = { kind: "open", session: await api.session() };
  if (session.value.kind !== "open") return;
  const [schedulers, ready] = await Promise.all([api.schedulers(), api.readiness()]);
  batch(() => {
    schedulerList.value = schedulers;
    readiness.value = ready;
  });
}

async function withTimeout(ms: number, request: Promise<void>): Promise<void> {
  let timeout: ReturnType<typeof setTimeout> | undefined;
  const expiry = new Promise<never>((_, reject) => {
    timeout = setTimeout(() => reject(new ApiError("unreachable", "The server does not answer.")), ms);
  });
  try {
    await Promise.race([request, expiry]);
  } finally {
    clearTimeout(timeout);
  }
}

function leave(): void {
  sharedConnection.leave();
}

function noteFailure(error: ApiError): void {
  failures += 1;
  const delay = retryDelayMs(failures, Math.random());
  const now = Date.now();
  batch(() => {
    // 401 is not shown as an error: the sign-in form opens instead.
    serverError.value = error.status === 401 ? null : error;
    if (error.status > 0) polling.value = polling.value.kind === "live" ? polling.value : { kind: "live", since: now };
    else
      polling.value = {
        kind: "lost",
        since: polling.value.kind === "lost" ? polling.value.since : now,
        retryAt: now + delay,
      };
  });
  schedule(delay);
}

function schedule(ms: number): void {
  stopTimer();
  timer = setTimeout(() => {
    if (document.visibilityState === "hidden") schedule(REFRESH_MS);
    else void refresh();
  }, ms);
}

function stopTimer(): void {
  if (timer !== null) clearTimeout(timer);
  timer = null;
}
