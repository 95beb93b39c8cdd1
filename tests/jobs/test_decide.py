"""Decisions about one job, against the numbers of the requirement document."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.decide import JobChange
from pendula.jobs.messages import Ack, Fail, Proof, Renew, job_json, status_of
from pendula.jobs.model import SECOND, Actor, Ended, Job, Policy, Refused, job_id
from pendula.jobs.reasons import stated
from pendula.jobs.sentences import sentence_of
from tests.jobs.samples import LEASE, MIDNIGHT, REQUEST, code_of, queued, running

PUBLIC = (
    "job_id", "object_type", "object_id", "action", "run_at", "priority", "attempt", "max_attempts", "idempotency_key",
    "status", "last_error", "created_at", "updated_at", "scheduled_for", "worker_id", "lease_token",
    "lease_expires_at", "delivery_count", "correlation_id", "audit_event_id", "outcome", "queue",
    "payload", "cancel_requested_at", "progress", "outcome_result",
)  # fmt: skip


WAYS: dict[str, Callable[[Job], JobChange]] = {
    "fail": lambda held: decide.failed(held, Fail("x"), MIDNIGHT, Policy()),
    "for good": lambda held: decide.failed(held, Fail("x", retryable=False), MIDNIGHT, Policy()),
    "expire": lambda held: decide.expired(held, MIDNIGHT + LEASE, Policy()),
    "release": lambda held: decide.released(held, MIDNIGHT),
    "ack": lambda held: decide.acked(held, Ack(), MIDNIGHT),
}


# The job object


@pytest.mark.req("JOB-OBJ-1", "JOB-OBJ-2")
def test_a_job_shows_all_fields_in_the_specified_order_and_no_token() -> None:
    shown = job_json(running())

    assert tuple(shown) == PUBLIC
    assert shown["lease_token"] is None


@pytest.mark.req("JOB-OBJ-3")
@given(st.lists(st.integers(1, 1 << 59), min_size=2, max_size=2, unique=True))
def test_ids_are_well_formed_and_sort_in_the_order_of_creation(numbers: list[int]) -> None:
    first, second = (job_id(number) for number in sorted(numbers))

    assert first < second
    for name in (first, second):
        digits = name.removeprefix("job_")
        assert digits != name
        assert 8 <= len(digits) <= 40
        assert digits.isascii()
        assert digits.isalnum()


@pytest.mark.req("JOB-OBJ-12", "JOB-OBJ-10")
def test_the_derived_key_has_object_action_and_the_formatted_time() -> None:
    assert queued().idempotency_key == "cg_123:revalidate:2026-02-21T00:00:00Z"


@pytest.mark.req("JOB-ENQ-6", "JOB-OBJ-12")
def test_the_derived_key_of_a_job_for_now_has_the_assigned_instant() -> None:
    job = decide.new_job(replace(REQUEST, run_at=None), 1, MIDNIGHT + 5)

    assert isinstance(job, Job)
    assert job.run_at == job.scheduled_for == MIDNIGHT + 5
    assert job.idempotency_key == "cg_123:revalidate:2026-02-21T00:00:00.000005Z"


@pytest.mark.req("JOB-ENQ-4")
def test_a_time_equal_to_now_is_accepted_and_an_earlier_one_is_not() -> None:
    at_once = decide.new_job(REQUEST, 1, MIDNIGHT)
    late = decide.new_job(REQUEST, 1, MIDNIGHT + 1)

    assert isinstance(at_once, Job)
    assert isinstance(late, Refused)
    assert (status_of(late), late.code) == (422, "run_at_in_past")
    assert late.details["run_at"] == "2026-02-21T00:00:00Z"
    assert late.details["now"] == "2026-02-21T00:00:00.000001Z"
    assert late.details["fields"] == [{"field": "run_at", "code": "run_at_in_past"}]


@pytest.mark.req("JOB-OBJ-13", "JOB-OBJ-12")
def test_a_retry_changes_run_at_but_not_the_key_or_the_requested_time() -> None:
    before = running()

    after = decide.failed(before, Fail("x", 300 * SECOND), MIDNIGHT, Policy()).job

    assert after.run_at == MIDNIGHT + 300 * SECOND
    assert (after.scheduled_for, after.idempotency_key) == (before.scheduled_for, before.idempotency_key)


@pytest.mark.req("JOB-OBJ-14")
@pytest.mark.parametrize("length", [1, 4095, 4096, 4097, 100_000])
def test_an_error_text_is_truncated_at_4096_characters_with_a_mark(length: int) -> None:
    error = "é" * length

    kept = decide.failed(running(), Fail(error), MIDNIGHT, Policy()).job.last_error

    assert kept is not None
    if length <= 4096:
        assert kept == error
    else:
        assert kept == "é" * (4096 - 12) + "…[truncated]"


@pytest.mark.req("JOB-OBJ-14")
def test_an_ack_keeps_the_last_error() -> None:
    assert decide.acked(running(last_error="why"), Ack(), MIDNIGHT).job.last_error == "why"


# Duplicates


@pytest.mark.req("JOB-ENQ-2", "JOB-ENQ-5")
def test_the_same_work_returns_the_stored_job_whatever_the_other_fields() -> None:
    stored = queued(status="succeeded")
    other = replace(REQUEST, priority=0, max_attempts=9, correlation_id="c")

    assert decide.duplicate(other, stored) is stored
    assert decide.duplicate(replace(REQUEST, run_at=None), stored) is stored


@pytest.mark.req("JOB-ENQ-3")
@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"object_type": "memory"}, ["object_type"]),
        ({"object_id": "cg_1", "action": "decay"}, ["object_id", "action"]),
        ({"run_at": MIDNIGHT + 1}, ["scheduled_for"]),
    ],
)
def test_other_work_under_a_stored_key_is_a_conflict_that_names_the_difference(
    change: dict[str, Any], differs: list[str]
) -> None:
    stored = queued(idempotency_key="k-1")

    found = decide.duplicate(replace(REQUEST, idempotency_key="k-1", **change), stored)

    assert isinstance(found, Refused)
    assert (status_of(found), found.code) == (409, "idempotency_key_conflict")
    assert found.details == {"idempotency_key": "k-1", "job_id": stored.job_id, "differs": differs}


# Leases


@pytest.mark.req("JOB-PULL-1", "JOB-PULL-9", "JOB-OBJ-7")
def test_a_delivery_raises_the_fence_but_not_the_attempt() -> None:
    job = running(attempt=1, delivery_count=4)

    assert (job.status, job.worker_id, job.delivery_count, job.attempt) == ("running", "w1", 5, 1)
    assert job.lease_expires_at == MIDNIGHT + LEASE


@pytest.mark.req("JOB-ACK-5", "JOB-ACK-6")
@pytest.mark.parametrize(
    ("fields", "proof", "late", "code"),
    [
        ({}, Proof("w1", "t1"), 0, None),
        ({}, Proof(), 0, None),
        ({}, Proof("w1"), 0, None),
        ({"status": "queued"}, Proof("w2", "t2"), LEASE, "job_not_running"),
        ({"status": "dead_letter"}, Proof("w1", "t1"), 0, "job_not_running"),
        ({}, Proof("w2"), LEASE, "lease_lost"),
        ({}, Proof("w1", "t2"), LEASE, "lease_lost"),
        ({"expired": 1}, Proof("w2", "t1"), LEASE, "lease_lost"),
        ({"expired": 1}, Proof("w1"), 0, "lease_token_required"),
        ({"expired": 1}, Proof("w1", "t1"), 0, None),
        ({"expired": 1}, Proof(None, "t1"), 0, None),
        ({}, Proof("w1", "t1"), LEASE - 1, None),
        ({}, Proof("w1", "t1"), LEASE, "lease_expired"),
        ({}, Proof(), LEASE, "lease_expired"),
    ],
)
def test_only_the_lease_holder_finishes_a_delivery_and_rejections_are_ordered(
    fields: dict[str, Any], proof: Proof, late: int, code: str | None
) -> None:
    job = replace(running(), **fields)

    assert code_of(decide.holding(job, proof, MIDNIGHT + late)) == code


@pytest.mark.req("JOB-ACK-5")
def test_a_lost_lease_names_the_current_holder() -> None:
    found = decide.holding(running(worker="worker-2", delivery_count=1), Proof("worker-1"), MIDNIGHT)

    assert isinstance(found, Refused)
    assert found.details == {"job_id": queued().job_id, "delivery_count": 2, "current_worker_id": "worker-2"}
    assert found.message == "another delivery holds this job"


@pytest.mark.req("JOB-ACK-5", "JOB-FAIL-9")
@pytest.mark.parametrize(
    ("deliveries", "token", "ended", "expected"),
    [
        (1, "t1", Ended.ACK, True),
        (1, None, Ended.ACK, True),
        (2, None, Ended.ACK, False),
        (2, "t1", Ended.ACK, True),
        (1, "t0", Ended.ACK, False),
        (1, "t1", Ended.FAIL, False),
    ],
)
def test_a_repeated_call_is_recognised_by_its_token_or_as_the_only_delivery(
    deliveries: int, token: str | None, ended: Ended, expected: bool
) -> None:
    done = decide.acked(running(delivery_count=deliveries - 1), Ack(), MIDNIGHT).job

    assert decide.repeats(done, Proof(None, token), ended) is expected


@pytest.mark.req("JOB-OBJ-8")
def test_the_token_of_a_finished_delivery_is_stored_as_a_hash_without_rights() -> None:
    job = decide.released(running(), MIDNIGHT).job

    assert (job.lease, job.worker_id, job.lease_expires_at) == (None, None, None)
    assert job.last_lease == sha256(b"t1").digest()[:16]


@pytest.mark.req("JOB-API-10")
@pytest.mark.parametrize(("asked", "expected"), [(10, 60), (60, 65), (3600, 3605)])
def test_a_renewal_never_shortens_a_lease(asked: int, expected: int) -> None:
    after = decide.renewed(running(), Renew(worker_id="w1", lease_token="t1"), MIDNIGHT + 5 * SECOND, asked * SECOND)

    assert after.lease_expires_at == MIDNIGHT + expected * SECOND


@pytest.mark.req("JOB-API-11", "JOB-OBJ-7")
def test_a_release_changes_neither_time_nor_attempt() -> None:
    before = running(attempt=2)

    after = decide.released(before, MIDNIGHT + 9).job

    assert (after.status, after.run_at, after.attempt) == ("queued", before.run_at, 2)
    assert after.expired == 0


# The operator


@pytest.mark.req("JOB-API-12", "JOB-OBJ-6")
@pytest.mark.parametrize("status", ["succeeded", "failed", "dead_letter"])
def test_a_finished_job_cannot_be_cancelled(status: str) -> None:
    refused = decide.cancelled(queued(status=status, last_error="cancelled: why"), stated("why"), MIDNIGHT)
    done = decide.cancelled(queued(), stated("why"), MIDNIGHT)

    assert code_of(refused) == "job_not_queued"
    assert isinstance(done, JobChange)
    assert (done.job.status, done.job.last_error, done.job.attempt) == ("failed", "cancelled: why", 0)


@pytest.mark.req("JOB-API-13", "JOB-OBJ-6")
@pytest.mark.parametrize("status", ["queued", "running", "succeeded"])
def test_only_dead_letters_failed_and_cancelled_jobs_are_requeued(status: str) -> None:
    user = Actor("user", "ann")
    dead = queued(status="dead_letter", attempt=3, last_error="x")

    done = decide.requeued(dead, None, "mended", user, MIDNIGHT + 9)

    assert code_of(decide.requeued(queued(status=status), None, None, user, MIDNIGHT)) == "job_not_dead_letter"
    assert isinstance(done, JobChange)
    assert (done.job.status, done.job.attempt, done.job.run_at) == ("queued", 0, MIDNIGHT + 9)
    assert done.job.idempotency_key == dead.idempotency_key
    assert sentence_of(done.reason) == "requeued by ann: mended"


@pytest.mark.req("JOB-OBJ-8")
@given(st.lists(st.sampled_from(sorted(WAYS)), max_size=12), st.integers(1, 5))
def test_attempts_stay_in_range_and_only_running_jobs_have_leases(ways: list[str], most: int) -> None:
    job = queued(max_attempts=most)
    for way in ways:
        if job.status != "queued":
            break
        held = decide.deliver(job, "w", b"lease", MIDNIGHT, LEASE).job
        assert held.worker_id is not None
        assert held.lease is not None
        job = WAYS[way](held).job

        assert 0 <= job.attempt <= job.max_attempts
        assert job.status != "dead_letter" or job.attempt == job.max_attempts
        assert (job.worker_id, job.lease, job.lease_expires_at) == (None, None, None)
