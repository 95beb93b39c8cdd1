/** A run followed live: where it stands, its network, what happened in it, what is measured, where payments stick.
 *
 * The stream goes on after the newest event that is known, so that nothing is missed between what was asked for and what
 * is told, and every event is taken in once, whichever way it came. Events come many at a time and are taken in together.
 * After a pause in the stream everything is asked for anew, and what came meanwhile is put on top of the answer.
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
import { counted, NOTHING } from "./counts";
import type { Light } from "./network/lit";
import { lightsOf, plannedLights, shining } from "./network/lit";
import type { Happening, Network } from "./network/model";
import { happeningOf, networkOf, patched } from "./network/model";

export const HAPPENED_MOST = 150;
const RECALLED = 500;
const GATHER_MS = 120;
const LOOK_MS = 3_000;
const POINTS = 240;
const ENDED = ["stopped", "error"];
const EVENT_GONE = "EVENT_ID_GONE";
const NOT_FOUND = 404;

const RUN = "/api/v1/simulator/runs/{run_id}";

export class LiveRun {
  readonly runId: string;
  readonly status = signal<RunStatusView | null>(null);
  readonly network = signal<Network | null>(null);
  readonly happened = signal<readonly Happening[]>([]);
  readonly counts = signal<Counts>(NOTHING);
  readonly lights = signal<readonly Light[]>([]);
  readonly metrics = signal<MetricsView | null>(null);
  readonly bottlenecks = signal<readonly BottleneckView[]>([]);
  readonly details = signal<RunDetails | null>(null);
  readonly error = signal<ApiError | null>(null);
  readonly stream: ReadonlySignal<EventStream | null>;
  readonly #stream = signal<EventStream | null>(null);
  readonly #api: Api;
  readonly #open: StreamOptions["open"];
  readonly #equivalent: string | null;
  #gathered: JsonObject[] = [];
  /** The newest event that is known. */
  #last: string | null = null;
  /** For every question under way, what was taken in since it was asked: its answer may be older than that. */
  readonly #asking = new Set<JsonObject[]>();
  #gathering: ReturnType<typeof setTimeout> | null = null;
  #looking: ReturnType<typeof setInterval> | null = null;
  #beginning = false;
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
    this.#looking = setInterval(() => {
      if (document.visibilityState === "visible") void this.#lookAgain();
    }, LOOK_MS);
    await this.#begin();
  }

  async #begin(): Promise<void> {
    if (this.#beginning) return;
    this.#beginning = true;
    const older = this.happened.value.length === 0 ? await this.#newest() : [];
    // What is recalled comes first: every event after it is then in the picture, or told by the stream.
    await this.#catchUp(older);
    this.#beginning = false;
    if (this.error.value === null) this.#follow();
  }

  /** Measure a run that is followed, try again what failed at first, and see whether an ended run was begun again. */
  async #lookAgain(): Promise<void> {
    if (this.status.value === null && this.error.value?.status === NOT_FOUND) return;
    if (this.#stream.value === null && (this.active || this.status.value === null)) return this.#begin();
    if (this.active) return this.measure();
    // What is shown of an ended run stays true, whether this is answered or not.
    const found = await this.#api.get(RUN, { run_id: this.runId }).catch(() => null);
    if (!this.#stopped && found !== null && !ENDED.includes(found.state)) this.take(found);
  }

  stop(): void {
    this.#stopped = true;
    this.#unfollow?.();
    this.#stream.value?.close();
    this.#stream.value = null;
    if (this.#gathering !== null) clearTimeout(this.#gathering);
    if (this.#looking !== null) clearInterval(this.#looking);
  }

  get active(): boolean {
    const state = this.status.value?.state;
    return state !== undefined && !ENDED.includes(state);
  }

  /** Everything as it stands, asked for anew; a run that has begun again is followed again. */
  async refresh(): Promise<void> {
    const names = { run_id: this.runId };
    const query = { equivalent: this.#equivalent };
    const since: JsonObject[] = [];
    this.#asking.add(since);
    try {
      const [status, picture] = await Promise.all([
        this.#api.get(RUN, names),
        this.#api.get(`${RUN}/graph/snapshot`, names, query),
      ]);
      if (this.#stopped) return;
      batch(() => {
        this.status.value = status;
        this.network.value = networkOf(picture);
        this.#apply(since);
        this.error.value = null;
      });
    } catch (thrown) {
      this.#failed(thrown);
      return;
    } finally {
      this.#asking.delete(since);
    }
    await this.measure();
  }

  /** What is measured and counted by the server: curves, bottlenecks, details. */
  async measure(): Promise<void> {
    const names = { run_id: this.runId };
    const last = this.status.value?.sim_time_ms ?? 0;
    const equivalent = this.network.value?.equivalent ?? null;
    const step = Math.max(1000, 1000 * Math.ceil(last / 1000 / POINTS));
    try {
      const [metrics, bottlenecks, details] = await Promise.all([
        this.#api.get(`${RUN}/metrics`, names, {
          equivalent,
          from_ms: 0,
          to_ms: last,
          step_ms: step,
          extended: "true",
        }),
        this.#api.get(`${RUN}/bottlenecks`, names, { equivalent, limit: 12 }),
        this.#api.get(`${RUN}/details`, names),
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

  /** Take in a status that a call was answered with; an ended run that lives again is followed again. */
  take(status: RunStatusView): void {
    const before = this.active;
    this.status.value = status;
    if (!before && this.active) void this.#begin();
  }

  /** What happened since the newest event that is known, and then everything as it stands. */
  async #catchUp(older: readonly JsonObject[] = []): Promise<void> {
    const events = await this.#cameAfter(this.#last);
    if (this.#stopped) return;
    const first = events[0] === undefined ? Infinity : numberOf(String(events[0]["event_id"]));
    // These are only shown: the stream cannot go on after an event that it keeps no longer.
    const before = older.filter((event) => numberOf(String(event["event_id"])) < first);
    const news = events.filter((event) => this.#isNews(String(event["event_id"])));
    this.#note([...before, ...news].map(happeningOf).filter((one) => one !== null));
    await this.refresh();
  }

  /** The newest events, also those that streams keep no longer; none where they cannot be had. */
  async #newest(): Promise<readonly JsonObject[]> {
    const query = { equivalent: this.#equivalent, limit: RECALLED };
    return this.#api.get(`${RUN}/events/last`, { run_id: this.runId }, query).catch(() => []);
  }

  /** What came after an event, as far as the server still tells of it. */
  async #cameAfter(after: string | null): Promise<readonly JsonObject[]> {
    const equivalent = this.network.value?.equivalent ?? this.#equivalent;
    try {
      return await this.#api.get(`${RUN}/events/poll`, { run_id: this.runId }, { equivalent, after });
    } catch (thrown) {
      // The past is no condition for the present: what comes from now on is told all the same.
      if (after === null || asApiError(thrown).code !== EVENT_GONE) return [];
      const kept = await this.#cameAfter(null);
      if (this.#last === after) this.#last = null;
      return kept;
    }
  }

  /** Whether an event is newer than all that are known; it is known from then on. */
  #isNews(id: string): boolean {
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
        if (this.#isNews(id)) this.#gather(body);
      },
      // Nothing may be left to be told after the newest event that is known: what can still be asked for is the start.
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

  #gather(event: JsonObject): void {
    this.#gathered.push(event);
    // The end is taken in at once: the server closes the stream after it, which is no loss.
    if (event["type"] === "run_status" && ENDED.includes(String(event["state"]))) this.#takeIn();
    else this.#gathering ??= setTimeout(() => this.#takeIn(), GATHER_MS);
  }

  #takeIn(): void {
    if (this.#gathering !== null) clearTimeout(this.#gathering);
    this.#gathering = null;
    const events = this.#gathered;
    this.#gathered = [];
    const now = performance.now();
    const happenings = events.map(happeningOf).filter((one) => one !== null);
    for (const since of this.#asking) since.push(...events);
    const wasAt = this.status.value?.sim_time_ms ?? 0;
    batch(() => {
      this.#apply(events);
      const lights = [...lightsOf(happenings, now), ...events.flatMap((event) => plannedLights(event, now))];
      if (lights.length > 0) this.lights.value = shining([...this.lights.value, ...lights], now);
      this.#note(happenings);
    });
    const begunAnew = (this.status.value?.sim_time_ms ?? 0) < wasAt;
    if (begunAnew || events.some((event) => event["type"] === "topology.changed")) void this.refresh();
    if (!this.active) this.#ended();
  }

  /** What events change of where the run stands and of its network. */
  #apply(events: readonly JsonObject[]): void {
    const [network, status] = [this.network.value, this.status.value];
    const last = events.findLast((event) => event["type"] === "run_status");
    if (network !== null) this.network.value = patched(network, events);
    if (last !== undefined && status !== null)
      this.status.value = { ...status, ...(last as unknown as Partial<RunStatusView>) };
  }

  #ended(): void {
    this.#unfollow?.();
    this.#stream.value?.close();
    this.#stream.value = null;
    void this.refresh();
  }

  #note(happenings: readonly Happening[]): void {
    if (happenings.length === 0) return;
    batch(() => {
      this.counts.value = counted(this.counts.value, happenings);
      this.happened.value = [...this.happened.value, ...happenings].slice(-HAPPENED_MOST);
    });
  }

  #failed(thrown: unknown): void {
    if (!this.#stopped) this.error.value = asApiError(thrown);
  }
}

/** The number of an event: its id is `evt_<run>_<number>`. */
function numberOf(id: string): number {
  return Number(id.slice(id.lastIndexOf("_") + 1));
}
