import { expect, test, vi } from "vitest";

import { Api, ApiError, EngineAddress } from "./client";

const ENGINE = new EngineAddress("tally", "demo");

function apiAnswering(status: number, body: string, headers: Record<string, string> = {}) {
  const fetch = vi.fn((_path: string, _init: RequestInit) => Promise.resolve(new Response(body, { status, headers })));
  const onUnauthorised = vi.fn();
  return { api: new Api({ fetch, onUnauthorised }), fetch, onUnauthorised };
}

async function errorOf(call: Promise<unknown>): Promise<ApiError> {
  const thrown = await call.then(
    () => null,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ApiError);
  return thrown as ApiError;
}

test("a response is parsed into its value", async () => {
  const { api, fetch } = apiAnswering(
    200,
    '{"n":1,"t":2,"state":{"total":18446744073709551557},"next_due":null,"broken":[]}',
  );

  const view = await api.state(ENGINE, 1);

  expect(view.state).toEqual({ total: 18446744073709551557n });
  expect(fetch.mock.calls[0]?.[0]).toBe("/api/v1/tally/demo/state?at=1");
});

test("a server error keeps its code, message, details, status and request id", async () => {
  const { api } = apiAnswering(
    404,
    '{"error":{"code":"no_such_record","message":"There is no record 9","details":{"last_n":4}}}',
    {
      "X-Request-Id": "r-17",
    },
  );

  const error = await errorOf(api.state(ENGINE, 9));

  expect(error).toMatchObject({
    code: "no_such_record",
    message: "There is no record 9",
    status: 404,
    details: { last_n: 4 },
    requestId: "r-17",
  });
});

test("a response that is not JSON is reported as unreadable", async () => {
  const { api } = apiAnswering(502, "<html>Bad Gateway</html>");

  expect(await errorOf(api.schedulers())).toMatchObject({ code: "unreadable_answer", status: 502 });
});

test("an error body of unknown shape is still an error", async () => {
  const { api } = apiAnswering(500, '{"oops":true}');

  expect(await errorOf(api.schedulers())).toMatchObject({ code: "unreadable_answer", status: 500 });
});

test("a server that does not answer is unreachable", async () => {
  const api = new Api({
    fetch: () => Promise.reject(new TypeError("Failed to fetch")),
    onUnauthorised: () => undefined,
  });

  expect(await errorOf(api.schedulers())).toMatchObject({ code: "unreachable", status: 0 });
});

test("an aborted call stays an abort", async () => {
  const api = new Api({
    fetch: () => Promise.reject(new DOMException("aborted", "AbortError")),
    onUnauthorised: () => undefined,
  });

  await expect(api.schedulers()).rejects.toBeInstanceOf(DOMException);
});

test("401 triggers sign-in", async () => {
  const { api, onUnauthorised } = apiAnswering(
    401,
    '{"error":{"code":"unauthenticated","message":"A token is needed","details":{}}}',
  );

  await errorOf(api.schedulers());

  expect(onUnauthorised).toHaveBeenCalledOnce();
});

test("a failing readiness check is a response, not an error", async () => {
  const { api } = apiAnswering(503, '{"status":"not_ready","checks":[{"name":"disk","ok":false,"reason":"disk_low"}]}');

  expect(await api.readiness()).toEqual({
    status: "not_ready",
    checks: [{ name: "disk", ok: false, reason: "disk_low" }],
  });
});

test("a busy server without checks is an error", async () => {
  const { api } = apiAnswering(503, '{"error":{"code":"busy","message":"Too many requests","details":{}}}');

  expect(await errorOf(api.readiness())).toMatchObject({ code: "busy", status: 503 });
});

test("state-changing requests are application/json, with or without a body", async () => {
  const { api, fetch } = apiAnswering(200, "{}");

  await api.command(ENGINE, { type: "add", amount: 18446744073709551557n });
  await api.signOut();

  const [command, signOut] = fetch.mock.calls.map(([, init]) => init);
  expect(command).toMatchObject({ method: "POST", body: '{"type":"add","amount":18446744073709551557}' });
  expect(command?.headers).toMatchObject({ "content-type": "application/json" });
  expect(signOut?.headers).toMatchObject({ "content-type": "application/json" });
});

test("a token is sent in the body, never in the URL", async () => {
  const { api, fetch } = apiAnswering(200, '{"name":"ada","role":"viewer","tokens_required":true}');

  await api.signIn("secret");

  expect(fetch.mock.calls.map(([path]) => path).join()).not.toContain("secret");
  expect(fetch.mock.calls[0]?.[1].body).toBe('{"token":"secret"}');
});

test("names with unusual characters are escaped in URLs", () => {
  expect(new EngineAddress("a/b", "c?d").stream("5.0")).toBe("/api/v1/a%2Fb/c%3Fd/stream?after=5.0");
});

test("path parameters are filled in and null query parameters are left out", async () => {
  const { api, fetch } = apiAnswering(200, "{}");

  await api.get("/api/v1/playback/{player}/items/{ordinal}", { player: "the hall", ordinal: 7 }, { at: 3 });
  await api.get("/api/v1/actions/{world}/events", { world: "town" }, { upto: 9, after: "4.0", at: null });

  expect(fetch.mock.calls.map(([path]) => path)).toEqual([
    "/api/v1/playback/the%20hall/items/7?at=3",
    "/api/v1/actions/town/events?upto=9&after=4.0",
  ]);
});
