/** The live view of one engine: its state, recent events, and the extent of its journal.
 *
 * Events arrive on the stream and are shown in batches. The state is fetched after events and every few seconds, since a
 * command may change the state without an event.
 */

import { batch, signal } from "@preact/signals";

import type { Api, ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { isList, isObject } from "../../api/json";
import type { Source as EventSource } from "../../api/stream";
import { EventStream } from "../../api/stream";
import type { GapView } from "../../api/types";

export const MAX_ROWS = 500;
const BACKFILL_RECORDS = 400;
const LAST_RECORDS = 8;
const FIRST_RECORDS = 4;
const SHOW_EVERY_MS = 100;
const STATE_AFTER_EVENT_MS = 300;
const STATE_EVERY_MS = 5_000;
/** The id before the first event of a journal, so that events during the opening of the stream are not lost. */
const BEFORE_FIRST = "-1.0";

export type EventRow =
  | { readonly kind: "event"; readonly key: number; readonly id: string; readonly body: JsonObject }
  | { readonly kind: "gap"; readonly key: number; readonly gap: GapView };

export interface Extent {
  readonly first: number;
  readonly snapshots: readonly (readonly [number, number])[];
}

/** A state with the number of the record it follows. */
export interface Numbered {
  readonly n: number;
}

/** Fetch the current state of an engine, in the form the scheduler's page needs. */
export type ReadNow<State extends Numbered> = (address: EngineAddress) => Promise<State>;

/** The record number of an event id `n.k`. */
export function recordOf(id: string): number {
  return Number(id.split(".", 1)[0]);
}

export class LiveEngine<State extends Numbered> {
  readonly address: EngineAddress;
  readonly state = signal<State | null>(null);
  readonly error = signal<ApiError | null>(null);
  readonly events = signal<readonly EventRow[]>([]);
  readonly extent = signal<Extent>({ first: 0, snapshots: [] });
  readonly stream = signal<EventStream | null>(null);

  readonly #api: Pick<Api, "journal">;
  readonly #readNow: ReadNow<State>;
  readonly #open: ((address: string) => EventSource) | undefined;
  #pending: EventRow[] = [];
  #nextKey = 0;
  #highest = -1;
  #stopped = false;
  #showTimer: ReturnType<typeof setTimeout> | null = null;
  #stateTimer: ReturnType<typeof setTimeout> | null = null;
  #stateDue = Infinity;
  #extentDue = 0;
  #lastRequest = 0;
  #lastResponse = 0;
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

  /** Start to follow the engine; resolves after the first state was loaded or failed to load. */
  async start(): Promise<void> {
    await this.refresh();
  }

  stop(): void {
    this.#stopped = true;
    this.stream.value?.close();
    if (this.#showTimer !== null) clearTimeout(this.#showTimer);
    if (this.#stateTimer !== null) clearTimeout(this.#stateTimer);
  }

  /** Fetch the state, and the extent of the journal when it is outdated. */
  async refresh(): Promise<void> {
    const known = this.#highest;
    this.#stateDue = Infinity;
    this.#lastRequest += 1;
    const number = this.#lastRequest;
    try {
      const state = await this.#readNow(this.address);
      // A state behind a published event means that the journal was replaced.
      if (state.n < known) this.#reset();
      if (Date.now() >= this.#extentDue) await this.#fetchExtent(state.n);
      // A response older than one already shown is dropped.
      if (this.#stopped || number < this.#lastResponse) return;
      this.#lastResponse = number;
      batch(() => {
        this.state.value = state;
        this.error.value = null;
      });
      if (this.stream.value === null && !this.#opening) await this.#openStream(state.n, this.extent.value.first);
    } catch (thrown) {
      if (!this.#stopped && number >= this.#lastResponse) this.error.value = asApiError(thrown);
    }
    if (!this.#stopped) this.#refreshWithin(STATE_EVERY_MS);
  }

  async #fetchExtent(last: number): Promise<void> {
    const start = Math.max(0, last - LAST_RECORDS + 1);
    const { first_n, snapshots } = await this.#api.journal(this.address, start, LAST_RECORDS);
    this.#extentDue = Date.now() + STATE_EVERY_MS;
    this.extent.value = { first: first_n, snapshots };
  }

  async #openStream(last: number, first: number): Promise<void> {
    const begin = Math.max(first, last - BACKFILL_RECORDS);
    this.#opening = true;
    try {
      if (last >= begin) await this.#addFirstEvent(begin);
    } finally {
      this.#opening = false;
    }
    if (this.#stopped) return;
    this.stream.value = new EventStream({
      address: (after) => this.address.stream(after),
      after: last >= begin ? `${begin}.0` : BEFORE_FIRST,
      onEvent: (id, body) => this.#addEvent(id, body),
      onGap: (gap) => this.#add({ kind: "gap", key: this.#nextKey++, gap }),
      onRefused: () => void this.refresh(),
      ...(this.#open ? { open: this.#open } : {}),
    });
  }

  /** The stream starts after an event id, so the first event itself is read from its record. */
  async #addFirstEvent(n: number): Promise<void> {
    const { records } = await this.#api.journal(this.address, n, FIRST_RECORDS);
    for (const { kind, body } of records) {
      if (kind !== "outcome" || !isObject(body) || body["of"] !== n) continue;
      const events = body["events"] ?? null;
      const event = isList(events) ? events[0] : undefined;
      if (isObject(event)) this.#addEvent(`${n}.0`, event);
    }
  }

  #addEvent(id: string, body: JsonObject): void {
    this.#add({ kind: "event", key: this.#nextKey++, id, body });
  }

  #add(row: EventRow): void {
    this.#pending.push(row);
    if (row.kind === "event") this.#highest = Math.max(this.#highest, recordOf(row.id));
    this.#showTimer ??= setTimeout(() => this.#show(), SHOW_EVERY_MS);
    this.#refreshWithin(STATE_AFTER_EVENT_MS);
  }

  #show(): void {
    this.#showTimer = null;
    const newest = this.#pending.reverse();
    this.#pending = [];
    this.events.value = [...newest, ...this.events.value].slice(0, MAX_ROWS);
  }

  #refreshWithin(ms: number): void {
    const due = Date.now() + ms;
    if (due >= this.#stateDue) return;
    this.#stateDue = due;
    if (this.#stateTimer !== null) clearTimeout(this.#stateTimer);
    this.#stateTimer = setTimeout(() => void this.refresh(), ms);
  }

  #reset(): void {
    this.stream.value?.close();
    this.stream.value = null;
    this.#pending = [];
    this.#highest = -1;
    this.#extentDue = 0;
    this.events.value = [];
  }
}
