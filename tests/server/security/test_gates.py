"""The gates before the routes: each one passes valid requests and names what it refuses."""

import asyncio
import io
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from pendula.server.errors import BodyTooLarge, HostNotAllowed, InvalidHead, SlowRequest, TooManyRequests
from pendula.server.security import gates
from pendula.server.security.gates import Requests, bounded_body, check_host, host_allowed, split_host
from pendula.server.security.identity import Role, TokenStore, is_loopback
from pendula.server.settings import Settings
from tests.server.living import BASE, JSON, ORIGIN, client_of, code_of, running

pytestmark = pytest.mark.anyio
ADD = {"type": "add", "amount": 1}
POST: Scope = {"type": "http", "method": "POST", "headers": []}
REQUEST: Scope = {"type": "http", "path": "/api/v1/schedulers"}


async def test_gates_run_in_a_fixed_order(settings: Settings) -> None:
    TokenStore(settings.data).new("admin", Role.ADMIN)
    wrong = {"host": "evil.example", "origin": "http://evil.example", "content-type": "text/html"}
    wrong |= {"content-length": "9999999999", "authorization": "Bearer nonsense"}
    codes = []
    for most, mended in ((0, ["", "host", "origin", "content-type", "content-length"]), (1, [""])):
        limited = msgspec.structs.replace(settings, limits={"requests": most})
        async with running(limited) as app, client_of(app) as client:
            for name in mended:
                wrong.pop(name, None)
                response = await client.post(f"{BASE}/commands", content=b"{}", headers={**JSON, **wrong})
                codes.append(code_of(response))

    assert codes == [
        "host_not_allowed",
        "foreign_origin",
        "wrong_content_type",
        "body_too_large",
        "too_many_requests",
        "not_identified",
    ]


# Host


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "LOCALHOST:8765", "[::1]:8765", "127.8.8.8:8765"])
async def test_loopback_with_our_port_is_our_host(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/api/v1/schedulers", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.evil.example:8765",
        "localhost.evil.example:8765",
        "",
        ":8765",
        "127.0.0.1:8765@evil.example",
        "127.0.0.1:8765 evil.example",
        "[::1",
        "[::1:8765",
        "::1]:8765",
        "127.0.0.1]:8765",
        "[127.0.0.1]:8765",
        "[[::1]]:8765",
        "[]:8765",
        "::1",
        "127.0.0.1:+8765",
        "127.0.0.1:\xb2",
    ],
)
async def test_another_host_is_refused_for_reads_and_streams_too(client: httpx.AsyncClient, host: str) -> None:
    for path in ("/", "/api/v1/schedulers", f"{BASE}/stream", "/healthz"):
        response = await client.get(path, headers=[(b"host", host.encode("latin-1"))])

        assert (response.status_code, code_of(response)) == (421, "host_not_allowed")


async def test_an_allowed_host_matches_with_its_port_or_any_port(settings: Settings) -> None:
    allowed = msgspec.structs.replace(settings, allowed_hosts=("pendula.example", "other.example:9000"))
    async with running(allowed) as app, client_of(app) as client:
        for host, status in [
            ("pendula.example", 200),
            ("Pendula.Example:1234", 200),
            ("other.example:9000", 200),
            ("other.example:9001", 421),
            ("other.example", 421),
            ("sub.pendula.example", 421),
        ]:
            assert (await client.get("/healthz", headers={"host": host})).status_code == status, host


def test_a_port_can_be_omitted_only_if_it_is_the_default() -> None:
    assert host_allowed("localhost", "http", 80, Settings())
    assert host_allowed("localhost", "https", 443, Settings())
    assert not host_allowed("localhost", "https", 80, Settings())


def test_the_listening_address_is_our_host_but_a_wildcard_is_not() -> None:
    assert host_allowed("192.168.0.5:80", "http", 80, Settings(host="192.168.0.5"))
    assert not host_allowed("0.0.0.0:80", "http", 80, Settings(host="0.0.0.0"))
    assert split_host("[::1]:80") == ("::1", 80)


