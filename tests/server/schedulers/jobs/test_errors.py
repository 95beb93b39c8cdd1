"""Every row of the error table of the contract, provoked over HTTP; and hostile requests."""

import asyncio
import io
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from pendula.jobs.calls import plans
from pendula.jobs.messages import Recurring
from pendula.jobs.model import AuditCheck, Code, Policy, PullClock
from pendula.jobs.plans import PLANS_MOST
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.limits import MIB
from pendula.server.security.identity import Role, TokenStore
from pendula.server.settings import Settings
from tests.server.job_servers import DUE, JOB, QUICK, Jobs, error_of, serving
from tests.server.living import JSON

pytestmark = [pytest.mark.anyio, pytest.mark.req("JOB-API-2")]

STRICT = replace(QUICK, audit_event_check=AuditCheck.STRICT, pull_clock=PullClock.SERVER)
PULL: dict[str, Any] = {"worker_id": "w"}
ACK: dict[str, Any] = {"result": "succeeded"}


@pytest.fixture
async def jobs(settings: Settings) -> AsyncIterator[Jobs]:
    async with serving(settings, STRICT) as found:
        yield found


async def raw(jobs: Jobs, content: bytes, path: str = "jobs") -> httpx.Response:
    return await jobs.client.post(f"/scheduler/{path}", content=content, headers=JSON)


async def running(jobs: Jobs, **members: Any) -> dict[str, Any]:
    """A leased job."""
    await jobs.enqueued(**members)
    jobs.clock.turn_to(DUE)
    [given] = await jobs.pulled("w")
    return given


# How each row is provoked


async def conflict(jobs: Jobs) -> httpx.Response:
    await jobs.enqueued(idempotency_key="k")
    return await jobs.post("jobs", {**JOB, "action": "decay", "idempotency_key": "k"})


async def not_running(jobs: Jobs) -> httpx.Response:
    return await jobs.post(f"jobs/{(await jobs.enqueued())['job_id']}/ack", ACK)


async def not_queued(jobs: Jobs) -> httpx.Response:
    job_id = (await running(jobs))["job_id"]
    await jobs.post(f"jobs/{job_id}/ack", {"result": "succeeded"})
    return await jobs.post(f"jobs/{job_id}/cancel")


async def not_dead(jobs: Jobs) -> httpx.Response:
    return await jobs.post(f"jobs/{(await running(jobs))['job_id']}/requeue")


async def lost(jobs: Jobs) -> httpx.Response:
    return await jobs.post(f"jobs/{(await running(jobs))['job_id']}/ack", {**ACK, "lease_token": "lt_other"})


async def expired(jobs: Jobs) -> httpx.Response:
    job = await running(jobs)
    jobs.clock.pass_by(900)
    return await jobs.post(f"jobs/{job['job_id']}/fail", {"error": "x", "lease_token": job["lease_token"]})


async def token_required(jobs: Jobs) -> httpx.Response:
    job = await running(jobs)
    jobs.clock.pass_by(900)
    await jobs.pulled("w2")
    return await jobs.post(f"jobs/{job['job_id']}/ack", ACK)


async def past_action(jobs: Jobs) -> httpx.Response:
    job = await running(jobs)
    return await jobs.post(f"jobs/{job['job_id']}/ack", {**ACK, "next_action_at": "2026-02-20T23:59:59Z"})


async def unknown_event(jobs: Jobs) -> httpx.Response:
    job = await running(jobs)
    return await jobs.post(f"jobs/{job['job_id']}/ack", {**ACK, "audit_event_id": "aud_000000000999"})


async def invalid_result(jobs: Jobs) -> httpx.Response:
    return await jobs.post(f"jobs/{(await running(jobs))['job_id']}/ack", {"result": True})


async def planned(jobs: Jobs, many: int, name: str) -> httpx.Response:
    """Put a plan of this name with a limit of this many plans in the settings file."""
    entry = Recurring("plan", "@daily", "memory", "m", "decay")
    entries = [replace(entry, name=f"plan-{number}") for number in range(many)]
    jobs.service.calls.change_plans(lambda tx, now: [plans.declare(tx, now, one) for one in entries])
    body = {"cron": "@daily", "object_type": "memory", "object_id": "m", "action": "decay"}
    return await jobs.client.put(f"/scheduler/plans/{name}", json=body)


