/** The typed road to the server: every answer is a value of a known shape, every failure an `ApiError`.
 *
 * Nothing else in the page calls `fetch`, except `stream.ts` to learn why a stream was refused. Event streams are opened by `stream.ts` with the addresses made here.
 */

import type { Json, JsonObject } from "./json";
import { isObject, parseJson, writeJson } from "./json";

export interface Reason {
  readonly code: string;
  readonly sentence: string;
  readonly facts: JsonObject;
  readonly because: readonly Reason[];
}

export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly details: JsonObject;
}

export interface EngineSummary {
  readonly name: string;
  readonly time_unit: string;
  readonly now: number;
  readonly commands: number;
  readonly broken: string | null;
}

export type RoomState = "ready" | "starting" | "broken";

export interface Room {
  readonly name: string;
  readonly title: string;
  readonly sentence: string;
  readonly state: RoomState;
  readonly reason: Reason | null;
  readonly engines: readonly EngineSummary[];
}

export interface RoomList {
  readonly version: string;
  readonly demo: boolean;
  readonly rooms: readonly Room[];
}

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly reason: string | Reason | null;
}

export interface Readiness {
  readonly status: "ready" | "not_ready";
  readonly checks: readonly Check[];
}

export type Role = "viewer" | "operator" | "admin";

export interface Session {
  readonly name: string;
  readonly role: Role;
  readonly tokens_required: boolean;
}

export interface StateView {
  readonly n: number;
  readonly t: number;
  readonly state: Json;
  readonly next_due: number | null;
  readonly broken: readonly string[];
}

export interface JournalRecord {
  readonly n: number;
  readonly t: number;
  readonly kind: string;
  readonly body: Json;
}

export interface JournalPart {
  readonly records: readonly JournalRecord[];
  readonly first_n: number;
  readonly last_n: number;
  readonly snapshots: readonly (readonly [number, number])[];
}

export interface CommandResult {
  readonly n: number;
  readonly events: readonly Json[];
  readonly answer: Json;
  readonly refusal: Refusal | null;
}

/** What went wrong with a call. `status` is 0 when no answer came at all. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;
  readonly details: JsonObject;
  readonly requestId: string | null;

  constructor(code: string, message: string, status = 0, details: JsonObject = {}, requestId: string | null = null) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.status = status;
    this.details = details;
    this.requestId = requestId;
  }
}

/** Any thrown value as an `ApiError`, so that one component shows them all. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError("page_defect", thrown instanceof Error ? thrown.message : String(thrown));
}

/** True for the error that an aborted call ends with: nobody waits for its answer any more. */
function isAbort(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === "AbortError";
}

export interface Wire {
  readonly fetch: (path: string, init: RequestInit) => Promise<Response>;
  readonly onUnauthorised: () => void;
}

interface Answer {
  readonly status: number;
  readonly ok: boolean;
  readonly body: Json;
  readonly requestId: string | null;
}

export class Api {
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  rooms(signal?: AbortSignal): Promise<RoomList> {
    return this.#call("GET", "/api/v1/rooms", undefined, signal);
  }

  /** Readiness is an answer whether it is green (200) or red (503). */
  async readiness(signal?: AbortSignal): Promise<Readiness> {
    const answer = await this.#send("GET", "/readyz", undefined, signal);
    if (isObject(answer.body) && "checks" in answer.body) return answer.body as unknown as Readiness;
    throw errorOf(answer);
  }

  session(): Promise<Session> {
    return this.#call("GET", "/api/v1/session");
  }

  async signIn(token: string): Promise<Session> {
    await this.#call("POST", "/api/v1/session", { token });
    return this.session();
  }

  async signOut(): Promise<void> {
    await this.#call("DELETE", "/api/v1/session");
  }

  state(engine: EngineAddress, at: number | null = null, signal?: AbortSignal): Promise<StateView> {
    return this.#call("GET", `${engine.base}/state${at === null ? "" : `?at=${at}`}`, undefined, signal);
  }

  journal(engine: EngineAddress, start: number, limit: number, signal?: AbortSignal): Promise<JournalPart> {
    return this.#call("GET", `${engine.base}/journal?start=${start}&limit=${limit}`, undefined, signal);
  }

  /** What only the engines of one room tell, at a path below their address. */
  read<T>(engine: EngineAddress, path: string, signal?: AbortSignal): Promise<T> {
    return this.#call("GET", `${engine.base}/${path}`, undefined, signal);
  }

  command(engine: EngineAddress, command: Json): Promise<CommandResult> {
    return this.#call("POST", `${engine.base}/commands`, command);
  }

  why(engine: EngineAddress, question: Json): Promise<Reason> {
    return this.#call("POST", `${engine.base}/why`, { question });
  }

  async #call<T>(method: string, path: string, body?: Json, signal?: AbortSignal): Promise<T> {
    const answer = await this.#send(method, path, body, signal);
    if (!answer.ok) {
      if (answer.status === 401) this.#wire.onUnauthorised();
      throw errorOf(answer);
    }
    return answer.body as T;
  }

  async #send(method: string, path: string, body?: Json, signal?: AbortSignal): Promise<Answer> {
    const headers: Record<string, string> = { accept: "application/json" };
    // The server takes state-changing calls only as application/json, with or without a body.
    if (method !== "GET") headers["content-type"] = "application/json";
    const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
    if (body !== undefined) init.body = writeJson(body);
    if (signal) init.signal = signal;
    let response: Response;
    let text: string;
    try {
      response = await this.#wire.fetch(path, init);
      text = await response.text();
    } catch (thrown) {
      if (isAbort(thrown)) throw thrown;
      throw new ApiError("unreachable", 'The server does not answer. Is "pendula serve" running?');
    }
    const requestId = response.headers.get("x-request-id");
    return { status: response.status, ok: response.ok, body: readBody(text, response.status, requestId), requestId };
  }
}

/** Where one engine of one room is reached. */
export class EngineAddress {
  readonly room: string;
  readonly engine: string;
  readonly base: string;

  constructor(room: string, engine: string) {
    this.room = room;
    this.engine = engine;
    this.base = `/api/v1/${encodeURIComponent(room)}/${encodeURIComponent(engine)}`;
  }

  /** The event stream, from after the event `after` on. */
  stream(after: string | null): string {
    return `${this.base}/stream${after === null ? "" : `?after=${encodeURIComponent(after)}`}`;
  }
}

function readBody(text: string, status: number, requestId: string | null): Json {
  if (text === "") return null;
  try {
    return parseJson(text);
  } catch {
    throw new ApiError(
      "unreadable_answer",
      `The server answered ${status} with something that is not JSON.`,
      status,
      {},
      requestId,
    );
  }
}

function errorOf(answer: Answer): ApiError {
  const error = isObject(answer.body) ? answer.body["error"] : undefined;
  if (!isObject(error) || typeof error["code"] !== "string") {
    return new ApiError(
      "unreadable_answer",
      `The server answered ${answer.status} without saying why.`,
      answer.status,
      {},
      answer.requestId,
    );
  }
  const { code, message, details } = error;
  return new ApiError(
    code,
    typeof message === "string" ? message : code,
    answer.status,
    isObject(details) ? details : {},
    answer.requestId,
  );
}
