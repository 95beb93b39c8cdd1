"""The HTTP examples of the contract of jobs, unchanged: request in, status, headers and body out."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from pendula.jobs.model import PullClock, Vocabulary
from pendula.jobs.upkeep.verification import check
from pendula.server.settings import Settings
from tests.server.job_servers import DUE, JOB, QUICK, Jobs, error_of, serving

pytestmark = pytest.mark.anyio

WORKER = "worker-1"
FIELDS = [
    "job_id", "object_type", "object_id", "action", "run_at", "priority", "attempt", "max_attempts",
    "idempotency_key", "status", "last_error", "created_at", "updated_at", "scheduled_for", "worker_id",
    "lease_token", "lease_expires_at", "delivery_count", "correlation_id", "audit_event_id", "outcome", "queue",
    "payload", "cancel_requested_at", "progress", "outcome_result",
]  # fmt: skip


@pytest.fixture
async def jobs(settings: Settings) -> AsyncIterator[Jobs]:
    async with serving(settings) as found:
        yield found


# Enqueue


@pytest.mark.req("JOB-ENQ-1")
@pytest.mark.req("JOB-OBJ-1")
@pytest.mark.req("JOB-OBJ-2")
async def test_an_enqueue_stores_a_job_and_returns_its_location(jobs: Jobs) -> None:
    response = await jobs.post("jobs", {**JOB, "priority": "medium"})

    job = response.json()["job"]
    assert response.status_code == 201
    assert response.headers["location"] == f"/scheduler/jobs/{job['job_id']}"
    assert response.json() == {
        "deduplicated": False,
        "job": {
            "job_id": "job_000000000001",
            "object_type": "cognition",
            "object_id": "cg_123",
            "action": "revalidate",
            "run_at": "2026-02-21T00:00:00Z",
            "priority": "medium",
            "attempt": 0,
            "max_attempts": 3,
            "idempotency_key": "cg_123:revalidate:2026-02-21T00:00:00Z",
            "status": "queued",
            "last_error": None,
            "created_at": "2026-02-20T09:12:44.120331Z",
            "updated_at": "2026-02-20T09:12:44.120331Z",
            "scheduled_for": "2026-02-21T00:00:00Z",
            "worker_id": None,
            "lease_token": None,
            "lease_expires_at": None,
            "delivery_count": 0,
            "correlation_id": None,
            "audit_event_id": None,
            "outcome": None,
            "queue": "default",
            "payload": None,
            "cancel_requested_at": None,
            "progress": None,
            "outcome_result": None,
        },
    }
    assert (await jobs.client.get(response.headers["location"])).json() == {"job": job}


@pytest.mark.req("JOB-OBJ-2")
async def test_every_response_shows_the_whole_job_and_the_token_only_once(jobs: Jobs) -> None:
    job_id = (await jobs.enqueued())["job_id"]
    [given] = await jobs.pulled(now=DUE)

    shown = (await jobs.get(f"jobs/{job_id}")).json()["job"]
    [listed] = (await jobs.get("jobs")).json()["jobs"]

    assert sorted(given) == sorted(shown) == sorted(listed) == sorted(FIELDS)
    assert given["lease_token"].startswith("lt_")
    assert (shown["lease_token"], listed["lease_token"]) == (None, None)


@pytest.mark.req("JOB-ENQ-2")
async def test_a_repeated_enqueue_returns_the_stored_job_whatever_its_status(jobs: Jobs) -> None:
    job_id = (await jobs.enqueued())["job_id"]
    [given] = await jobs.pulled(now=DUE)
    await jobs.post(f"jobs/{job_id}/ack", {"result": "succeeded", "lease_token": given["lease_token"]})

    again = await jobs.post("jobs", {**JOB, "priority": "high", "max_attempts": 9, "correlation_id": "c"})

    assert again.status_code == 200
    assert "location" not in again.headers
    assert again.json()["deduplicated"] is True
    job = again.json()["job"]
    assert (job["job_id"], job["status"], job["priority"], job["max_attempts"]) == (job_id, "succeeded", "medium", 3)


@pytest.mark.req("JOB-ENQ-3")
async def test_a_key_of_other_work_is_a_conflict(jobs: Jobs) -> None:
    job_id = (await jobs.enqueued(idempotency_key="k-1"))["job_id"]

    response = await jobs.post("jobs", {**JOB, "object_type": "memory", "idempotency_key": "k-1"})

    assert error_of(response) == {
        "status": 409,
        "code": "idempotency_key_conflict",
        "message": "key is held by another job",
        "details": {"idempotency_key": "k-1", "job_id": job_id, "differs": ["object_type"]},
    }


@pytest.mark.req("JOB-ENQ-4")
@pytest.mark.req("JOB-ENQ-5")
async def test_a_time_in_the_past_is_refused_and_now_is_not(jobs: Jobs) -> None:
    stored = await jobs.enqueued(run_at="2026-02-20T23:00:00Z")
    jobs.clock.turn_to("2026-02-21T00:00:10.000213Z")

    late = await jobs.post("jobs", {**JOB, "run_at": "2026-02-20T00:00:00Z"})
    now = await jobs.post("jobs", {**JOB, "run_at": jobs.clock.text})
    repeated = await jobs.post("jobs", {**JOB, "run_at": "2026-02-20T23:00:00Z"})

    error = error_of(late)
    assert (error["status"], error["code"]) == (422, "run_at_in_past")
    assert error["message"] == "run_at must not be earlier than now"
    times = {"run_at": "2026-02-20T00:00:00Z", "now": "2026-02-21T00:00:10.000213Z"}
    assert error["details"].items() >= times.items()
    assert now.status_code == 201
    assert (repeated.status_code, repeated.json()["job"]["job_id"]) == (200, stored["job_id"])


@pytest.mark.req("JOB-ENQ-6")
async def test_omitted_and_null_members_have_their_defaults(jobs: Jobs) -> None:
    nulls = dict.fromkeys(("run_at", "priority", "max_attempts"))
    job = await jobs.enqueued(**nulls)

    assert (job["run_at"], job["priority"], job["max_attempts"]) == (jobs.clock.text, "medium", 3)
    assert job["idempotency_key"] == f"cg_123:revalidate:{jobs.clock.text}"


@pytest.mark.req("JOB-ENQ-7")
async def test_all_faults_of_a_body_are_reported_at_once(jobs: Jobs) -> None:
    response = await jobs.post("jobs", {**JOB, "action": "reinstate_check", "run_at": "2026-02-21T00:00:00"})

    assert error_of(response) == {
        "status": 422,
        "code": "validation_failed",
        "message": "2 fields are invalid",
        "details": {
            "fields": [
                {
                    "field": "action",
                    "code": "invalid_enum",
                    "allowed": ["verify", "revalidate", "decay", "archive", "reinstate-check"],
                },
                {"field": "run_at", "code": "naive_timestamp"},
            ]
        },
    }


UNREADABLE: list[tuple[Any, str]] = [
    ("2026-02-21T00:00:00", "naive_timestamp"),
    ("2026-02-21", "invalid_timestamp"),
    ("tomorrow", "invalid_timestamp"),
    ("", "invalid_timestamp"),
    (1771632000, "invalid_timestamp"),
    ("2026-02-30T00:00:00Z", "invalid_timestamp"),
    ("2026-02-21 00:00:00Z", "invalid_timestamp"),
    ("2026-02-21T00:00:60Z", "invalid_timestamp"),
    ("2026-02-21T24:00:00Z", "invalid_timestamp"),
    ("2026-02-21t00:00:00z", "invalid_timestamp"),
    ("1969-12-31T23:59:59Z", "timestamp_out_of_range"),
    ("9999-12-31T23:59:59-01:00", "timestamp_out_of_range"),
]


@pytest.mark.req("JOB-OBJ-10")
@pytest.mark.req("JOB-OBJ-11")
async def test_an_unreadable_time_has_its_code(jobs: Jobs) -> None:
    for run_at, code in UNREADABLE:
        error = error_of(await jobs.post("jobs", {**JOB, "run_at": run_at}))

        assert (error["status"], error["code"]) == (422, code), run_at
        assert [fault["field"] for fault in error["details"]["fields"]] == ["run_at"]


@pytest.mark.req("JOB-ENQ-10")
async def test_a_batch_has_an_answer_for_each_entry_and_atomic_stores_all_or_nothing(jobs: Jobs) -> None:
    good, faulty = JOB, {**JOB, "action": "dance"}

    mixed = await jobs.post("jobs/batch", {"jobs": [good, faulty, good]})
    whole = await jobs.post("jobs/batch", {"jobs": [{**good, "object_id": "cg_9"}, faulty], "atomic": True})

    assert mixed.status_code == 200
    results = mixed.json()["results"]
    assert [entry["status"] for entry in results] == [201, 422, 200]
    assert results[1]["error"]["code"] == "invalid_enum"
    assert (results[0]["deduplicated"], results[2]["deduplicated"]) == (False, True)
    error = error_of(whole)
    assert (error["status"], error["code"]) == (422, "batch_rejected")
    assert [entry["status"] for entry in error["details"]["results"]] == [422, 422]
    assert len((await jobs.get("jobs")).json()["jobs"]) == 1


# Pull


@pytest.mark.req("JOB-PULL-1")
@pytest.mark.req("JOB-PULL-2")
@pytest.mark.req("JOB-PULL-9")
async def test_a_pull_gives_due_jobs_with_a_lease_by_the_server_clock(jobs: Jobs) -> None:
    job_id = (await jobs.enqueued())["job_id"]
    jobs.clock.turn_to("2026-02-21T00:00:10.004118Z")

    response = await jobs.post("jobs/pull", {"now": "2026-02-21T00:00:10Z", "limit": 100, "worker_id": WORKER})

    body = response.json()
    [job] = body["jobs"]
    assert response.status_code == 200
    assert (body["now"], body["count"], body["reclaimed"]) == ("2026-02-21T00:00:10Z", 1, 0)
    assert (job["job_id"], job["status"], job["worker_id"], job["delivery_count"]) == (job_id, "running", WORKER, 1)
    assert job["lease_expires_at"] == "2026-02-21T00:15:10.004118Z"
    assert job["lease_token"].startswith("lt_")


@pytest.mark.req("JOB-PULL-6")
async def test_the_order_is_time_then_priority_then_enqueue(jobs: Jobs) -> None:
    for name, run_at, priority in [
        ("A", DUE, "low"),
        ("B", DUE, "high"),
        ("C", "2026-02-20T23:59:59Z", "low"),
        ("D", DUE, "high"),
    ]:
        await jobs.enqueued(object_id=name, run_at=run_at, priority=priority)

    assert [job["object_id"] for job in await jobs.pulled(now=DUE)] == ["C", "B", "D", "A"]


@pytest.mark.req("JOB-PULL-8")
async def test_a_pull_with_nothing_due_is_empty_and_writes_nothing(jobs: Jobs) -> None:
    await jobs.enqueued()
    before = (await jobs.get("audit")).json()

    response = await jobs.post("jobs/pull", {"worker_id": WORKER})

    assert response.json() == {"now": jobs.clock.text, "count": 0, "reclaimed": 0, "jobs": []}
    assert (await jobs.get("audit")).json() == before


@pytest.mark.req("JOB-PULL-2")
async def test_with_the_server_clock_a_later_now_is_refused(settings: Settings) -> None:
    async with serving(settings, replace(QUICK, pull_clock=PullClock.SERVER)) as jobs:
        error = error_of(await jobs.post("jobs/pull", {"worker_id": WORKER, "now": DUE}))

    assert (error["status"], error["code"]) == (422, "now_in_future")


# Ack and fail


@pytest.mark.req("JOB-ACK-1")
@pytest.mark.req("JOB-ACK-7")
@pytest.mark.req("JOB-ACK-11")
async def test_an_ack_completes_the_job_and_returns_the_next_due_time_of_the_object(jobs: Jobs) -> None:
    job_id = (await jobs.enqueued())["job_id"]
    [given] = await jobs.pulled(now=DUE)
    ack = {
        "result": "succeeded",
        "audit_event_id": "aud_789",
        "next_action_at": "2026-02-28T00:00:00Z",
        "worker_id": WORKER,
        "lease_token": given["lease_token"],
    }

    response = await jobs.post(f"jobs/{job_id}/ack", ack)
    again = await jobs.post(f"jobs/{job_id}/ack", ack)

    body = response.json()
    about = {"object_type": "cognition", "object_id": "cg_123", "next_action_at": "2026-02-28T00:00:00Z"}
    assert (response.status_code, body["already_acked"], body["object"]) == (200, False, about)
    assert (body["job"]["status"], body["job"]["audit_event_id"]) == ("succeeded", "aud_789")
    follow = (await jobs.get(f"jobs/{body['followup_job_id']}")).json()["job"]
    assert (follow["run_at"], follow["action"]) == ("2026-02-28T00:00:00Z", "revalidate")
    assert (again.status_code, again.json()["already_acked"]) == (200, True)
    known = (await jobs.get("objects/cognition/cg_123")).json()
    assert known == {**about, "version": 1, "state": None}


@pytest.mark.req("JOB-ACK-11")
async def test_an_object_whose_id_has_slashes_is_found(jobs: Jobs) -> None:
    await jobs.enqueued(object_id="a/b c?")
    [given] = await jobs.pulled(now=DUE)
    await jobs.post(f"jobs/{given['job_id']}/ack", {"result": "succeeded", "lease_token": given["lease_token"]})

    response = await jobs.get("objects/cognition/a%2Fb%20c%3F")

    assert (response.status_code, response.json()["object_id"]) == (200, "a/b c?")


@pytest.mark.req("JOB-ACK-2")
async def test_an_ack_with_another_result_names_the_fail_call(jobs: Jobs) -> None:
    await jobs.enqueued()
    [given] = await jobs.pulled(now=DUE)

    error = error_of(await jobs.post(f"jobs/{given['job_id']}/ack", {"result": "failed"}))

    assert (error["status"], error["code"]) == (422, "invalid_result")
    assert "fail" in error["message"]


@pytest.mark.req("JOB-ACK-5")
@pytest.mark.req("JOB-ACK-8")
async def test_a_worker_with_an_expired_lease_learns_which_worker_holds_the_job(jobs: Jobs) -> None:
    await jobs.enqueued()
    [first] = await jobs.pulled("worker-1", now=DUE, lease_sec=60)
    jobs.clock.pass_by(61)
    reply = (await jobs.post("jobs/pull", {"worker_id": "worker-2", "now": DUE})).json()

    late = await jobs.post(f"jobs/{first['job_id']}/ack", {"result": "succeeded", "lease_token": first["lease_token"]})

    assert (reply["reclaimed"], reply["count"]) == (1, 1)
    assert error_of(late) == {
        "status": 409,
        "code": "lease_lost",
        "message": "another delivery holds this job",
        "details": {"job_id": first["job_id"], "delivery_count": 2, "current_worker_id": "worker-2"},
    }


@pytest.mark.req("JOB-FAIL-1")
@pytest.mark.req("JOB-FAIL-9")
async def test_a_failed_job_is_retried_at_its_time_plus_the_delay(jobs: Jobs) -> None:
    await jobs.enqueued()
    jobs.clock.turn_to("2026-02-21T00:00:12Z")
    [given] = await jobs.pulled()
    expected = {
        "error": "timeout while verifying evidence",
        "retry_delay_sec": 300,
        "worker_id": WORKER,
        "lease_token": given["lease_token"],
    }

    response = await jobs.post(f"jobs/{given['job_id']}/fail", expected)
    again = await jobs.post(f"jobs/{given['job_id']}/fail", expected)

    body = response.json()
    job = body["job"]
    assert (response.status_code, body["already_failed"], body["retry"]) == (200, False, True)
    assert (job["status"], job["attempt"], job["run_at"]) == ("queued", 1, "2026-02-21T00:05:00Z")
    assert job["last_error"] == "timeout while verifying evidence"
    assert (again.json()["already_failed"], again.json()["job"]["attempt"]) == (True, 1)


@pytest.mark.req("JOB-FAIL-11")
@pytest.mark.req("JOB-FAIL-8")
async def test_the_history_has_every_error(jobs: Jobs) -> None:
    await jobs.enqueued()
    for error, more in (("first", {"retry_delay_sec": 0}), ("second", {"retryable": False})):
        [given] = await jobs.pulled(now=DUE)
        body = {"error": error, "lease_token": given["lease_token"], **more}
        status = (await jobs.post(f"jobs/{given['job_id']}/fail", body)).json()["job"]["status"]

    history = (await jobs.get(f"jobs/{given['job_id']}/history")).json()

    assert status == "failed"
    assert [(one["attempt"], one["worker_id"], one["error"]) for one in history["errors"]] == [
        (1, WORKER, "first"),
        (2, WORKER, "second"),
    ]
    assert [event["event_type"] for event in history["events"]] == ["scheduler_job"] * 5


# The other calls


@pytest.mark.req("JOB-API-10")
@pytest.mark.req("JOB-API-11")
async def test_renew_extends_a_lease_and_release_returns_the_job(jobs: Jobs) -> None:
    job_id = (await jobs.enqueued())["job_id"]
    [given] = await jobs.pulled(now=DUE, lease_sec=60)
    proof = {"worker_id": WORKER, "lease_token": given["lease_token"]}
    jobs.clock.pass_by(30)

    renewed = await jobs.post(f"jobs/{job_id}/renew", {**proof, "lease_sec": 120})
    released = await jobs.post(f"jobs/{job_id}/release", proof)

    assert renewed.json() == {"lease_expires_at": "2026-02-20T09:15:14.120331Z", "cancel_requested_at": None}
    job = released.json()["job"]
    assert (job["status"], job["attempt"], job["run_at"]) == ("queued", 0, DUE)


@pytest.mark.req("JOB-API-12")
@pytest.mark.req("JOB-API-13")
async def test_cancel_ends_a_queued_job_and_requeue_revives_a_dead_letter(jobs: Jobs) -> None:
    cancelled_id = (await jobs.enqueued(object_id="cg_1"))["job_id"]
    cancelled = await jobs.post(f"jobs/{cancelled_id}/cancel", {"reason": "not needed"})
    dead_id = (await jobs.enqueued(object_id="cg_2", max_attempts=1))["job_id"]
    await jobs.pulled(now=DUE)
    await jobs.post(f"jobs/{dead_id}/fail", {"error": "x"})

    revived = await jobs.post(f"jobs/{dead_id}/requeue", {"reason": "fixed"})

    job = cancelled.json()["job"]
    assert (job["status"], job["last_error"]) == ("failed", "cancelled: not needed")
    job = revived.json()["job"]
    assert (job["status"], job["attempt"], job["run_at"]) == ("queued", 0, jobs.clock.text)


@pytest.mark.req("JOB-ACK-9")
async def test_a_batch_of_acks_has_a_result_for_each(jobs: Jobs) -> None:
    for name in ("a", "b"):
        await jobs.enqueued(object_id=name)
    one, two = await jobs.pulled(now=DUE)

    response = await jobs.post(
        "jobs/ack-batch",
        {
            "acks": [
                {"job_id": one["job_id"], "result": "succeeded", "lease_token": one["lease_token"]},
                {"job_id": two["job_id"], "result": "succeeded", "lease_token": "lt_wrong"},
                {"job_id": "job_nope", "result": "succeeded"},
            ]
        },
    )

    results = response.json()["results"]
    assert [entry["status"] for entry in results] == [200, 409, 404]
    assert [entry["error"]["code"] for entry in results[1:]] == ["lease_lost", "job_not_found"]


@pytest.mark.req("JOB-API-3")
async def test_an_unknown_job_is_not_found(jobs: Jobs) -> None:
    assert error_of(await jobs.get("jobs/job_nope")) == {
        "status": 404,
        "code": "job_not_found",
        "message": "no job job_nope",
        "details": {"job_id": "job_nope"},
    }


@pytest.mark.req("JOB-API-15")
async def test_pages_are_newest_first_and_stable_while_jobs_are_added(jobs: Jobs) -> None:
    for number in range(5):
        await jobs.enqueued(object_id=f"o{number}")

    first = (await jobs.get("jobs", limit=2)).json()
    await jobs.enqueued(object_id="later")
    second = (await jobs.get("jobs", limit=2, cursor=first["next_cursor"])).json()
    last = (await jobs.get("jobs", limit=2, cursor=second["next_cursor"], status="queued")).json()

    pages = [[job["object_id"] for job in page["jobs"]] for page in (first, second, last)]
    assert pages == [["o4", "o3"], ["o2", "o1"], ["o0"]]
    assert last["next_cursor"] is None


# The trail


@pytest.mark.req("JOB-AUD-7")
@pytest.mark.req("JOB-API-7")
async def test_the_trail_names_the_caller_and_the_request(jobs: Jobs) -> None:
    asked = await jobs.post("jobs", JOB, headers={"x-request-id": "req-7"})
    [given] = await jobs.pulled(now=DUE)
    await jobs.post(
        f"jobs/{given['job_id']}/ack",
        {"result": "succeeded", "next_action_at": "2026-02-28T00:00:00Z", "lease_token": given["lease_token"]},
    )

    trail = (await jobs.get("audit", limit=2)).json()
    rest = (await jobs.get("audit", after=trail["next_cursor"], object_type="cognition", object_id="cg_123")).json()

    assert asked.headers["x-request-id"] == "req-7"
    first, second = trail["events"]
    assert (first["actor"], first["metadata"]) == ({"type": "service", "id": "local"}, {"request_id": "req-7"})
    assert second["actor"] == {"type": "worker", "id": WORKER}
    [change] = rest["events"]
    assert change["event_type"] == "state_transition"
    assert (change["before"], change["after"]) == (
        {"next_action_at": None},
        {"next_action_at": "2026-02-28T00:00:00Z"},
    )
    assert change["evidence_refs"] == [f"scheduler_job:{given['job_id']}"]
    assert check(jobs.service.calls.store) == []


async def test_the_configured_vocabulary_is_accepted_and_documented(settings: Settings) -> None:
    words = Vocabulary(("memory", "document"), ("verify", "translate"))
    async with serving(settings, replace(QUICK, vocabulary=words)) as jobs:
        stored = await jobs.post("jobs", {"object_type": "document", "object_id": "d", "action": "translate"})
        error = error_of(await jobs.post("jobs", {**JOB, "object_type": "memory"}))
        described = (await jobs.client.get("/openapi.json")).json()["components"]["schemas"]

    assert stored.status_code == 201
    assert error["details"]["fields"][0]["allowed"] == ["verify", "translate"]
    assert described["SchedulerAction"] == {"enum": ["verify", "translate"]}
    assert described["SchedulerObjectType"] == {"enum": ["memory", "document"]}