# Governed objects

MEMORY = {"object_type": "memory", "object_id": "a/b", "evidence_refs": ["ev_1"]}
AS_MIA = {"x-pendula-user": "mia"}
DECISION = {"action": "verify", "finding": "passed", "reason": "looked into"}
UNKNOWABLE = {
    "object_type": "cognition",
    "object_id": "cg_123",
    "status": "needs_revalidate",
    "unknown_type": "ontic_unknowable",
    "auto_verify_budget": 5,
}


async def held(jobs: Jobs, **members: Any) -> tuple[str, dict[str, Any]]:
    """A governed object whose first job is leased: its path and the lease proof."""
    assert (await jobs.post("objects", {**MEMORY, **members})).status_code == 201
    jobs.clock.pass_by(86_400)
    [job] = await jobs.pulled("w")
    return f"jobs/{job['job_id']}", {"worker_id": "w", "lease_token": job["lease_token"]}


async def made_twice(jobs: Jobs) -> httpx.Response:
    await jobs.post("objects", MEMORY)
    return await jobs.post("objects", MEMORY)


async def finished_before_start(jobs: Jobs) -> httpx.Response:
    """The object became governed while its job ran."""
    await jobs.enqueued(object_type="memory", object_id="a/b", action="verify", run_at=jobs.clock.text)
    [job] = await jobs.pulled("w")
    assert (await jobs.post("objects", MEMORY)).status_code == 201
    proof = {"worker_id": "w", "lease_token": job["lease_token"]}
    return await jobs.post(f"jobs/{job['job_id']}/finish", {**proof, "finding": "passed", "reason": "seen"})


async def another_version(jobs: Jobs) -> httpx.Response:
    await jobs.post("objects", MEMORY)
    return await jobs.post("objects/evidence/memory/a/b", {"evidence_refs": ["ev_2"], "version": 7})


async def illegal_transition(jobs: Jobs) -> httpx.Response:
    await jobs.post("objects", {**MEMORY, "status": "rejected_poisoned"})
    body = {**DECISION, "action": "reinstate-check", "finding": "new_evidence"}
    return await jobs.post("objects/decide/memory/a/b", body, headers=AS_MIA)


async def closed_gate(jobs: Jobs) -> httpx.Response:
    await jobs.post("objects", {**MEMORY, "risk_tier": "high"})
    return await jobs.post("objects/decide/memory/a/b", DECISION, headers=AS_MIA)


async def without_user(jobs: Jobs) -> httpx.Response:
    await jobs.post("objects", MEMORY)
    return await jobs.post("objects/refill/memory/a/b", {"reason": "once more"})


async def closed_verification(jobs: Jobs) -> httpx.Response:
    path, proof = await held(jobs, **UNKNOWABLE)
    await jobs.post(f"{path}/begin", proof)
    ended = await jobs.post(f"{path}/finish", {**proof, "finding": "inconclusive", "reason": "no evidence is possible"})
    assert ended.json()["outcome"] == "ontic_closed"
    return await jobs.post("jobs", {**JOB, "run_at": "2026-03-01T00:00:00Z"})


