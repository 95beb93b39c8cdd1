/** The live view of a run: status, network, events, metrics and bottlenecks.
 *
 * The stream resumes after the newest known event, so no event is missed between a fetch and the stream, and each event
 * is applied once. Events are applied in batches. After a lost connection everything is fetched again, and events that
 * arrived during the fetch are applied on top of the response.
 */

import type { ReadonlySignal } from "@preact/signals";
import { batch, effect, signal } from "@preact/signals";

import type { Api, ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";
import type { StreamOptions } from "../../api/stream";
import { EventStream } from "../../api/stream";
import type { BottleneckView, MetricsView, RunDetails, RunStatusView } from "../../api/types";
import type { Counts } from "./counts";
import { addEvents, NO_COUNTS } from "./counts";
import type { Highlight } from "./network/highlights";
import { activeHighlights, highlightsOf, plannedHighlights } from "./network/highlights";
import type { Network, RunEvent } from "./network/model";
import { applyPatches, networkOf, runEventOf } from "./network/model";

export const MAX_EVENTS = 150;
const RECENT_EVENTS = 500;
const BATCH_MS = 120;
const POLL_MS = 3_000;
const POINTS = 240;
const ENDED = ["stopped", "error"];
const EVENT_GONE = "EVENT_ID_GONE";
const NOT_FOUND = 404;

const RUN = "/api/v1/simulator/runs/{run_id}";

export class LiveRun {
  readonly runId: string;
  readonly status = signal<RunStatusView | null>(null);
  readonly network = signal<Network | null>(null);
  readonly events = signal<readonly RunEvent[]>([]);
  readonly counts = signal<Counts>(NO_COUNTS);
  readonly highlights = signal<readonly Highlight[]>([]);
  readonly metrics = signal<MetricsView | null>(null);
  readonly bottlenecks = signal<readonly BottleneckView[]>([]);
  readonly details = signal<RunDetails | null>(null);
  readonly error = signal<ApiError | null>(null);
  readonly stream: ReadonlySignal<EventStream | null>;
  readonly #stream = signal<EventStream | null>(null);
  readonly #api: Api;
  readonly #open: StreamOptions["open"];
  readonly #equivalent: string | null;
  #pending: JsonObject[] = [];
  /** The id of the newest known event. */
  #last: string | null = null;
  /** For each running fetch, the events since it started: its response may be older than these. */
  readonly #fetches = new Set<JsonObject[]>();
  #batchTimer: ReturnType<typeof setTimeout> | null = null;
  #pollTimer: ReturnType<typeof setInterval> | null = null;
  #isStarting = false;
  #unfollow: (() => void) | null = null;
  #stopped = false;

  constructor(api: Api, runId: string, equivalent: string | null, open?: StreamOptions["open"]) {
    this.#api = api;
    this.runId = runId;
    this.#equivalent = equivalent;
    this.#open = open;
    this.stream = this.#stream;
  }

  async start(): Promise<void> {
    this.#pollTimer = setInterval(() => {
      if (document.visibilityState === "visible") void this.#poll();
    }, POLL_MS);
    await this.#startFollowing();
  }

  async #startFollowing(): Promise<void> {
    if (this.#isStarting) return;
    this.#isStarting = true;
    const older = this.events.value.length === 0 ? await this.#recentEvents() : [];
    // Events are loaded before the snapshot, so each later event is in the snapshot or on the stream.
    await this.#catchUp(older);
    this.#isStarting = false;
    if (this.error.value === null) this.#follow();
  }

  /** Fetch the metrics of an active run, retry a failed start, and check whether a finished run was restarted. */
  async #poll(): Promise<void> {
    if (this.status.value === null && this.error.value?.status === NOT_FOUND) return;
    if (this.#stream.value === null && (this.active || this.status.value === null)) return this.#startFollowing();
    if (this.active) return this.fetchMetrics();
    // Errors are ignored: the data of a finished run stays valid.
    const status = await this.#api.get(RUN, { run_id: this.runId }).catch(() => null);
    if (!this.#stopped && status !== null && !ENDED.includes(status.state)) this.setStatus(status);
  }

  stop(): void {
    this.#stopped = true;
    this.#unfollow?.();
    this.#stream.value?.close();
    this.#stream.value = null;
    if (this.#batchTimer !== null) clearTimeout(this.#batchTimer);
    if (this.#pollTimer !== null) clearInterval(this.#pollTimer);
  }

  get active(): boolean {
    const state = this.status.value?.state;
    return state !== undefined && !ENDED.includes(state);
  }

  /** Fetch status, network and metrics. */
  async refresh(): Promise<void> {
    const path = { run_id: this.runId };
    const query = { equivalent: this.#equivalent };
    const since: JsonObject[] = [];
    this.#fetches.add(since);
    try {
      const [status, snapshot] = await Promise.all([
        this.#api.get(RUN, path),
        this.#api.get(`${RUN}/graph/snapshot`, path, query),
      ]);
      if (this.#stopped) return;
      batch(() => {
        this.status.value = status;
        this.network.value = networkOf(snapshot);
        this.#apply(since);
        this.error.value = null;
      });
    } catch (thrown) {
      this.#failed(thrown);
      return;
    } finally {
      this.#fetches.delete(since);
    }
    await this.fetchMetrics();
  }

  /** Fetch metrics, bottlenecks and details. */
  async fetchMetrics(): Promise<void> {
    const path = { run_id: this.runId };
    const last = this.status.value?.sim_time_ms ?? 0;
    const equivalent = this.network.value?.equivalent ?? null;
    const step = Math.max(1000, 1000 * Math.ceil(last / 1000 / POINTS));
    try {
      const [metrics, bottlenecks, details] = await Promise.all([
        this.#api.get(`${RUN}/metrics`, path, {
          equivalent,
          from_ms: 0,
          to_ms: last,
          step_ms: step,
          extended: "true",
        }),
        this.#api.get(`${RUN}/bottlenecks`, path, { equivalent, limit: 12 }),
        this.#api.get(`${RUN}/details`, path),
      ]);
      if (this.#stopped) return;
      batch(() => {
        this.metrics.value = metrics;
        this.bottlenecks.value = bottlenecks.items;
        this.details.value = details;
      });
    } catch (thrown) {
      this.#failed(thrown);
    }
  }

  /** Set the status from a response; a restarted run is followed again. */
  setStatus(status: RunStatusView): void {
    const before = this.active;
    this.status.value = status;
    if (!before && this.active) void this.#startFollowing();
  }

  /** Fetch the events after the newest known one, then everything else. */
  async #catchUp(older: readonly JsonObject[] = []): Promise<void> {
    const events = await this.#eventsAfter(this.#last);
    if (this.#stopped) return;
    const first = events[0] === undefined ? Infinity : numberOf(String(events[0]["event_id"]));
    // Older events are only shown; the stream cannot resume after an event it has dropped.
    const before = older.filter((event) => numberOf(String(event["event_id"])) < first);
    const fresh = events.filter((event) => this.#isNew(String(event["event_id"])));
    this.#addEvents([...before, ...fresh].map(runEventOf).filter((event) => event !== null));
    await this.refresh();
  }

  /** The newest events, including those the stream has dropped; empty on errors. */
  async #recentEvents(): Promise<readonly JsonObject[]> {
    const query = { equivalent: this.#equivalent, limit: RECENT_EVENTS };
    return this.#api.get(`${RUN}/events/last`, { run_id: this.runId }, query).catch(() => []);
  }

  /** The events after a given one that the server still has. */
  async #eventsAfter(after: string | null): Promise<readonly JsonObject[]> {
    const equivalent = this.network.value?.equivalent ?? this.#equivalent;
    try {
      return await this.#api.get(`${RUN}/events/poll`, { run_id: this.runId }, { equivalent, after });
    } catch (thrown) {
      // Missing past events do not prevent following the stream.
      if (after === null || asApiError(thrown).code !== EVENT_GONE) return [];
      const remaining = await this.#eventsAfter(null);
      if (this.#last === after) this.#last = null;
      return remaining;
    }
  }

  /** Whether an event is newer than all known events; it becomes the newest known one. */
  #isNew(id: string): boolean {
    if (this.#last !== null && numberOf(id) <= numberOf(this.#last)) return false;
    this.#last = id;
    return true;
  }

  #address(): string {
    const query = new URLSearchParams({ equivalent: this.network.value?.equivalent ?? "" });
    if (this.#last !== null) query.set("after", this.#last);
    return `${RUN.replace("{run_id}", encodeURIComponent(this.runId))}/events?${query}`;
  }

  #follow(): void {
    if (this.#stopped) return;
    this.#unfollow?.();
    this.#stream.value?.close();
    const stream = new EventStream({
      address: () => this.#address(),
      after: this.#last,
      eventType: "simulator.event",
      onEvent: (id, body) => {
        if (this.#isNew(id)) this.#enqueue(body);
      },
      // The server may have dropped the newest known event: load what it still has.
      onRefused: () => void this.#catchUp(),
      ...(this.#open === undefined ? {} : { open: this.#open }),
    });
    this.#stream.value = stream;
    let lost = false;
    this.#unfollow = effect(() => {
      const { kind } = stream.connection.value;
      if (kind === "lost") lost = true;
      if (kind !== "live" || !lost) return;
      lost = false;
      void this.refresh();
    });
  }

  #enqueue(event: JsonObject): void {
    this.#pending.push(event);
    // The end of a run is applied at once, because the server then closes the stream.
    if (event["type"] === "run_status" && ENDED.includes(String(event["state"]))) this.#applyPending();
    else this.#batchTimer ??= setTimeout(() => this.#applyPending(), BATCH_MS);
  }

  #applyPending(): void {
    if (this.#batchTimer !== null) clearTimeout(this.#batchTimer);
    this.#batchTimer = null;
    const events = this.#pending;
    this.#pending = [];
    const now = performance.now();
    const runEvents = events.map(runEventOf).filter((event) => event !== null);
    for (const since of this.#fetches) since.push(...events);
    const timeBefore = this.status.value?.sim_time_ms ?? 0;
    batch(() => {
      this.#apply(events);
      const highlights = [...highlightsOf(runEvents, now), ...events.flatMap((event) => plannedHighlights(event, now))];
      if (highlights.length > 0)
        this.highlights.value = activeHighlights([...this.highlights.value, ...highlights], now);
      this.#addEvents(runEvents);
    });
    const wasRestarted = (this.status.value?.sim_time_ms ?? 0) < timeBefore;
    if (wasRestarted || events.some((event) => event["type"] === "topology.changed")) void this.refresh();
    if (!this.active) this.#ended();
  }

  /** Apply events to the status and the network. */
  #apply(events: readonly JsonObject[]): void {
    const [network, status] = [this.network.value, this.status.value];
    const last = events.findLast((event) => event["type"] === "run_status");
    if (network !== null) this.network.value = applyPatches(network, events);
    if (last !== undefined && status !== null)
      this.status.value = { ...status, ...(last as unknown as Partial<RunStatusView>) };
  }

  #ended(): void {
    this.#unfollow?.();
    this.#stream.value?.close();
    this.#stream.value = null;
    void this.refresh();
  }

  #addEvents(events: readonly RunEvent[]): void {
    if (events.length === 0) return;
    batch(() => {
      this.counts.value = addEvents(this.counts.value, events);
      this.events.value = [...this.events.value, ...events].slice(-MAX_EVENTS);
    });
  }

  #failed(thrown: unknown): void {
    if (!this.#stopped) this.error.value = asApiError(thrown);
  }
}

/** The number of an event with the id `evt_<run>_<number>`. */
function numberOf(id: string): number {
  return Number(id.slice(id.lastIndexOf("_") + 1));
}
