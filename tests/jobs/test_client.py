"""The scheduler over HTTP has the methods, replies and errors of the local one, and reuses its connections."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import getmembers, isfunction, signature
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import Struct

from pendula.jobs import JobRefused, Scheduler
from pendula.jobs.addresses import TokenUnusable, token_from
from pendula.jobs.client import (
    CallRefused,
    NotAScheduler,
    RemoteScheduler,
    ServerTrouble,
    ServerUnreachable,
)
from pendula.jobs.messages import ACK, CANCEL, HISTORY, SHOW, Call, Message, job_json, plain
from pendula.jobs.model import StorageBusy
from pendula.jobs.worker.leases import is_rate_limit
from pendula.jobs.worker.worker import Client
from pendula.kernel.errors import InputRefused, WrongUsage
from pendula.server.schedulers.jobs.routes import jobs_scheduler
from pendula.server.settings import Settings
from tests.jobs.samples import queued
from tests.jobs.stores import Clock, opened
from tests.server.living import LiveServer, until
from tests.waiting import joined

JOB_ID = "job_000000000001"
JOB: dict[str, Any] = {"object_type": "memory", "object_id": "mem_1", "action": "verify"}
SHOWN: Any = {"job": job_json(queued())}
ENQUEUED: Any = {"deduplicated": False, **SHOWN}
PULLED = {"now": "2026-02-21T00:00:00Z", "count": 0, "reclaimed": 0, "jobs": []}
RENEWED = {"lease_expires_at": "2026-02-21T00:00:00Z", "cancel_requested_at": None}


class ReceivedRequest(Struct, frozen=True):
    """One request and the connection it arrived on."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int


