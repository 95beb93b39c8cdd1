"""Around every request: an id, one error form, a line in the log without secrets, a count."""

import io
import json
import logging
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest
from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Scope

from pendula.kernel.errors import InputRefused, PendulaError, WorldBroken
from pendula.server import monitoring
from pendula.server.errors import error_body, error_response, status_of
from pendula.server.monitoring import REMOVED, without_commands, without_secrets
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.security.identity import TokenStore
from pendula.server.settings import LogFormat, LogLevel, Settings
from tests.server.living import BASE, TALLY, client_of, code_of, running

pytestmark = pytest.mark.anyio


def lines_of(logs: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in logs.getvalue().splitlines()]


@pytest.mark.parametrize("offered", ["a", "A.b_c-9", "x" * 64])
async def test_a_harmless_request_id_is_kept(client: httpx.AsyncClient, offered: str) -> None:
    assert (await client.get("/healthz", headers={"x-request-id": offered})).headers["x-request-id"] == offered


@pytest.mark.parametrize("offered", [None, "", "x" * 65, "a b", "a;b", "ä"])
async def test_any_other_request_id_is_replaced(client: httpx.AsyncClient, offered: str | None) -> None:
    headers = [] if offered is None else [(b"x-request-id", offered.encode("latin-1"))]

    made = (await client.get("/healthz", headers=headers)).headers["x-request-id"]

    assert len(made) == 32
    assert made != offered


async def test_not_found_has_the_error_form(client: httpx.AsyncClient) -> None:
    response = await client.get("/nowhere")

    assert (response.status_code, code_of(response)) == (404, "not_found")