def test_two_host_headers_are_refused(settings: Settings) -> None:
    scope = {
        "type": "http",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "headers": [(b"host", b"localhost"), (b"host", b"evil.example")],
    }
    with pytest.raises(HostNotAllowed):
        check_host(scope, Headers(scope=scope), settings)


# Origin


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://127.0.0.1:8765"},
        {"origin": "http://localhost:8765.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
        {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
    ],
)
async def test_a_cross_origin_page_changes_nothing(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for method, path in [("POST", f"{BASE}/commands"), ("DELETE", "/api/v1/session"), ("PUT", "/nowhere")]:
        response = await client.request(method, path, json=ADD, headers=headers)

        assert (response.status_code, code_of(response)) == (403, "foreign_origin")
    assert (await client.get(f"{BASE}/state")).json()["state"]["total"] == 0


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": ORIGIN, "sec-fetch-site": "same-origin"},
        {"origin": "http://localhost:8765", "host": "localhost:8765"},
        {"sec-fetch-site": "none"},
    ],
)
async def test_our_page_and_programs_can_change_things(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    assert (await client.post(f"{BASE}/commands", json=ADD, headers=headers)).status_code == 200


PAGE = "http://localhost:5173"


@pytest.mark.req("SIM-API-22")
@pytest.mark.parametrize("site", ["same-site", "cross-site", "same-origin", None])
async def test_a_page_from_an_allowed_origin_can_change_things(settings: Settings, site: str | None) -> None:
    allowing = msgspec.structs.replace(settings, allowed_origins=(PAGE,))
    headers = {"origin": PAGE} | ({} if site is None else {"sec-fetch-site": site})
    async with running(allowing) as app, client_of(app) as client:
        response = await client.post(f"{BASE}/commands", json=ADD, headers=headers)

    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == PAGE
    assert response.headers["access-control-allow-credentials"] == "true"
    assert "Origin" in response.headers["vary"]


@pytest.mark.req("SIM-API-22")
@pytest.mark.parametrize("origin", ["http://localhost:5174", "https://localhost:5173", "http://evil.example"])
async def test_a_refused_page_learns_which_origin_to_allow(settings: Settings, origin: str) -> None:
    allowing = msgspec.structs.replace(settings, allowed_origins=(PAGE,))
    async with running(allowing) as app, client_of(app) as client:
        plain = await client.post(f"{BASE}/commands", json=ADD, headers={"origin": origin})
        fetched = await client.post(
            f"{BASE}/commands", json=ADD, headers={"origin": origin, "sec-fetch-site": "same-site"}
        )

    for response in (plain, fetched):
        assert (response.status_code, code_of(response)) == (403, "foreign_origin")
        assert f"--allowed-origin {origin}" in response.json()["error"]["message"]
        assert "access-control-allow-origin" not in response.headers


async def test_a_preflight_request_lists_what_an_allowed_page_can_send(settings: Settings) -> None:
    allowing = msgspec.structs.replace(settings, allowed_origins=(PAGE,))
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    async with running(allowing) as app, client_of(app) as client:
        allowed = await client.options(f"{BASE}/commands", headers={"origin": PAGE, **asking})
        foreign = await client.options(f"{BASE}/commands", headers={"origin": "http://evil.example", **asking})

    assert allowed.status_code == 204
    assert "content-type" in allowed.headers["access-control-allow-headers"]
    assert foreign.status_code == 403
    assert "--allowed-origin http://evil.example" in foreign.json()["error"]["message"]
    assert "access-control-allow-origin" not in foreign.headers


async def test_an_allowed_page_can_read_the_reason_of_a_refusal(settings: Settings) -> None:
    allowing = msgspec.structs.replace(settings, allowed_origins=(PAGE,))
    async with running(allowing) as app, client_of(app) as client:
        response = await client.get("/api/v1/nothing", headers={"origin": PAGE})

    assert (response.status_code, response.headers["access-control-allow-origin"]) == (404, PAGE)


async def test_only_a_request_with_a_body_needs_a_content_type(client: httpx.AsyncClient) -> None:
    empty = await client.post("/api/v1/nothing")
    typed = await client.post("/api/v1/nothing", headers={"content-type": "text/plain"})
    full = await client.post("/api/v1/nothing", content=b"{}")

    assert (empty.status_code, typed.status_code, full.status_code) == (404, 415, 415)


async def test_no_response_allows_another_origin(client: httpx.AsyncClient) -> None:
    read = await client.get("/api/v1/schedulers", headers={"origin": "http://evil.example"})
    asked = await client.options(
        f"{BASE}/commands", headers={"origin": "http://evil.example", "access-control-request-method": "POST"}
    )

    assert asked.status_code == 403
    for response in (read, asked):
        assert not [name for name in response.headers if name.startswith("access-control-")]


# Content type


@pytest.mark.parametrize("given", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
async def test_a_body_other_than_json_changes_nothing(client: httpx.AsyncClient, given: str | None) -> None:
    headers = {} if given is None else {"content-type": given}
    for method, path in [("POST", f"{BASE}/commands"), ("DELETE", "/api/v1/session")]:
        response = await client.request(method, path, content=b'{"type":"add","amount":1}', headers=headers)

        assert (response.status_code, code_of(response)) == (415, "wrong_content_type")


async def test_a_json_content_type_can_name_its_charset(client: httpx.AsyncClient) -> None:
    headers = {"content-type": "Application/JSON; charset=utf-8"}

    response = await client.post(f"{BASE}/commands", content=b'{"type":"add","amount":1}', headers=headers)

    assert response.status_code == 200


# Size


async def test_a_body_declared_too_large_is_refused_before_it_arrives(client: httpx.AsyncClient) -> None:
    headers = JSON | {"content-length": str(9 * 1024 * 1024)}

    response = await client.post(f"{BASE}/commands", content=b"{}", headers=headers)

    assert (response.status_code, code_of(response)) == (413, "body_too_large")
    assert response.headers["connection"] == "close"


async def test_a_body_of_undeclared_size_is_refused_while_it_arrives(settings: Settings) -> None:
    small = msgspec.structs.replace(settings, limits={"body_bytes": 1000})
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100_000:
            sent += 100
            yield b"x" * 100

    async with running(small) as app, client_of(app) as client:
        response = await client.post(f"{BASE}/commands", content=endless(), headers=JSON)

    assert (response.status_code, code_of(response)) == (413, "body_too_large")
    assert sent <= 1200


@pytest.mark.parametrize("declared", [True, False])
async def test_the_body_of_a_sign_in_is_at_most_4_kib(client: httpx.AsyncClient, declared: bool) -> None:
    async def slowly(size: int) -> AsyncIterator[bytes]:
        for _ in range(size // 64):
            yield b" " * 64

    large, small = (b" " * size if declared else slowly(size) for size in (4096 + 64, 4096))

    refused = await client.post("/api/v1/session", content=large, headers=JSON)
    read = await client.post("/api/v1/session", content=small, headers=JSON)

    assert (refused.status_code, code_of(refused)) == (413, "body_too_large")
    assert refused.json()["error"]["details"]["allowed"] == 4096
    assert read.status_code == 422


async def test_a_body_of_just_the_allowed_size_passes(settings: Settings) -> None:
    body = b'{"type":"add","amount":1}'
    exact = msgspec.structs.replace(settings, limits={"body_bytes": len(body)})
    async with running(exact) as app, client_of(app) as client:
        assert (await client.post(f"{BASE}/commands", content=body, headers=JSON)).status_code == 200
        assert (await client.post(f"{BASE}/commands", content=body + b" ", headers=JSON)).status_code == 413


async def test_a_body_that_stops_arriving_times_out() -> None:
    messages = [{"type": "http.request", "body": b"x", "more_body": True}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError("it never comes")

    bounded = bounded_body(POST, Headers(scope=POST), receive, 10, 0)
    await bounded()

    with pytest.raises(SlowRequest):
        await bounded()


async def test_reading_a_body_above_its_limit_raises() -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"xx", "more_body": False}

    bounded = bounded_body(POST, Headers(scope=POST), receive, 1, 60)

    with pytest.raises(BodyTooLarge):
        await bounded()


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("declared", [{"content-length": "5"}, {"transfer-encoding": "chunked"}])
def test_a_call_that_only_reads_has_no_body(method: str, declared: dict[str, str]) -> None:
    with pytest.raises(InvalidHead):
        bounded_body({"type": "http", "method": method}, Headers(declared), _never_receive, 10, 60)


async def test_a_body_declared_empty_is_no_body(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/v1/schedulers", headers={"content-length": "0"})).status_code == 200


# Requests


def test_a_request_above_the_limit_is_refused_and_the_others_continue() -> None:
    requests = Requests(2)

    with requests.slot(REQUEST), requests.slot(REQUEST):
        with pytest.raises(TooManyRequests), requests.slot(REQUEST):
            pass
        with requests.slot({"type": "http", "path": "/healthz"}):
            assert requests.answering == 3

    assert requests.answering == 0


def test_a_request_that_becomes_a_stream_frees_its_place() -> None:
    requests = Requests(1)
    stream: Scope = {"type": "http", "path": "/stream"}

    with requests.slot(stream):
        stream["state"]["slot"].release()
        assert requests.answering == 0

    assert requests.answering == 0


# Identity


async def test_without_tokens_a_caller_on_this_machine_is_the_operator_local(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/v1/session")).json() == {
        "name": "local",
        "role": "operator",
        "tokens_required": False,
    }

    n = (await client.post(f"{BASE}/commands", json=ADD)).json()["n"]

    records = (await client.get(f"{BASE}/journal", params={"start": n, "limit": 1})).json()["records"]
    assert records[0]["body"]["meta"]["by"] == "local"


async def test_without_tokens_remote_callers_are_unauthenticated(settings: Settings) -> None:
    async with running(settings) as app, client_of(app, caller="192.168.0.9") as client:
        response = await client.get("/api/v1/schedulers")

        assert (response.status_code, code_of(response)) == (401, "not_identified")
        assert response.headers["www-authenticate"].startswith("Bearer")


async def test_behind_a_proxy_no_caller_is_local(settings: Settings) -> None:
    proxied = msgspec.structs.replace(settings, behind_proxy=True)
    async with running(proxied) as app, client_of(app) as client:
        assert (await client.get("/api/v1/schedulers")).status_code == 401
        assert (await client.get("/api/v1/schedulers", headers={"x-forwarded-for": "127.0.0.1"})).status_code == 401


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via"])
async def test_behind_an_undeclared_proxy_no_caller_is_local(client: httpx.AsyncClient, header: str) -> None:
    for path in ("/api/v1/schedulers", "/api/v1/session", f"{BASE}/stream"):
        response = await client.get(path, headers={header: "127.0.0.1"})

        assert (response.status_code, code_of(response)) == (401, "not_identified")
        assert "--behind-proxy" in response.json()["error"]["message"]


async def test_tokens_pass_through_an_undeclared_proxy(settings: Settings) -> None:
    _, secret = TokenStore(settings.data).new("shift", "operator")
    async with running(settings) as app, client_of(app) as client:
        headers = {"authorization": f"Bearer {secret}", "via": "1.1 proxy"}

        assert (await client.get("/api/v1/schedulers", headers=headers)).status_code == 200


async def test_with_a_token_configured_every_caller_needs_one(settings: Settings) -> None:
    TokenStore(settings.data).new("guest", "viewer")
    async with running(settings) as app, client_of(app) as client:
        for path in (
            "/api/v1/schedulers",
            f"{BASE}/state",
            f"{BASE}/stream",
            "/metrics",
            "/api/v1/session",
            "/nowhere",
        ):
            assert (await client.get(path)).status_code == 401, path
        for path in ("/", "/healthz", "/readyz", "/openapi.json"):
            assert (await client.get(path)).status_code == 200, path


async def test_a_bearer_token_gives_its_name_and_role(settings: Settings) -> None:
    _, secret = TokenStore(settings.data).new("shift", "operator")
    async with running(settings) as app, client_of(app, caller="10.1.1.1") as client:
        answer = await client.get("/api/v1/session", headers={"authorization": f"Bearer {secret}"})

        assert answer.json() == {"name": "shift", "role": "operator", "tokens_required": True}


@pytest.mark.parametrize("offered", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic dXNlcjpwYXNz", "Bearer \xff"])
async def test_a_wrong_token_is_refused_even_where_none_is_needed(client: httpx.AsyncClient, offered: str) -> None:
    for path in ("/api/v1/schedulers", "/healthz"):
        response = await client.get(path, headers=[(b"authorization", offered.encode("latin-1"))])

        assert (response.status_code, code_of(response)) == (401, "not_identified")


async def test_a_secret_in_a_url_is_ignored(settings: Settings) -> None:
    _, secret = TokenStore(settings.data).new("shift", "operator")
    async with running(settings) as app, client_of(app) as client:
        for name in ("token", "access_token", "authorization"):
            assert (await client.get("/api/v1/schedulers", params={name: secret})).status_code == 401


async def test_a_token_created_while_the_server_runs_makes_tokens_mandatory(settings: Settings) -> None:
    async with running(settings) as app, client_of(app) as client:
        assert (await client.get("/api/v1/schedulers")).status_code == 200

        TokenStore(settings.data).new("guest", "viewer")

        assert (await client.get("/api/v1/schedulers")).status_code == 401


async def test_an_unreadable_token_file_refuses_every_caller(settings: Settings, tmp_path: Any) -> None:
    _, secret = TokenStore(settings.data).new("shift", "admin")
    async with running(settings) as app, client_of(app) as client:
        (tmp_path / "data" / "tokens.json").write_text("{")

        response = await client.get("/api/v1/schedulers", headers={"authorization": f"Bearer {secret}"})

        assert (response.status_code, code_of(response)) == (503, "tokens_unreadable")
        assert str(tmp_path) not in response.text
        assert response.json()["error"]["details"] == {"file": "tokens.json"}


@pytest.mark.parametrize("offered", [{}, {"authorization": "Bearer x"}, {"cookie": "pendula_session=x"}])
async def test_an_unreadable_token_file_leaves_health_and_the_page_open(
    settings: Settings, tmp_path: Any, offered: dict[str, str]
) -> None:
    TokenStore(settings.data).new("shift", "admin")
    async with running(settings) as app, client_of(app) as client:
        (tmp_path / "data" / "tokens.json").write_text("{")

        for path, status in [("/", 200), ("/healthz", 200), ("/openapi.json", 200), ("/readyz", 503)]:
            assert (await client.get(path, headers=offered)).status_code == status, path
        checks = (await client.get("/readyz", headers=offered)).json()["checks"]
        assert [check["name"] for check in checks if not check["ok"]] == ["tokens"]


async def test_file_paths_appear_in_the_log_only(settings: Settings, tmp_path: Any, quiet_logs: io.StringIO) -> None:
    TokenStore(settings.data).new("shift", "admin")
    async with running(settings) as app, client_of(app) as client:
        (tmp_path / "data" / "tokens.json").write_text("{")
        answers = [
            await client.get("/api/v1/schedulers"),
            await client.get("/readyz"),
            await client.post("/api/v1/session", json={"token": "x"}),
        ]

    assert not [answer.text for answer in answers if str(tmp_path) in answer.text]
    assert str(tmp_path / "data" / "tokens.json") in quiet_logs.getvalue()


async def test_a_browser_exchanges_its_token_for_a_cookie(settings: Settings) -> None:
    _, secret = TokenStore(settings.data).new("page", "viewer")
    async with running(settings) as app, client_of(app) as client:
        begun = await client.post("/api/v1/session", json={"token": secret})

        assert begun.json() == {"name": "page", "role": "viewer", "tokens_required": True}
        cookie = begun.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "Secure" not in cookie
        assert secret not in cookie
        assert (await client.get("/api/v1/schedulers")).status_code == 200

        ended = await client.delete("/api/v1/session", headers=JSON)
        assert (ended.status_code, ended.content) == (204, b"")
        assert (await client.get("/api/v1/schedulers")).status_code == 401


async def test_an_old_cookie_is_refused_after_the_session_ended(settings: Settings) -> None:
    _, secret = TokenStore(settings.data).new("page", "viewer")
    async with running(settings) as app, client_of(app) as client:
        await client.post("/api/v1/session", json={"token": secret})
        stolen = {"cookie": f"pendula_session={client.cookies['pendula_session']}"}
        await client.delete("/api/v1/session", headers=JSON)
        client.cookies.clear()

        assert (await client.get("/api/v1/schedulers", headers=stolen)).status_code == 401


@pytest.mark.parametrize("odd", ['prefs={"a": 1}', "a b=c", "=", "ä=1", 'x="unclosed', "pendula_sessio=n"])
async def test_malformed_cookies_of_other_programs_do_not_hide_ours(settings: Settings, odd: str) -> None:
    _, secret = TokenStore(settings.data).new("page", "viewer")
    async with running(settings) as app, client_of(app) as client:
        await client.post("/api/v1/session", json={"token": secret})
        ours = f"pendula_session={client.cookies['pendula_session']}"
        client.cookies.clear()

        for header in (f"{odd}; {ours}", f"{ours}; {odd}"):
            response = await client.get("/api/v1/schedulers", headers=[(b"cookie", header.encode("latin-1"))])

            assert response.status_code == 200, header


async def test_an_expired_session_cookie_counts_as_none(client: httpx.AsyncClient) -> None:
    stale = {"cookie": "pendula_session=of-yesterday"}

    assert (await client.get("/api/v1/session", headers=stale)).json()["name"] == "local"
    assert (await client.get("/healthz", headers=stale)).status_code == 200


async def test_the_cookie_is_secure_under_tls_as_reported_by_the_proxy(settings: Settings) -> None:
    _, secret = TokenStore(settings.data).new("page", "viewer")
    proxied = msgspec.structs.replace(settings, behind_proxy=True)
    for given, headers, secure in [
        (proxied, {"x-forwarded-proto": "https"}, True),
        (proxied, {"x-forwarded-proto": "https, http"}, False),
        (settings, {"x-forwarded-proto": "https"}, False),
    ]:
        async with running(given) as app, client_of(app) as client:
            begun = await client.post("/api/v1/session", json={"token": secret}, headers=headers)

            assert ("Secure" in begun.headers["set-cookie"]) is secure


async def test_a_wrong_token_starts_no_session(client: httpx.AsyncClient) -> None:
    response = await client.post("/api/v1/session", json={"token": "wrong"})

    assert (response.status_code, code_of(response)) == (401, "not_identified")
    assert "set-cookie" not in response.headers


def test_only_listed_paths_are_public() -> None:
    public = [
        path
        for path in ("/", "/assets/x.js", "/api/v1/schedulers", "/metrics", "/assets", "/healthz/x")
        if gates.is_public(path)
    ]

    assert public == ["/", "/assets/x.js"]


async def _never(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("the gate let it through")


async def _never_receive() -> Message:
    raise AssertionError("nobody reads")


async def _never_send(message: Message) -> None:
    raise AssertionError("nobody writes")


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.1", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_only_loopback_addresses_are_local(host: str, local: bool) -> None:
    assert is_loopback(host) is local
