/** The typed road to the server: every answer is a value of the shape its OpenAPI document says, every failure an
 * `ApiError`.
 *
 * Nothing else in the page calls `fetch`, except `stream.ts` to learn why a stream was refused. Event streams are opened
 * by `stream.ts` with the addresses made here.
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

/** What the braces of a path stand for, by name. */
export type Names<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [name in Name]: string | number } & Names<Rest>
  : object;

export type Query = Readonly<Record<string, string | number | null>>;

export class Api {
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  schedulers(signal?: AbortSignal): Promise<SchedulerList> {
    return this.get("/api/v1/schedulers", {}, {}, signal);
  }

  /** Readiness is an answer whether it is green (200) or red (503). */
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
    return this.#call("GET", `${engine.base}/state${asked({ at })}`, undefined, signal);
  }

  journal(engine: EngineAddress, start: number, limit: number, signal?: AbortSignal): Promise<JournalView> {
    return this.#call("GET", `${engine.base}/journal${asked({ start, limit })}`, undefined, signal);
  }

  /** The first moment of an engine's journal, the last, and others evenly between them. */
  moments(engine: JournalAddress, points: number): Promise<MomentsView> {
    return this.#call("GET", `${engine.base}/moments${asked({ points })}`);
  }

  /** The moment of a record, or the last one not after a time, of the engine or of the wall; and the one that follows it. */
  moment(
    engine: JournalAddress,
    query: { readonly n: number } | { readonly t: number } | { readonly utc_ms: number },
  ): Promise<MomentView> {
    return this.#call("GET", `${engine.base}/moment${asked({ ...query })}`);
  }

  /** What went wrong next after a record, or last before one. */
  incident(
    engine: JournalAddress,
    query: { readonly after: number } | { readonly before: number },
  ): Promise<IncidentView> {
    return this.#call("GET", `${engine.base}/incident${asked({ ...query })}`);
  }

  /** What a path of the server's own table answers; what is `null` in the query is left out. */
  get<Path extends keyof Answers>(
    path: Path,
    names: Names<Path>,
    query: Query = {},
    signal?: AbortSignal,
  ): Promise<Answers[Path]> {
    return this.#call("GET", filled(path, names) + asked(query), undefined, signal);
  }

  /** What a path of the server's own table answers to a POST, with or without a body. */
  post<Path extends keyof PostAnswers>(
    path: Path,
    names: Names<Path>,
    body?: Json,
    user: string | null = null,
  ): Promise<PostAnswers[Path]> {
    return this.#call("POST", filled(path, names), body, undefined, user);
  }

  /** Give a gate of governed objects its word; `user` is who does it, where no token says so. */
  setGate(wish: Json, user: string | null): Promise<SchedulerOneGate> {
    return this.#call("PUT", "/scheduler/gates", wish, undefined, user);
  }

  command(engine: EngineAddress, command: Json): Promise<CommandResult> {
    return this.#call("POST", `${engine.base}/commands`, command);
  }

  /** Something that an engine's scheduler takes below its name, whatever it answers. */
  async tell(engine: EngineAddress, path: string, body: Json): Promise<void> {
    await this.#call("POST", `${engine.base}/${path}`, body);
  }

  /** What can be asked of an engine and sent to it, as it is or as it was after record `at`. */
  choices(engine: EngineAddress, at: number | null = null): Promise<ChoicesView> {
    return this.#call("GET", `${engine.base}/choices${asOf(at)}`);
  }

  /** Why, as the engine is, or as it was after record `at`. */
  why(engine: EngineAddress, question: Json, at: number | null = null): Promise<Reason> {
    return this.#call("POST", `${engine.base}/why${asOf(at)}`, { question });
  }

  async #call<T>(method: string, path: string, body?: Json, signal?: AbortSignal, user?: string | null): Promise<T> {
    const answer = await this.#send(method, path, body, signal, user);
    if (!answer.ok) {
      if (answer.status === 401) this.#wire.onUnauthorised();
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

/** Where the moments of a journal are asked for. */
export type JournalAddress = Pick<EngineAddress, "base">;

/** Where one engine of one scheduler is reached. */
export class EngineAddress {
  readonly scheduler: string;
  readonly engine: string;
  readonly base: string;

  constructor(scheduler: string, engine: string) {
    this.scheduler = scheduler;
    this.engine = engine;
    this.base = `/api/v1/${encodeURIComponent(scheduler)}/${encodeURIComponent(engine)}`;
  }

  /** The event stream, from after the event `after` on. */
  stream(after: string | null): string {
    return `${this.base}/stream${asked({ after })}`;
  }
}

function filled(path: string, names: object): string {
  const values = new Map<string, unknown>(Object.entries(names));
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values.get(name))));
}

function asked(query: Query): string {
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
      `The server answered ${status} with something that is not JSON.`,
      status,
      {},
      requestId,
    );
  }
}

function asOf(at: number | null): string {
  return at === null ? "" : `?at=${at}`;
}

function errorOf(answer: Answer): ApiError {
  // Actions in the simulator are refused without a frame around the refusal.
  const error = isObject(answer.body) ? (answer.body["error"] ?? answer.body) : undefined;
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
