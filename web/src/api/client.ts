/** Typed HTTP client. Responses have the types of the server's OpenAPI document; every failure is an `ApiError`.
 *
 * Nothing else in the page calls `fetch`. Event streams are opened by `stream.ts` with the URLs built here.
 */

import type { Json, JsonObject } from "./json";
import { isObject, parseJson, writeJson } from "./json";
import type {
  Answers,
  ChoicesView,
  CommandResult,
  IncidentView,
  JournalView,
  MomentsView,
  MomentView,
  PostAnswers,
  Readiness,
  Reason,
  SchedulerList,
  SchedulerOneGate,
  SessionView,
  StateView,
} from "./types";

/** A failed request. `status` is 0 when there was no response. */
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

/** Convert any thrown value to an `ApiError`, so that one component can show it. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError("page_defect", thrown instanceof Error ? thrown.message : String(thrown));
}

/** Whether a request was aborted by the page; this is not shown as an error. */
function isAbort(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === "AbortError";
}

export interface Transport {
  readonly fetch: (path: string, init: RequestInit) => Promise<Response>;
  readonly onUnauthorised: () => void;
}

interface Answer {
  readonly status: number;
  readonly ok: boolean;
  readonly body: Json;
  readonly requestId: string | null;
}

/** The parameters in the braces of a path. */
export type PathParameters<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [name in Name]: string | number } & PathParameters<Rest>
  : object;

export type Query = Readonly<Record<string, string | number | null>>;

export class Api {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  schedulers(signal?: AbortSignal): Promise<SchedulerList> {
    return this.get("/api/v1/schedulers", {}, {}, signal);
  }

  /** Readiness is returned for 200 (ready) and 503 (not ready) alike. */
  async readiness(signal?: AbortSignal): Promise<Readiness> {
    const answer = await this.#send("GET", "/readyz", undefined, signal);
    if (isObject(answer.body) && "checks" in answer.body) return answer.body as unknown as Readiness;
    throw errorOf(answer);
  }

  session(): Promise<SessionView> {
    return this.get("/api/v1/session", {});
  }

  async signIn(token: string): Promise<SessionView> {
    await this.#call("POST", "/api/v1/session", { token });
    return this.session();
  }

  async signOut(): Promise<void> {
    await this.#call("DELETE", "/api/v1/session");
  }

  state(engine: EngineAddress, at: number | null = null, signal?: AbortSignal): Promise<StateView> {
    return this.#call("GET", `${engine.base}/state${queryString({ at })}`, undefined, signal);
  }

  journal(engine: EngineAddress, start: number, limit: number, signal?: AbortSignal): Promise<JournalView> {
    return this.#call("GET", `${engine.base}/journal${queryString({ start, limit })}`, undefined, signal);
  }

  /** The first and last moment of a journal and evenly spaced ones between them, `points` in all. */
  moments(engine: JournalAddress, points: number): Promise<MomentsView> {
    return this.#call("GET", `${engine.base}/moments${queryString({ points })}`);
  }

  /** The moment of a record, or the last one at or before an engine time or wall-clock time, and the moment after it. */
  moment(
    engine: JournalAddress,
    query: { readonly n: number } | { readonly t: number } | { readonly utc_ms: number },
  ): Promise<MomentView> {
    return this.#call("GET", `${engine.base}/moment${queryString({ ...query })}`);
  }

  /** The next incident after a record, or the last one before it. */
  incident(
    engine: JournalAddress,
    query: { readonly after: number } | { readonly before: number },
  ): Promise<IncidentView> {
    return this.#call("GET", `${engine.base}/incident${queryString({ ...query })}`);
  }

  /** GET a path of the OpenAPI document. `null` query parameters are left out. */
  get<Path extends keyof Answers>(
    path: Path,
    parameters: PathParameters<Path>,
    query: Query = {},
    signal?: AbortSignal,
  ): Promise<Answers[Path]> {
    return this.#call("GET", fillPath(path, parameters) + queryString(query), undefined, signal);
  }

  /** POST to a path of the OpenAPI document. `user` names the caller when there are no tokens. */
  post<Path extends keyof PostAnswers>(
    path: Path,
    parameters: PathParameters<Path>,
    body?: Json,
    user: string | null = null,
  ): Promise<PostAnswers[Path]> {
    return this.#call("POST", fillPath(path, parameters), body, undefined, user);
  }

