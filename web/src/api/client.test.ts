import { expect, test, vi } from "vitest";

import { Api, ApiError, EngineAddress } from "./client";

const ENGINE = new EngineAddress("tally", "demo");

function answering(status: number, body: string, headers: Record<string, string> = {}) {
  const fetch = vi.fn((_path: string, _init: RequestInit) => Promise.resolve(new Response(body, { status, headers })));
  const onUnauthorised = vi.fn();
  return { api: new Api({ fetch, onUnauthorised }), fetch, onUnauthorised };
}

async function failureOf(call: Promise<unknown>): Promise<ApiError> {
  const thrown = await call.then(
    () => null,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ApiError);
  return thrown as ApiError;
}

test("an answer comes back as its value", async () => {
  const { api, fetch } = answering(
    200,
    '{"n":1,"t":2,"state":{"total":18446744073709551557},"next_due":null,"broken":[]}',
  );

  const view = await api.state(ENGINE, 1);

  expect(view.state).toEqual({ total: 18446744073709551557n });
  expect(fetch.mock.calls[0]?.[0]).toBe("/api/v1/tally/demo/state?at=1");
});

test("an error of the server keeps its code, message, details, status and request id", async () => {
  const { api } = answering(
    404,
    '{"error":{"code":"no_such_record","message":"There is no record 9","details":{"last_n":4}}}',
    {
      "X-Request-Id": "r-17",
    },
  );

  const error = await failureOf(api.state(ENGINE, 9));

  expect(error).toMatchObject({
    code: "no_such_record",
    message: "There is no record 9",
    status: 404,
    details: { last_n: 4 },
    requestId: "r-17",
  });
});

test("an answer that is not JSON is an error that says so", async () => {
  const { api } = answering(502, "<html>Bad Gateway</html>");

  expect(await failureOf(api.schedulers())).toMatchObject({ code: "unreadable_answer", status: 502 });
});

test("an error without our form is still an error", async () => {
  const { api } = answering(500, '{"oops":true}');

  expect(await failureOf(api.schedulers())).toMatchObject({ code: "unreadable_answer", status: 500 });
});

test("a server that does not answer is unreachable", async () => {
  const api = new Api({
    fetch: () => Promise.reject(new TypeError("Failed to fetch")),
    onUnauthorised: () => undefined,
  });

  expect(await failureOf(api.schedulers())).toMatchObject({ code: "unreachable", status: 0 });
});

test("an aborted call stays an abort", async () => {
  const api = new Api({
    fetch: () => Promise.reject(new DOMException("aborted", "AbortError")),
    onUnauthorised: () => undefined,
  });

  await expect(api.schedulers()).rejects.toBeInstanceOf(DOMException);
});

test("401 asks for signing in", async () => {
  const { api, onUnauthorised } = answering(
    401,
    '{"error":{"code":"unauthenticated","message":"A token is needed","details":{}}}',
  );

  await failureOf(api.schedulers());

  expect(onUnauthorised).toHaveBeenCalledOnce();
});

test("red readiness is an answer, not an error", async () => {
  const { api } = answering(503, '{"status":"not_ready","checks":[{"name":"disk","ok":false,"reason":"disk_low"}]}');

  expect(await api.readiness()).toEqual({
    status: "not_ready",
    checks: [{ name: "disk", ok: false, reason: "disk_low" }],
  });
});

test("a busy server without checks is an error", async () => {
  const { api } = answering(503, '{"error":{"code":"busy","message":"Too many requests","details":{}}}');

  expect(await failureOf(api.readiness())).toMatchObject({ code: "busy", status: 503 });
});

test("state-changing calls are application/json, with a body or without", async () => {
  const { api, fetch } = answering(200, "{}");

  await api.command(ENGINE, { type: "add", amount: 18446744073709551557n });
  await api.signOut();

  const [command, signOut] = fetch.mock.calls.map(([, init]) => init);
  expect(command).toMatchObject({ method: "POST", body: '{"type":"add","amount":18446744073709551557}' });
  expect(command?.headers).toMatchObject({ "content-type": "application/json" });
  expect(signOut?.headers).toMatchObject({ "content-type": "application/json" });
});

test("a token travels in the body and never in an address", async () => {
  const { api, fetch } = answering(200, '{"name":"ada","role":"viewer","tokens_required":true}');

  await api.signIn("secret");

  expect(fetch.mock.calls.map(([path]) => path).join()).not.toContain("secret");
  expect(fetch.mock.calls[0]?.[1].body).toBe('{"token":"secret"}');
});

test("names with unusual characters cannot leave their place in an address", () => {
  expect(new EngineAddress("a/b", "c?d").stream("5.0")).toBe("/api/v1/a%2Fb/c%3Fd/stream?after=5.0");
});

test("a path of the server's table is filled with names, and a query with what is not null", async () => {
  const { api, fetch } = answering(200, "{}");

  await api.get("/api/v1/playback/{player}/items/{ordinal}", { player: "the hall", ordinal: 7 }, { at: 3 });
  await api.get("/api/v1/actions/{world}/events", { world: "town" }, { upto: 9, after: "4.0", at: null });

  expect(fetch.mock.calls.map(([path]) => path)).toEqual([
    "/api/v1/playback/the%20hall/items/7?at=3",
    "/api/v1/actions/town/events?upto=9&after=4.0",
  ]);
});