ROWS: list[tuple[int, str, Callable[[Jobs], Awaitable[httpx.Response]]]] = [
    (400, "malformed_json", lambda jobs: raw(jobs, b"{")),
    (400, "body_not_object", lambda jobs: raw(jobs, b"[]")),
    (400, "duplicate_member", lambda jobs: raw(jobs, b'{"action":"decay","action":"decay"}')),
    (404, "job_not_found", lambda jobs: jobs.post("jobs/job_nope/ack", ACK)),
    (404, "object_not_found", lambda jobs: jobs.get("objects/memory/nobody")),
    (404, "route_not_found", lambda jobs: jobs.get("nothing")),
    (405, "method_not_allowed", lambda jobs: jobs.client.delete("/scheduler/jobs", headers=JSON)),
    (409, "idempotency_key_conflict", conflict),
    (409, "job_not_running", not_running),
    (409, "job_not_queued", not_queued),
    (409, "job_not_dead_letter", not_dead),
    (409, "lease_lost", lost),
    (409, "lease_expired", expired),
    (409, "lease_token_required", token_required),
    (413, "body_too_large", lambda jobs: raw(jobs, b" " * (MIB + 1))),
    (415, "unsupported_media_type", lambda jobs: jobs.client.post("/scheduler/jobs", content=b"{}")),
    (422, "validation_failed", lambda jobs: jobs.post("jobs")),
    (422, "missing_field", lambda jobs: jobs.post("jobs", {"object_type": "memory", "object_id": "m"})),
    (422, "unknown_field", lambda jobs: jobs.post("jobs", {**JOB, "prioritty": "high"})),
    (422, "invalid_field", lambda jobs: jobs.post("jobs", {**JOB, "max_attempts": True})),
    (422, "invalid_enum", lambda jobs: jobs.post("jobs", {**JOB, "object_type": "Memory"})),
    (422, "invalid_timestamp", lambda jobs: jobs.post("jobs", {**JOB, "run_at": "tomorrow"})),
    (422, "naive_timestamp", lambda jobs: jobs.post("jobs", {**JOB, "run_at": "2026-02-21T00:00:00"})),
    (422, "timestamp_out_of_range", lambda jobs: jobs.post("jobs", {**JOB, "run_at": "1969-12-31T00:00:00Z"})),
    (422, "run_at_in_past", lambda jobs: jobs.post("jobs", {**JOB, "run_at": "2026-01-01T00:00:00Z"})),
    (422, "now_in_future", lambda jobs: jobs.post("jobs/pull", {**PULL, "now": DUE})),
    (422, "next_action_at_in_past", past_action),
    (422, "invalid_limit", lambda jobs: jobs.post("jobs/pull", {**PULL, "limit": 0})),
    (422, "invalid_worker_id", lambda jobs: jobs.post("jobs/pull", {"worker_id": "ä"})),
    (422, "invalid_result", invalid_result),
    (422, "audit_event_unknown", unknown_event),
    (404, "plan_not_found", lambda jobs: jobs.post("plans/nobody/pause")),
    (409, "plan_in_settings", lambda jobs: planned(jobs, 1, "plan-0")),
    (409, "too_many_plans", lambda jobs: planned(jobs, PLANS_MOST, "one-more")),
    (409, "object_exists", made_twice),
    (409, "not_begun", finished_before_start),
    (409, "state_conflict", another_version),
    (409, "illegal_transition", illegal_transition),
    (409, "gate_closed", closed_gate),
    (403, "user_required", without_user),
    (409, "ontic_verification_closed", closed_verification),
    (422, "batch_rejected", lambda jobs: jobs.post("jobs/batch", {"jobs": [{}], "atomic": True})),
]


@pytest.mark.req("JOB-MET-8")
@pytest.mark.parametrize(("status", "code", "provoke"), ROWS, ids=[row[1] for row in ROWS])
async def test_each_row_of_the_table_has_its_status_and_code(
    jobs: Jobs, status: int, code: str, provoke: Callable[[Jobs], Awaitable[httpx.Response]]
) -> None:
    error = error_of(await provoke(jobs))

    assert (error["status"], error["code"]) == (status, code)
    assert isinstance(error["message"], str)
    assert error["message"]
    counted = (await jobs.client.get("/scheduler/metrics", headers={"accept": "text/plain"})).text
    assert f'jobs_refused_total{{code="{code}"}} 1.0' in counted


def test_the_table_has_every_code_of_the_scheduler() -> None:
    in_process = {Code.OBJECT_GOVERNED.value}  # of effects, which need the store in the same process
    assert {code.value for code in Code} - {row[1] for row in ROWS} == in_process


# Roles


