/** One engine as the page follows it: its state now, the events that came, and the extent of its journal.
 *
 * Events arrive by the stream and are shown in batches; the state is fetched again when events came and every few
 * seconds, because a command may change the state without an event.
 */

import { batch, signal } from "@preact/signals";

import type { Api, ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { isList, isObject } from "../../api/json";
import type { Source as EventSource } from "../../api/stream";
import { EventStream } from "../../api/stream";
import type { GapView } from "../../api/types";

export const MOST_ROWS = 500;
const BACKFILL_RECORDS = 400;
const LAST_RECORDS = 8;
const FIRST_RECORDS = 4;
const SHOW_EVERY_MS = 100;
const STATE_AFTER_EVENT_MS = 300;
const STATE_EVERY_MS = 5_000;
/** The id before the first event of a journal: what comes while the stream is being opened is told, too. */
const BEFORE_ALL = "-1.0";

export type CameRow =
  | { readonly kind: "event"; readonly key: number; readonly id: string; readonly body: JsonObject }
  | { readonly kind: "gap"; readonly key: number; readonly gap: GapView };

export interface Extent {
  readonly first: number;
  readonly snapshots: readonly (readonly [number, number])[];
}

/** What every form of a state says: the record it is after. */
export interface Numbered {
  readonly n: number;
}

/** How the present state of an engine is read: a scheduler may tell it in a form of its own. */
export type ReadNow<State extends Numbered> = (address: EngineAddress) => Promise<State>;

/** The record number of an event id `n.k`. */
export function recordOf(id: string): number {
  return Number(id.split(".", 1)[0]);
}

export class LiveEngine<State extends Numbered> {
  readonly address: EngineAddress;
  readonly state = signal<State | null>(null);
  readonly error = signal<ApiError | null>(null);
  readonly came = signal<readonly CameRow[]>([]);
  readonly extent = signal<Extent>({ first: 0, snapshots: [] });
  readonly stream = signal<EventStream | null>(null);

  readonly #api: Pick<Api, "journal">;
  readonly #readNow: ReadNow<State>;
  readonly #open: ((address: string) => EventSource) | undefined;
  #waiting: CameRow[] = [];
  #arrived = 0;
  #highest = -1;
  #stopped = false;
  #showTimer: ReturnType<typeof setTimeout> | null = null;
  #stateTimer: ReturnType<typeof setTimeout> | null = null;
  #stateDue = Infinity;
  #extentDue = 0;
  #asked = 0;
  #answered = 0;
  #opening = false;

  constructor(
    api: Pick<Api, "journal">,
    address: EngineAddress,
    readNow: ReadNow<State>,
    open?: (address: string) => EventSource,
  ) {
    this.#api = api;
    this.address = address;
    this.#readNow = readNow;
    this.#open = open;
  }

  /** Begin to follow; the promise ends when the first state is there or could not be had. */
  async start(): Promise<void> {
    await this.refresh();
  }

  stop(): void {
    this.#stopped = true;
    this.stream.value?.close();
    if (this.#showTimer !== null) clearTimeout(this.#showTimer);
    if (this.#stateTimer !== null) clearTimeout(this.#stateTimer);
  }

  /** Fetch the state now, and the extent of the journal when it is not fresh any more. */
  async refresh(): Promise<void> {
    const known = this.#highest;
    this.#stateDue = Infinity;
    this.#asked += 1;
    const number = this.#asked;
    try {
      const state = await this.#readNow(this.address);
      // What was published is in every later state; a lower number means the journal was replaced by another one.
      if (state.n < known) this.#forget();
      if (Date.now() >= this.#extentDue) await this.#measure(state.n);
      // An answer that was overtaken by the one to a later question is of no use any more.
      if (this.#stopped || number < this.#answered) return;
      this.#answered = number;
      batch(() => {
        this.state.value = state;
        this.error.value = null;
      });
      if (this.stream.value === null && !this.#opening) await this.#openStream(state.n, this.extent.value.first);
    } catch (thrown) {
      if (!this.#stopped && number >= this.#answered) this.error.value = asApiError(thrown);
    }
    if (!this.#stopped) this.#refreshWithin(STATE_EVERY_MS);
  }

  async #measure(last: number): Promise<void> {
    const start = Math.max(0, last - LAST_RECORDS + 1);
    const { first_n, snapshots } = await this.#api.journal(this.address, start, LAST_RECORDS);
    this.#extentDue = Date.now() + STATE_EVERY_MS;
    this.extent.value = { first: first_n, snapshots };
  }

  async #openStream(last: number, first: number): Promise<void> {
    const begin = Math.max(first, last - BACKFILL_RECORDS);
    this.#opening = true;
    try {
      if (last >= begin) await this.#takeFirstOf(begin);
    } finally {
      this.#opening = false;
    }
    if (this.#stopped) return;
    this.stream.value = new EventStream({
      address: (after) => this.address.stream(after),
      after: last >= begin ? `${begin}.0` : BEFORE_ALL,
      onEvent: (id, body) => this.#takeEvent(id, body),
      onGap: (gap) => this.#take({ kind: "gap", key: this.#arrived++, gap }),
      onRefused: () => void this.refresh(),
      ...(this.#open ? { open: this.#open } : {}),
    });
  }

  /** The stream begins after an event; the one event of a journal that comes after none is read from its record. */
  async #takeFirstOf(n: number): Promise<void> {
    const { records } = await this.#api.journal(this.address, n, FIRST_RECORDS);
    for (const { kind, body } of records) {
      if (kind !== "outcome" || !isObject(body) || body["of"] !== n) continue;
      const events = body["events"] ?? null;
      const event = isList(events) ? events[0] : undefined;
      if (isObject(event)) this.#takeEvent(`${n}.0`, event);
    }
  }

  #takeEvent(id: string, body: JsonObject): void {
    this.#take({ kind: "event", key: this.#arrived++, id, body });
  }

  #take(row: CameRow): void {
    this.#waiting.push(row);
    if (row.kind === "event") this.#highest = Math.max(this.#highest, recordOf(row.id));
    this.#showTimer ??= setTimeout(() => this.#show(), SHOW_EVERY_MS);
    this.#refreshWithin(STATE_AFTER_EVENT_MS);
  }

  #show(): void {
    this.#showTimer = null;
    const newest = this.#waiting.reverse();
    this.#waiting = [];
    this.came.value = [...newest, ...this.came.value].slice(0, MOST_ROWS);
  }

  #refreshWithin(ms: number): void {
    const due = Date.now() + ms;
    if (due >= this.#stateDue) return;
    this.#stateDue = due;
    if (this.#stateTimer !== null) clearTimeout(this.#stateTimer);
    this.#stateTimer = setTimeout(() => void this.refresh(), ms);
  }

  #forget(): void {
    this.stream.value?.close();
    this.stream.value = null;
    this.#waiting = [];
    this.#highest = -1;
    this.#extentDue = 0;
    this.came.value = [];
  }
}