class Scripted:
    """A server with scripted answers: status, body, and whether it then closes the connection."""

    def __init__(self) -> None:
        self.requests: list[ReceivedRequest] = []
        self.answers: list[tuple[int, bytes, bool]] = []
        self.silent = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = json.loads(data) if data else None
                outer.requests.append(ReceivedRequest(self.command, self.path, headers, body, self.client_address[1]))
                status, reply, close = outer.answers.pop(0)
                if status == 0:
                    outer.silent.wait(20)
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)
                # Closed without notice: the client finds out only when it uses the connection.
                self.close_connection = close

            do_GET = _answer
            do_POST = _answer
            do_PUT = _answer

            def log_message(self, *_: object) -> None:
                """A log that is discarded."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def says(self, status: int, body: Any = None, *, close: bool = False) -> None:
        data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        self.answers.append((status, data, close))

    def close(self) -> None:
        self.silent.set()
        self._server.shutdown()
        self._server.server_close()
        joined(self._thread)


@pytest.fixture
def server() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    scripted.close()


@pytest.fixture
def remote(server: Scripted) -> Iterator[RemoteScheduler]:
    with RemoteScheduler(server.url, timeout=10) as scheduler:
        yield scheduler


def error(code: str, message: str = "no", **details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "details": details}}


def public(kind: type) -> dict[str, Any]:
    return {
        name: [
            (parameter.name, parameter.kind, parameter.default) for parameter in signature(method).parameters.values()
        ]
        for name, method in getmembers(kind, isfunction)
        if not name.startswith("_")
    }


@pytest.mark.req("JOB-API-5")
def test_every_method_of_the_scheduler_exists_with_the_same_parameters() -> None:
    local, remote = public(Scheduler), public(RemoteScheduler)

    assert {name: remote.get(name) for name in local} == local


def test_a_worker_can_use_it(remote: RemoteScheduler) -> None:
    worker_sees: Client = remote

    assert worker_sees is remote


PROOF: dict[str, Any] = {"worker_id": "w", "lease_token": "t"}
KEY: dict[str, Any] = {"idempotency_key": "k", "reason": "r"}
PLAN: dict[str, Any] = {"cron": "@daily", "object_type": "memory", "object_id": "m", "action": "verify"}
CALLS: list[tuple[Callable[[RemoteScheduler], Any], str, str, Any]] = [
    (lambda api: api.enqueue(**JOB), "POST", "/scheduler/jobs", JOB),
    (lambda api: api.enqueue_batch([JOB]), "POST", "/scheduler/jobs/batch", {"jobs": [JOB], "atomic": False}),
    (lambda api: api.pull(worker_id="w"), "POST", "/scheduler/jobs/pull", {"worker_id": "w"}),
    (lambda api: api.ack(JOB_ID, result="succeeded"), "POST", f"/scheduler/jobs/{JOB_ID}/ack", {"result": "succeeded"}),
    (lambda api: api.ack_batch([{"job_id": "j"}]), "POST", "/scheduler/jobs/ack-batch", {"acks": [{"job_id": "j"}]}),
    (
        lambda api: api.fail(JOB_ID, error="x", retry_delay_sec=Decimal("1.5")),
        "POST",
        f"/scheduler/jobs/{JOB_ID}/fail",
        {"error": "x", "retry_delay_sec": 1.5},
    ),
    (lambda api: api.renew(JOB_ID, **PROOF), "POST", f"/scheduler/jobs/{JOB_ID}/renew", PROOF),
    (lambda api: api.release(JOB_ID, **PROOF), "POST", f"/scheduler/jobs/{JOB_ID}/release", PROOF),
    (lambda api: api.cancel(JOB_ID, reason="x"), "POST", f"/scheduler/jobs/{JOB_ID}/cancel", {"reason": "x"}),
    (lambda api: api.requeue(JOB_ID), "POST", f"/scheduler/jobs/{JOB_ID}/requeue", {}),
    (lambda api: api.free_key(**KEY), "POST", "/scheduler/keys/free", KEY),
    (lambda api: api.show(JOB_ID), "GET", f"/scheduler/jobs/{JOB_ID}", None),
    (lambda api: api.list(status="queued", limit=5, cursor=None), "GET", "/scheduler/jobs?status=queued&limit=5", None),
    (lambda api: api.history(JOB_ID), "GET", f"/scheduler/jobs/{JOB_ID}/history", None),
    (lambda api: api.audit(object_id="a b"), "GET", "/scheduler/audit?object_id=a+b", None),
    (lambda api: api.object("memory", "m/1"), "GET", "/scheduler/objects/memory/m%2F1", None),
    (lambda api: api.object("memory", ".."), "GET", "/scheduler/objects/memory/%2E%2E", None),
    (lambda api: api.why(JOB_ID), "GET", f"/scheduler/jobs/{JOB_ID}/why", None),
    (lambda api: api.workers(), "GET", "/scheduler/workers", None),
    (lambda api: api.alerts(limit=5), "GET", "/scheduler/alerts?limit=5", None),
    (lambda api: api.plans(), "GET", "/scheduler/plans", None),
    (lambda api: api.put_plan("p", **PLAN), "PUT", "/scheduler/plans/p", PLAN),
    (lambda api: api.pause_plan("p", reason="r"), "POST", "/scheduler/plans/p/pause", {"reason": "r"}),
    (lambda api: api.resume_plan("p"), "POST", "/scheduler/plans/p/resume", {}),
    (lambda api: api.run_now("p"), "POST", "/scheduler/plans/p/run-now", {}),
    (lambda api: api.remove_plan("p"), "POST", "/scheduler/plans/p/remove", {}),
    (lambda api: api.metrics(window_sec=60), "GET", "/scheduler/metrics?window_sec=60", None),
]  # fmt: skip


@pytest.mark.parametrize(("call", "method", "path", "body"), CALLS, ids=[f"{row[1]} {row[2]}" for row in CALLS])
def test_calls_go_to_the_paths_of_the_contract(
    server: Scripted, remote: RemoteScheduler, call: Callable[[RemoteScheduler], Any], method: str, path: str, body: Any
) -> None:
    server.says(200)

    with pytest.raises(NotAScheduler):
        call(remote)
    [requests] = server.requests
    assert (requests.method, requests.path, requests.body) == (method, path, body)


@pytest.mark.req("JOB-API-3")
@pytest.mark.parametrize("job_id", ["pull", "..", "a/b", "", "job_1", "job_00000000 ?"])
def test_an_invalid_job_id_cannot_reach_another_path(server: Scripted, remote: RemoteScheduler, job_id: str) -> None:
    for call in cast("list[Call[Any]]", [SHOW, HISTORY, ACK, CANCEL]):
        with pytest.raises(JobRefused) as refused:
            remote.send(call, {}, job_id)
        assert (refused.value.code, refused.value.status, refused.value.details) == (
            "job_not_found",
            404,
            {"job_id": job_id},
        )
    assert server.requests == []


def test_defer_enqueues_and_returns_the_job(server: Scripted, remote: RemoteScheduler) -> None:
    server.says(201, ENQUEUED)

    job = remote.defer("memory", "mem_1", "verify", in_sec=60, priority="high")

    assert plain(job) == SHOWN["job"]
    assert server.requests[0].body["run_at"].endswith("Z")
    assert server.requests[0].body["priority"] == "high"


def test_a_server_can_be_mounted_under_a_path(server: Scripted) -> None:
    server.says(200, SHOWN)
    with RemoteScheduler(server.url + "/jobs/") as scheduler:
        scheduler.show(JOB_ID)

    assert server.requests[0].path == f"/jobs/scheduler/jobs/{JOB_ID}"


def test_a_connection_is_reused(server: Scripted, remote: RemoteScheduler) -> None:
    for _ in range(3):
        server.says(200, PULLED)
        remote.pull(worker_id="w")
    server.says(409, error("lease_lost"))
    with pytest.raises(JobRefused):
        remote.ack(JOB_ID, result="succeeded")

    assert len({requests.connection for requests in server.requests}) == 1


def test_a_closed_connection_is_not_reused(server: Scripted, remote: RemoteScheduler) -> None:
    server.says(200, ENQUEUED, close=True)
    server.says(200, ENQUEUED)
    remote.enqueue(**JOB)
    # Wait until the close of the connection is readable, as the client would.
    [reused] = remote._idle
    reused.sock.recv(1, socket.MSG_PEEK)

    remote.enqueue(**JOB)

    assert len({requests.connection for requests in server.requests}) == 2


class Dead:
    """A reused connection that looks alive and is dead."""

    def __init__(self) -> None:
        self.sock, self._other = socket.socketpair()
        self.timeout = 0.0

    def request(self, *_: object) -> None:
        raise ConnectionResetError(104, "Connection reset by peer")

    def close(self) -> None:
        self.sock.close()
        self._other.close()


def test_reads_are_repeated_when_a_reused_connection_is_dead(server: Scripted, remote: RemoteScheduler) -> None:
    server.says(200, SHOWN)
    remote._idle.append(Dead())  # type: ignore[arg-type]

    assert plain(remote.show(JOB_ID)) == SHOWN


@pytest.mark.req("JOB-API-4")
def test_changes_are_never_sent_twice(server: Scripted, remote: RemoteScheduler) -> None:
    remote._idle.append(Dead())  # type: ignore[arg-type]

    with pytest.raises(ServerUnreachable, match="Connection reset by peer"):
        remote.enqueue(**JOB)
    assert server.requests == []


def test_each_thread_has_its_own_connection(server: Scripted, remote: RemoteScheduler) -> None:
    server.says(0)
    server.says(200, RENEWED)

    def wait_in_vain() -> None:
        with pytest.raises(ServerUnreachable):
            remote.pull(worker_id="w")

    slow = threading.Thread(target=wait_in_vain)
    slow.start()
    until(lambda: bool(server.requests))
    remote.renew(JOB_ID, **PROOF)
    server.silent.set()
    joined(slow)

    assert len({requests.connection for requests in server.requests}) == 2


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (409, error("lease_lost", "gone", job_id=JOB_ID), JobRefused, "lease_lost"),
        (422, error("validation_failed", "2 fields", fields=[]), JobRefused, "validation_failed"),
        (401, error("unauthenticated"), CallRefused, "unauthenticated"),
        (403, error("forbidden"), CallRefused, "forbidden"),
        (413, error("body_too_large"), CallRefused, "body_too_large"),
        (404, error("route_not_found", path="/x"), CallRefused, "route_not_found"),
        (503, error("storage_busy"), StorageBusy, "storage_busy"),
        (503, error("shutting_down"), ServerTrouble, "shutting_down"),
        (500, error("internal"), ServerTrouble, "internal"),
    ],
)
@pytest.mark.req("JOB-API-2")
def test_errors_are_raised_as_those_of_the_scheduler(
    server: Scripted, remote: RemoteScheduler, status: int, body: Any, kind: type[Exception], code: str
) -> None:
    server.says(status, body)

    with pytest.raises(kind) as raised:
        remote.ack(JOB_ID, result="succeeded")

    assert raised.value.code == code  # type: ignore[attr-defined]
    assert raised.value.message == body["error"]["message"]  # type: ignore[attr-defined]
    if kind is not StorageBusy:
        assert raised.value.details == body["error"]["details"]  # type: ignore[attr-defined]
        assert raised.value.status == status  # type: ignore[attr-defined]


def test_a_rate_limited_call_is_recognised(server: Scripted, remote: RemoteScheduler) -> None:
    server.says(429, error("rate_limited"))

    with pytest.raises(CallRefused) as raised:
        remote.pull(worker_id="w")

    assert is_rate_limit(raised.value)


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"<html>"), (200, b"[]"), (404, b"no"), (302, b"{}"), (500, b'{"error": "x"}')]
)
def test_a_server_that_is_not_a_scheduler_is_reported(
    server: Scripted, remote: RemoteScheduler, status: int, body: bytes
) -> None:
    server.says(status, body)

    with pytest.raises(NotAScheduler, match=rf"HTTP {status}"):
        remote.show(JOB_ID)


def test_a_refused_connection_is_reported_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    with RemoteScheduler(f"http://127.0.0.1:{port}") as scheduler, pytest.raises(ServerUnreachable) as raised:
        scheduler.show(JOB_ID)

    assert raised.value.message == f"The server at http://127.0.0.1:{port} cannot be reached: Connection refused"


def test_a_call_to_a_server_that_does_not_answer_times_out(server: Scripted) -> None:
    server.says(0)
    with RemoteScheduler(server.url, timeout=0.05) as scheduler, pytest.raises(ServerUnreachable, match=r"within 0.05"):
        scheduler.enqueue(**JOB)


def test_the_timeout_of_a_waiting_pull_includes_its_wait(server: Scripted) -> None:
    server.says(0)
    with (
        RemoteScheduler(server.url, timeout=0.05) as scheduler,
        pytest.raises(ServerUnreachable, match=r"within 0.1 s"),
    ):
        scheduler.pull(worker_id="w", wait_ms=50)


def test_numbers_are_exact(server: Scripted, remote: RemoteScheduler) -> None:
    server.says(200, b'{"job": %s}' % json.dumps({**SHOWN["job"], "payload": 0.1}).encode())

    assert remote.show(JOB_ID).job.payload == Decimal("0.1")


def test_invalid_requests_are_rejected_before_they_are_sent(remote: RemoteScheduler) -> None:
    with pytest.raises(InputRefused, match="cannot be sent as JSON"):
        remote.enqueue(**{**JOB, "object_id": "\ud800"})


def test_a_closed_client_sends_nothing(remote: RemoteScheduler) -> None:
    remote.close()

    with pytest.raises(WrongUsage, match="closed"):
        remote.show(JOB_ID)


@pytest.mark.parametrize("url", ["127.0.0.1:8765", "ftp://x", "http://", "http://h:x", "http://h/?a=1", "http://h/#a"])
def test_an_invalid_address_is_rejected(url: str) -> None:
    with pytest.raises(WrongUsage, match="is not the address of a server"):
        RemoteScheduler(url)


def test_secrets_in_an_address_are_rejected_and_not_repeated() -> None:
    with pytest.raises(WrongUsage) as raised:
        RemoteScheduler("http://ada:secret@h")

    assert "secret" not in raised.value.message.replace("must not hold secrets", "")


def test_the_token_is_sent_in_the_header(server: Scripted) -> None:
    server.says(200, SHOWN)
    with RemoteScheduler(server.url, "pendula_abc") as scheduler:
        scheduler.show(JOB_ID)

    assert server.requests[0].headers["authorization"] == "Bearer pendula_abc"


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    file.chmod(0o600)
    environ = {"PENDULA_TOKEN": "from-environment"}

    assert token_from(None, {}) is None
    assert token_from(None, {"PENDULA_TOKEN": ""}) is None
    assert token_from(None, environ) == "from-environment"
    assert token_from(file, environ) == "from-file"


@pytest.mark.parametrize(
    ("text", "mode"), [("", 0o600), ("two words", 0o600), ("a\nb", 0o600), ("good", 0o640), (None, 0)]
)
def test_an_unusable_token_is_rejected_and_not_repeated(text: str | None, mode: int, tmp_path: Path) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)

    with pytest.raises(TokenUnusable) as raised:
        token_from(file, {})

    assert not text or text not in raised.value.message


def test_an_invalid_token_in_the_environment_is_rejected() -> None:
    with pytest.raises(TokenUnusable, match="PENDULA_TOKEN"):
        token_from(None, {"PENDULA_TOKEN": "a\nb"})


@pytest.mark.req("JOB-API-5")
def test_local_and_remote_schedulers_give_the_same_replies_and_rejections(tmp_path: Path) -> None:
    local, clock = opened(tmp_path)
    database = tmp_path / "far.db"
    settings = Settings(port=0, data=str(tmp_path / "data"))
    steady = Still(clock.now)
    local.calls.clock = steady
    with (
        LiveServer(settings, (jobs_scheduler(database=database, clock=steady),)) as server,
        RemoteScheduler(server.url) as remote,
    ):
        results = [[_story(scheduler, steady)] for scheduler in (local, remote)]
    local.close()

    assert results[0] == results[1]


class Still(Clock):
    """A clock that does not advance on reading, so that both sides see the same times."""

    def __call__(self) -> int:
        return self.now


def _story(scheduler: Scheduler | RemoteScheduler, clock: Still) -> list[Any]:
    """The replies of every call, without tokens and actors."""
    begun = clock.now
    results: list[Any] = []

    def tell(call: Callable[..., Any], *arguments: Any, **members: Any) -> Any:
        try:
            reply = call(*arguments, **members)
        except JobRefused as refused:
            results.append((refused.code, refused.status, refused.message, refused.details))
            return None
        shown = plain(reply) if isinstance(reply, Message) else reply
        results.append(_without(shown))
        return shown

    job = tell(scheduler.enqueue, **JOB)["job"]["job_id"]
    tell(scheduler.enqueue, **JOB, idempotency_key="k", run_at=clock.text(60))
    tell(scheduler.enqueue, object_type="x", run_at="now", priority=1)
    tell(scheduler.enqueue_batch, [{**JOB, "object_id": "b"}, {"action": 1}])
    tell(scheduler.enqueue_batch, [{"action": 1}], atomic=True)
    tell(scheduler.list, limit=2)
    tell(scheduler.list, limit=0, status="no")
    [held] = tell(scheduler.pull, worker_id="w1", limit=1)["jobs"]
    proof = {"worker_id": "w1", "lease_token": held["lease_token"]}
    tell(scheduler.renew, job, **proof, lease_sec=90)
    tell(scheduler.fail, job, **proof, error="x", retry_delay_sec=1.5)
    tell(scheduler.fail, job, **proof, error="x")
    clock.pass_by(10)
    held = tell(scheduler.pull, worker_id="w1", limit=5)["jobs"]
    proofs = {held_job["job_id"]: {"worker_id": "w1", "lease_token": held_job["lease_token"]} for held_job in held}
    tell(scheduler.ack, job, **proofs[job], result="succeeded", next_action_at=clock.text(600))
    tell(scheduler.ack, job, result="no")
    other = next(job_id for job_id in proofs if job_id != job)
    tell(scheduler.release, other, **proofs[other])
    tell(scheduler.cancel, other, reason="enough")
    tell(scheduler.requeue, other)
    tell(scheduler.ack_batch, [{"job_id": other, "result": "succeeded"}, {}])
    for look in (scheduler.show, scheduler.history):
        tell(look, job)
        tell(look, "job_nope")
    tell(scheduler.object, "memory", "mem_1")
    tell(scheduler.object, "memory", "a/b")
    tell(scheduler.audit, limit=3)
    tell(scheduler.audit, after="x")
    tell(scheduler.metrics, window_sec=60)
    tell(scheduler.metrics, window_sec=1)
    clock.now = begun
    return results


def _without(value: Any) -> Any:
    match value:
        case dict():
            return {
                name: _without(item)
                for name, item in value.items()
                if name not in ("actor", "metadata") and not (name == "lease_token" and item)
            }
        case list():
            return [_without(item) for item in value]
        case _:
            return value