@pytest.mark.req("JOB-API-6")
async def test_a_call_without_a_token_is_unauthenticated_and_one_above_its_role_forbidden(settings: Settings) -> None:
    store = TokenStore(settings.data)
    secrets = {role: store.new(f"the-{role}", role)[1] for role in Role}

    async def status(path: str, role: Role | None, body: Any = None) -> tuple[int, str | None]:
        headers = {} if role is None else {"authorization": f"Bearer {secrets[role]}"}
        method = "GET" if body is None else "POST"
        answer = await service.client.request(method, f"/scheduler/{path}", json=body, headers=headers)
        return answer.status_code, answer.json().get("error", {}).get("code")

    key = {"idempotency_key": "k", "reason": "r"}
    async with serving(settings) as service:
        assert await status("jobs", None) == (401, "unauthenticated")
        assert await status("nothing", None) == (401, "unauthenticated")
        assert await status("jobs", Role.VIEWER) == (200, None)
        assert await status("metrics", Role.VIEWER) == (200, None)
        assert await status("audit", Role.VIEWER) == (200, None)
        assert await status("jobs", Role.VIEWER, JOB) == (403, "forbidden")
        assert await status("jobs/pull", Role.VIEWER, PULL) == (403, "forbidden")
        assert await status("jobs", Role.OPERATOR, JOB) == (201, None)
        assert await status("keys/free", Role.OPERATOR, key) == (403, "forbidden")
        assert await status("keys/free", Role.ADMIN, key) == (200, None)
        [event] = (
            await service.client.get("/scheduler/audit", headers={"authorization": f"Bearer {secrets[Role.VIEWER]}"})
        ).json()["events"]
    assert event["actor"] == {"type": "user", "id": "the-operator"}


async def test_a_cross_origin_page_is_forbidden_and_a_wrong_token_unauthenticated(jobs: Jobs) -> None:
    foreign = await jobs.post("jobs", JOB, headers={"origin": "https://evil.example"})
    wrong = await jobs.client.get("/scheduler/jobs", headers={"authorization": "Bearer nonsense"})

    assert (error_of(foreign)["status"], error_of(foreign)["code"]) == (403, "forbidden")
    assert (error_of(wrong)["status"], error_of(wrong)["code"]) == (401, "unauthenticated")
    assert wrong.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.req("JOB-STO-13")
async def test_freeing_the_key_of_a_removed_job_is_audited(settings: Settings) -> None:
    _, secret = TokenStore(settings.data).new("root", Role.ADMIN)
    async with serving(settings) as jobs:
        jobs.client.headers["authorization"] = f"Bearer {secret}"
        job = await jobs.enqueued(idempotency_key="k-1")
        held = await jobs.post("keys/free", {"idempotency_key": "k-1", "reason": "again"})
        store = jobs.service.calls.store
        await jobs.post(f"jobs/{job['job_id']}/cancel")
        store.write(lambda tx: tx.remove([found for found in [tx.job(job["job_id"])] if found is not None]))
        removed = await jobs.post("jobs", {**JOB, "idempotency_key": "k-1"})
        freed = await jobs.post("keys/free", {"idempotency_key": "k-1", "reason": "again"})
        after = await jobs.post("jobs", {**JOB, "idempotency_key": "k-1"})
        [event] = (await jobs.get("audit", event_type="policy_override")).json()["events"]

    assert (error_of(held)["status"], error_of(held)["code"]) == (409, "idempotency_key_conflict")
    assert error_of(removed)["details"]["reason"] == "job_removed"
    assert freed.json() == {"freed": True, "idempotency_key": "k-1"}
    assert after.status_code == 201
    assert (event["actor"], event["reason"]) == ({"type": "user", "id": "root"}, "again")


# Invalid bodies


NO_JSON = [
    b"",
    b"{",
    b"{}{}",
    b"{'a':1}",
    b'{"object_id":"\xff\xfe"}',
    b'\xef\xbb\xbf{"a":1}',
    b'{"retry_delay_sec":NaN}',
    b'{"retry_delay_sec":Infinity}',
    b'{"retry_delay_sec":-Infinity}',
    b'{"object_id":"\\ud800"}',
    b'{"object_id":"a\nb"}',
    b'{"max_attempts":' + b"9" * 5000 + b"}",
    b'{"a":' * 100 + b"1" + b"}" * 100,
    b'{"a":1,"a":2,}',
]