async def test_a_wrong_method_has_the_error_form_and_lists_the_allowed_ones(client: httpx.AsyncClient) -> None:
    response = await client.put(f"{BASE}/commands", json={})

    assert (response.status_code, code_of(response)) == (405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


async def test_head_is_answered_wherever_get_is_answered(settings: Settings) -> None:
    async with running(settings) as app, client_of(app) as client:
        engine = {name: f"{BASE}/{name}" for name in ("state", "journal")}.values()
        for path in ("/", "/healthz", "/readyz", "/openapi.json", "/api/v1/schedulers", "/api/v1/session", *engine):
            got = await client.get(quote(path))
            head = await client.head(path)

            assert head.status_code == got.status_code == 200, path
            assert head.content == b"", path
            for name in ("content-type", "content-length"):
                assert head.headers[name] == got.headers[name], path
        counted = (await client.get("/metrics")).text
        assert 'pendula_requests_total{method="HEAD",route="/healthz",status="200"} 1.0' in counted


async def test_head_is_refused_where_get_is_refused(client: httpx.AsyncClient) -> None:
    assert (await client.head("/nowhere")).status_code == 404
    assert (await client.head(f"{BASE}/commands")).status_code == 405


async def test_a_path_with_an_extra_slash_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz/")).status_code == 404


def defective_scheduler() -> Any:
    router = APIRouter()

    @router.get("/assets/defect")
    async def defect() -> None:
        raise RuntimeError("the secret of the house")

    @router.get("/assets/teapot")
    async def teapot() -> None:
        raise HTTPException(418, "short and stout")

    @router.get("/assets/half")
    async def half() -> StreamingResponse:
        async def body() -> Any:
            yield b"half"
            raise RuntimeError("and no more")

        return StreamingResponse(body())

    return msgspec.structs.replace(TALLY, routers=(router,))


def scheduler_first(app: FastAPI) -> None:
    """Put the router of the page last: it would hide that of the scheduler."""
    page = next(number for number, one in enumerate(app.router.routes) if not isinstance(one, Route))
    app.router.routes.append(app.router.routes.pop(page))


async def test_a_defect_is_reported_without_its_traceback(settings: Settings, quiet_logs: io.StringIO) -> None:
    scheduler = msgspec.structs.replace(defective_scheduler())
    async with running(settings, [scheduler]) as app, client_of(app) as client:
        scheduler_first(app)
        response = await client.get("/assets/defect", headers={"x-request-id": "the-defect"})

    assert (response.status_code, code_of(response)) == (500, "internal_error")
    assert "secret" not in response.text
    assert "Traceback" not in response.text
    logged = [line for line in lines_of(quiet_logs) if line.get("request_id") == "the-defect"]
    assert "the secret of the house" in logged[0]["exception"]


async def test_other_errors_of_the_framework_keep_their_status(settings: Settings) -> None:
    async with running(settings, [defective_scheduler()]) as app, client_of(app) as client:
        scheduler_first(app)
        response = await client.get("/assets/teapot")

    assert (response.status_code, code_of(response)) == (418, "invalid_http")


async def test_a_failure_in_mid_response_appends_no_error_body(settings: Settings) -> None:
    async with running(settings, [defective_scheduler()]) as app, client_of(app) as client:
        scheduler_first(app)
        with pytest.raises(RuntimeError, match="and no more"):
            await client.get("/assets/half")


class SchedulerErrors:
    """Error texts of a scheduler that answer everything with one code and record the calls."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def translated(self, error: PendulaError, _: Scope) -> PendulaError:
        self.called.append(error.code)
        return InputRefused("an error of the scheduler")

    def response(self, error: PendulaError, _: Scope) -> Response:
        return error_response(error)

    def defect(self) -> PendulaError:
        self.called.append("defect")
        return InputRefused("an error of the scheduler")


@pytest.mark.parametrize(
    ("path", "headers", "called"),
    [
        ("/own/nothing", {}, ["not_found"]),
        ("/own", {}, ["not_found"]),
        ("/own/defect", {}, ["defect"]),
        # The scheduler also words refusals of the gates below its prefix.
        ("/own/nothing", {"authorization": "Bearer wrong"}, ["not_identified"]),
        ("/owner", {}, []),
        ("/api/v1/tally/main/nothing", {}, []),
    ],
)
async def test_error_texts_of_a_scheduler_apply_to_its_prefix_alone(
    settings: Settings, path: str, headers: dict[str, str], called: list[str]
) -> None:
    router = APIRouter()

    @router.get("/own/defect")
    async def defect() -> None:
        raise RuntimeError

    own_errors = SchedulerErrors()
    own = SchedulerSpec(
        "own", "Own", "A separate contract.", routers=(router,), prefix="/own", errors=lambda _: own_errors
    )
    async with running(settings, [TALLY, own]) as app, client_of(app) as client:
        response = await client.get(path, headers=headers)

    assert own_errors.called == called
    assert (code_of(response) == "input_refused") == bool(called)


def test_caller_errors_are_4xx_and_world_errors_503() -> None:
    assert status_of(InputRefused("x")) == 422
    assert status_of(WorldBroken("x")) == 503
    assert status_of(PendulaError("x")) == 503


def test_facts_without_canonical_form_are_given_as_text() -> None:
    body = json.loads(error_body("c", "m\udcff", {"float": 0.5, "set": {1}, "good": [1, None], "odd": "\udcff"}))

    assert body["error"]["details"] == {"float": "0.5", "set": "{1}", "good": [1, None], "odd": "?"}


async def test_a_request_is_one_log_line(settings: Settings, quiet_logs: io.StringIO) -> None:
    async with running(settings) as app, client_of(app) as client:
        await client.get(f"{BASE}/state?at=0&token=in-the-query", headers={"x-request-id": "one-line"})

    (line,) = [line for line in lines_of(quiet_logs) if line.get("request_id") == "one-line"]
    assert (line["event"], line["method"], line["path"], line["by"]) == ("request", "GET", f"{BASE}/state", "local")
    assert "in-the-query" not in quiet_logs.getvalue()


async def test_no_token_and_no_cookie_reaches_the_log(settings: Settings, quiet_logs: io.StringIO) -> None:
    _, secret = TokenStore(settings.data).new("page", "operator")
    async with running(settings) as app, client_of(app) as client:
        await client.post("/api/v1/session", json={"token": secret})
        cookie = client.cookies["pendula_session"]
        await client.get("/api/v1/schedulers")
        await client.get(f"/nowhere/{secret}", headers={"authorization": f"Bearer {secret}"})
        await client.get("/api/v1/schedulers", headers={"authorization": f"Bearer {secret}x"})

    logged = quiet_logs.getvalue()
    assert f"/nowhere/{REMOVED}" in logged
    assert secret not in logged
    assert cookie not in logged


async def test_control_characters_of_a_path_are_escaped_in_the_log(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # restores the counters of other tests
    lines = io.StringIO()
    monitoring.configure(LogFormat.CONSOLE, LogLevel.INFO, lines)
    async with running(settings) as app, client_of(app) as client:
        await client.get("/nowhere/%1b%5b2J%00%e2%80%ae")

    assert "path=/nowhere/\\x1b[2J\\x00\\u202e" in lines.getvalue()
    assert lines.getvalue().replace("\n", "").isprintable()


async def test_control_characters_are_escaped_in_the_json_log_too(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    lines = io.StringIO()
    monitoring.configure(LogFormat.JSON, LogLevel.INFO, lines)
    path = "/nowhere/\x9b2J\u202e\u2028\x7f\U000e0041\u00e9"
    async with running(settings) as app, client_of(app) as client:
        await client.get(quote(path))

    assert lines.getvalue().replace("\n", "").isprintable()
    assert path in [line.get("path") for line in lines_of(lines)]
    assert "\\u202e" in lines.getvalue()
    assert "\u00e9" in lines.getvalue(), "letters stay as they are"


@pytest.mark.parametrize(
    ("host", "scheme", "proxy_says", "kept"),
    [
        ("pendula.example.org", "https", None, True),
        ("pendula.example.org", "http", None, False),
        ("pendula.example.org", "http", "https", True),
        ("localhost:8765", "https", None, False),
        ("127.0.0.1:8765", "https", None, False),
    ],
)
async def test_strict_transport_security_is_sent_over_tls_only(
    settings: Settings, host: str, scheme: str, proxy_says: str | None, kept: bool
) -> None:
    own = msgspec.structs.replace(settings, allowed_hosts=("pendula.example.org",), behind_proxy=proxy_says is not None)
    called = {"host": host} | ({"x-forwarded-proto": proxy_says} if proxy_says else {})
    async with running(own) as app, client_of(app) as client:
        response = await client.get(f"{scheme}://{host}/healthz", headers=called)

    assert response.status_code == 200
    assert response.headers.get("strict-transport-security") == ("max-age=31536000" if kept else None)


def test_a_logged_traceback_keeps_its_lines() -> None:
    event = {"event": "one\ntwo", "exception": "Traceback\n\tKeyError: '\x1b'", "count": 2}

    assert without_commands(None, "error", event) == {
        "event": "one\\ntwo",
        "exception": "Traceback\n\tKeyError: '\\x1b'",
        "count": 2,
    }


def test_secrets_are_redacted_at_any_depth() -> None:
    secret = "pendula_" + "a" * 43
    event = {"event": f"x {secret} y", "headers": {"Authorization": "z", "list": [secret, 1]}, "token": "t", "n": 1}

    assert without_secrets(None, "info", event) == {
        "event": f"x {REMOVED} y",
        "headers": {"Authorization": REMOVED, "list": [REMOVED, 1]},
        "token": REMOVED,
        "n": 1,
    }


async def test_counters_have_few_labels(client: httpx.AsyncClient) -> None:
    await client.get(f"{BASE}/state")
    await client.get("/api/v1/tally/other-name/state")
    await client.get("/nowhere/at/all")
    await client.request("BREW", "/healthz", headers={"content-type": "application/json"})
    await client.post(f"{BASE}/commands", json={"type": "add", "amount": 1})
    await client.post(f"{BASE}/commands", json={"type": "take", "amount": 9})

    response = await client.get("/metrics")

    text = response.text
    assert response.headers["content-type"].startswith("text/plain")
    route = "/api/v1/tally/{engine}/state"
    assert f'pendula_requests_total{{method="GET",route="{route}",status="200"}} 1.0' in text
    assert f'pendula_requests_total{{method="GET",route="{route}",status="404"}} 1.0' in text
    assert 'pendula_requests_total{method="GET",route="(none)",status="404"} 1.0' in text
    assert 'method="other"' in text
    assert 'pendula_commands_total{engine="main",result="done",scheduler="tally"} 1.0' in text
    assert 'pendula_commands_total{engine="main",result="refused",scheduler="tally"} 1.0' in text
    assert "other-name" not in text
    assert "nowhere" not in text