  /** Set a gate of governed objects. `user` names the caller when there are no tokens. */
  setGate(gate: Json, user: string | null): Promise<SchedulerOneGate> {
    return this.#call("PUT", "/scheduler/gates", gate, undefined, user);
  }

  command(engine: EngineAddress, command: Json): Promise<CommandResult> {
    return this.#call("POST", `${engine.base}/commands`, command);
  }

  /** POST to a path below an engine; the response body is ignored. */
  async postTo(engine: EngineAddress, path: string, body: Json): Promise<void> {
    await this.#call("POST", `${engine.base}/${path}`, body);
  }

  /** The questions and commands an engine offers, now or after record `at`. */
  choices(engine: EngineAddress, at: number | null = null): Promise<ChoicesView> {
    return this.#call("GET", `${engine.base}/choices${atQuery(at)}`);
  }

  /** Answer a why-question, now or after record `at`. */
  why(engine: EngineAddress, question: Json, at: number | null = null): Promise<Reason> {
    return this.#call("POST", `${engine.base}/why${atQuery(at)}`, { question });
  }

  async #call<T>(method: string, path: string, body?: Json, signal?: AbortSignal, user?: string | null): Promise<T> {
    const answer = await this.#send(method, path, body, signal, user);
    if (!answer.ok) {
      if (answer.status === 401) this.#transport.onUnauthorised();
      throw errorOf(answer);
    }
    return answer.body as T;
  }

  async #send(
    method: string,
    path: string,
    body?: Json,
    signal?: AbortSignal,
    user: string | null = null,
  ): Promise<Answer> {
    const headers: Record<string, string> = { accept: "application/json" };
    if (user !== null) headers["x-pendula-user"] = encodeURIComponent(user);
    // The server accepts state-changing requests only as application/json, even without a body.
    if (method !== "GET") headers["content-type"] = "application/json";
    const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
    if (body !== undefined) init.body = writeJson(body);
    if (signal) init.signal = signal;
    let response: Response;
    let text: string;
    try {
      response = await this.#transport.fetch(path, init);
      text = await response.text();
    } catch (thrown) {
      if (isAbort(thrown)) throw thrown;
      throw new ApiError("unreachable", 'The server does not answer. Is "pendula serve" running?');
    }
    const requestId = response.headers.get("x-request-id");
    return { status: response.status, ok: response.ok, body: readBody(text, response.status, requestId), requestId };
  }
}

/** The base URL of a journal. */
export type JournalAddress = Pick<EngineAddress, "base">;

/** The URLs of one engine. */
export class EngineAddress {
  readonly scheduler: string;
  readonly engine: string;
  readonly base: string;

  constructor(scheduler: string, engine: string) {
    this.scheduler = scheduler;
    this.engine = engine;
    this.base = `/api/v1/${encodeURIComponent(scheduler)}/${encodeURIComponent(engine)}`;
  }

  /** The event stream, starting after the event `after`. */
  stream(after: string | null): string {
    return `${this.base}/stream${queryString({ after })}`;
  }
}

function fillPath(path: string, parameters: object): string {
  const values = new Map<string, unknown>(Object.entries(parameters));
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values.get(name))));
}

function queryString(query: Query): string {
  const parts = Object.entries(query).flatMap(([name, value]) =>
    value === null ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function readBody(text: string, status: number, requestId: string | null): Json {
  if (text === "") return null;
  try {
    return parseJson(text);
  } catch {
    throw new ApiError(
      "unreadable_answer",
      `The server answered ${status} with a body that is not JSON.`,
      status,
      {},
      requestId,
    );
  }
}

function atQuery(at: number | null): string {
  return at === null ? "" : `?at=${at}`;
}

function errorOf(answer: Answer): ApiError {
  // The simulator's actions return the error without the outer `error` member.
  const error = isObject(answer.body) ? (answer.body["error"] ?? answer.body) : undefined;
  if (!isObject(error) || typeof error["code"] !== "string") {
    return new ApiError(
      "unreadable_answer",
      `The server answered ${answer.status} without an error code.`,
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