@pytest.mark.req("JOB-API-8")
async def test_invalid_json_is_refused_with_its_place(jobs: Jobs) -> None:
    for content in NO_JSON:
        for path in ("jobs", "jobs/pull", "jobs/batch", "jobs/job_1/ack"):
            error = error_of(await raw(jobs, content, path))

            assert (error["status"], error["code"]) == (400, "malformed_json"), content
            assert error["details"]["faults"][0]["line"] >= 0


async def test_json_other_than_an_object_is_refused(jobs: Jobs) -> None:
    for content in (b"null", b"3", b'"text"', b"[{}]", b"true"):
        error = error_of(await raw(jobs, content))

        assert (error["status"], error["code"]) == (400, "body_not_object"), content


async def test_content_types_other_than_json_are_refused_and_its_parameters_allowed(jobs: Jobs) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""):
        other = await jobs.client.post("/scheduler/jobs", content=b"{}", headers={"content-type": content_type})

        assert (error_of(other)["status"], error_of(other)["code"]) == (415, "unsupported_media_type")
    plain = {"content-type": "application/json; charset=utf-8"}
    assert (await jobs.post("jobs/pull", PULL, headers=plain)).status_code == 200


async def test_the_body_limit_of_a_batch_is_eight_times_that_of_a_single_body(jobs: Jobs) -> None:
    padded = b'{"jobs":[]' + b" " * (2 * MIB) + b"}"

    assert error_of(await raw(jobs, padded, "jobs/batch"))["status"] == 422
    assert error_of(await raw(jobs, b" " * (8 * MIB + 1), "jobs/batch"))["status"] == 413
    assert error_of(await raw(jobs, padded, "jobs/pull"))["status"] == 413


async def test_a_body_of_unknown_length_is_measured_while_it_arrives(jobs: Jobs) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * (MIB // 8)

    response = await jobs.client.post("/scheduler/jobs", content=endless(), headers=JSON)

    assert (error_of(response)["status"], error_of(response)["code"]) == (413, "body_too_large")


QUERIES = [
    ("jobs", "limit=0", "invalid_limit"),
    ("jobs", "limit=1001", "invalid_limit"),
    ("jobs", "limit=1.5", "invalid_limit"),
    ("jobs", "limit=" + "9" * 400, "invalid_limit"),
    ("jobs", "status=done", "invalid_enum"),
    ("jobs", "cursor=x", "invalid_field"),
    ("jobs", "colour=red", "unknown_field"),
    ("jobs", "limit=1&limit=2", "invalid_field"),
    ("jobs", "object_id=%00", "invalid_field"),
    ("audit", "after=17", "invalid_field"),
    ("audit", "event_type=party", "invalid_enum"),
    ("metrics", "window_sec=59", "invalid_field"),
    ("metrics", "window_sec=604801", "invalid_field"),
    ("metrics", "window_sec=soon", "invalid_field"),
    ("metrics", "window=60", "unknown_field"),
    ("objects", "", "missing_field"),
    ("objects", "object_type=house", "invalid_enum"),
    ("objects", "object_type=memory&limit=0", "invalid_limit"),
    ("gates", "scope=", "invalid_field"),
    ("gates", "gate=risk_gate", "unknown_field"),
    ("rollbacks", "limit=1001", "invalid_limit"),
]


@pytest.mark.req("JOB-MET-3")
async def test_an_invalid_query_names_its_field(jobs: Jobs) -> None:
    for path, query, code in QUERIES:
        error = error_of(await jobs.client.get(f"/scheduler/{path}?{query}"))

        assert (error["status"], error["code"]) == (422, code), query
        assert error["details"]["fields"]


METHODS = [
    ("DELETE", "jobs", "GET, HEAD, POST"),
    ("PATCH", "jobs/job_000000000001", "GET, HEAD"),
    ("GET", "jobs/pull", "POST"),
    ("PUT", "jobs/ack-batch", "POST"),
    ("GET", "jobs/job_000000000001/ack", "POST"),
    ("POST", "audit", "GET, HEAD"),
    ("OPTIONS", "metrics", "GET, HEAD"),
    ("DELETE", "gates", "GET, HEAD, PUT"),
    ("PUT", "objects", "GET, HEAD, POST"),
]


async def test_a_wrong_method_lists_the_allowed_ones(jobs: Jobs) -> None:
    for method, path, allowed in METHODS:
        response = await jobs.client.request(method, f"/scheduler/{path}", headers=JSON)

        assert (error_of(response)["status"], error_of(response)["code"]) == (405, "method_not_allowed")
        assert response.headers["allow"] == allowed


async def test_other_routes_keep_the_codes_of_the_server(jobs: Jobs) -> None:
    for path in ("/schedulers", "/scheduler.json", "/api/v1/nothing"):
        assert error_of(await jobs.client.get(path))["code"] == "not_found"


async def test_an_impossible_path_has_the_same_error_form(jobs: Jobs) -> None:
    for path in ("objects/memory/a%0Ab", "%0A", "jobs/a/b"):
        error = error_of(await jobs.client.get(f"/scheduler/{path}"))

        assert (error["status"], error["code"]) == (404, "route_not_found"), path


# Errors of the server


async def test_a_defect_answers_with_the_id_of_its_log_entry_and_no_traceback(
    jobs: Jobs, quiet_logs: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("pendula.jobs.calls.operate.cancel", broken)
    response = await jobs.post("jobs/job_1/cancel", headers={"x-request-id": "the-mistake"})

    error = error_of(response)
    assert (error["status"], error["code"]) == (500, "internal")
    assert "secret detail" not in response.text
    assert response.headers["x-request-id"] == "the-mistake"
    logged = [
        line for line in quiet_logs.getvalue().splitlines() if '"the-mistake"' in line and "secret detail" in line
    ]
    assert len(logged) == 1


@pytest.mark.req("JOB-STO-5")
async def test_a_locked_store_answers_busy_and_nothing_changes(settings: Settings) -> None:
    def impatient(path: Path, _: Policy) -> SqliteStore:
        return SqliteStore(path, busy_seconds=0.02)

    async with serving(settings, open_store=impatient) as jobs:
        with closing(sqlite3.connect(Path(settings.data) / "stores/jobs/jobs.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            response = await jobs.post("jobs", JOB)
        found = (await jobs.get("jobs")).json()["jobs"]

    assert (error_of(response)["status"], error_of(response)["code"]) == (503, "storage_busy")
    assert response.headers["retry-after"] == "1"
    assert str(settings.data) not in response.text
    assert found == []


async def test_a_stopping_server_answers_waiting_pulls_and_new_requests(jobs: Jobs) -> None:
    waiting = asyncio.create_task(jobs.post("jobs/pull", {**PULL, "wait_ms": 30_000}))
    await jobs.until_waiting(1)
    jobs.service.stop()

    for response in (await waiting, await jobs.post("jobs", JOB), await jobs.get("jobs")):
        assert (error_of(response)["status"], error_of(response)["code"]) == (503, "shutting_down")
        assert response.headers["retry-after"] == "1"


async def test_concurrent_requests_above_the_limit_are_rate_limited(settings: Settings) -> None:
    async with serving(replace(settings, limits={"requests": 1})) as jobs:
        waiting = asyncio.create_task(jobs.post("jobs/pull", {**PULL, "wait_ms": 30_000}))
        await jobs.until_waiting(1)
        refused = await jobs.post("jobs", JOB)
        jobs.service.stop()
        await waiting

    assert (error_of(refused)["status"], error_of(refused)["code"]) == (429, "rate_limited")
    assert refused.headers["retry-after"] == "1"


async def test_waiting_pulls_take_at_most_half_of_the_places(settings: Settings) -> None:
    async with serving(replace(settings, limits={"requests": 4})) as jobs:
        waiting = [asyncio.create_task(jobs.post("jobs/pull", {**PULL, "wait_ms": 30_000})) for _ in range(2)]
        await jobs.until_waiting(2)
        refused = await jobs.post("jobs/pull", {**PULL, "wait_ms": 1})
        at_once = await jobs.post("jobs/pull", PULL)
        jobs.service.stop()
        await asyncio.gather(*waiting)

    assert (error_of(refused)["status"], error_of(refused)["code"]) == (429, "rate_limited")
    assert at_once.status_code == 200
