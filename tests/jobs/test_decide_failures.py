"""Failures and expired leases of a job, against the numbers of the requirement document."""

from fractions import Fraction
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.jobs import decide
from pendula.jobs.messages import Fail, job_json
from pendula.jobs.model import SECOND, Policy, RetryBase
from pendula.kernel.time import parse_utc
from tests.jobs.samples import LEASE, MIDNIGHT, queued, running


@pytest.mark.req("JOB-FAIL-1", "JOB-FAIL-2")
@pytest.mark.parametrize(("most", "statuses"), [(3, ["queued", "queued", "dead_letter"]), (1, ["dead_letter"])])
def test_the_increased_attempt_decides(most: int, statuses: list[str]) -> None:
    job = running(max_attempts=most)
    seen = []
    for attempt in range(1, most + 1):
        job = decide.failed(job, Fail("x"), MIDNIGHT, Policy()).job
        seen.append(job.status)
        assert job.attempt == attempt
        job = decide.deliver(job, "w1", b"", MIDNIGHT, LEASE).job

    assert seen == statuses


@pytest.mark.req("JOB-FAIL-4")
@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (1, 64_480_365),
        (2, 127_798_187),
        (3, 219_734_509),
        (6, 1_778_054_671),
        (7, 3_734_212_896),
        (8, 3_614_646_869),
        (99, 3_547_654_024),
    ],
)
def test_delays_match_golden_values_of_sha256sum_and_bc(attempt: int, expected: int) -> None:
    assert decide.backoff_us("job_01HZX3T9", attempt, Policy()) == expected


@pytest.mark.req("JOB-FAIL-4")
@given(st.text("0123456789ABCDEF", min_size=8, max_size=12), st.integers(1, 100))
def test_the_delay_is_the_exact_formula_rounded_down(name: str, attempt: int) -> None:
    seconds = min(60 * 2 ** (attempt - 1), 3600)
    h = Fraction(int(sha256(f"job_{name}|{attempt}".encode()).hexdigest()[:16], 16), 2**64)

    found = decide.backoff_us(f"job_{name}", attempt, Policy())

    assert found == seconds * SECOND * (Fraction(9, 10) + Fraction(1, 5) * h) // 1
    assert decide.backoff_us(f"job_{name}", attempt, Policy(retry_jitter=False)) == seconds * SECOND


@pytest.mark.req("JOB-FAIL-5")
@pytest.mark.parametrize(
    ("failed_at", "delay", "policy", "expected"),
    [
        ("00:00:12", 300, Policy(), "00:05:00"),
        ("01:00:00", 300, Policy(), "01:00:05"),
        ("01:00:00", 2, Policy(), "01:00:02"),
        ("01:00:00", 0, Policy(), "01:00:00"),
        ("01:00:00", 300, Policy(min_retry_gap_sec=0), "01:00:00"),
        ("01:00:00", 300, Policy(min_retry_gap_sec=3600), "01:05:00"),
        ("00:00:12", 300, Policy(retry_base=RetryBase.NOW), "00:05:12"),
        ("01:00:00", 300, Policy(retry_base=RetryBase.NOW), "01:05:00"),
    ],
)
def test_the_next_retry_is_at_now_plus_the_delay(failed_at: str, delay: int, policy: Policy, expected: str) -> None:
    now = parse_utc(f"2026-02-21T{failed_at}Z")

    after = decide.failed(running(), Fail("x", delay * SECOND), now, policy).job

    assert after.run_at == parse_utc(f"2026-02-21T{expected}Z")


def test_the_next_retry_is_at_most_the_latest_instant() -> None:
    end = parse_utc("9999-12-31T23:59:59.999999Z")

    after = decide.failed(running(run_at=end), Fail("x", 300 * SECOND), MIDNIGHT, Policy()).job

    assert job_json(after)["run_at"] == "9999-12-31T23:59:59.999999Z"


@pytest.mark.req("JOB-FAIL-6")
def test_a_dead_letter_keeps_its_time_and_has_no_lease() -> None:
    before = running(max_attempts=1)

    after = decide.failed(before, Fail("x", 300 * SECOND), MIDNIGHT, Policy()).job

    assert (after.status, after.run_at, after.attempt) == ("dead_letter", before.run_at, 1)
    assert (after.lease, after.worker_id, after.lease_expires_at) == (None, None, None)


@pytest.mark.req("JOB-FAIL-8")
def test_a_permanent_failure_counts_one_more_attempt() -> None:
    after = decide.failed(running(), Fail("x", retryable=False), MIDNIGHT, Policy()).job

    assert (after.status, after.attempt, after.last_error) == ("failed", 1, "x")


@pytest.mark.req("JOB-FAIL-12")
@pytest.mark.parametrize("base", list(RetryBase))
def test_an_expired_lease_is_a_failed_attempt_and_the_job_keeps_its_place(base: RetryBase) -> None:
    before = running(worker="worker-1")

    after = decide.expired(before, MIDNIGHT + 3600 * SECOND, Policy(retry_base=base)).job

    assert (after.status, after.attempt, after.last_error) == ("queued", 1, "lease_expired: worker-1")
    assert (after.run_at, after.expired) == (before.run_at, 1)


@pytest.mark.req("JOB-FAIL-12")
def test_an_expired_lease_waits_for_the_configured_delay() -> None:
    policy = Policy(lease_expiry_retry_delay_sec=30)

    after = decide.expired(running(), MIDNIGHT + 3600 * SECOND, policy).job

    assert after.run_at == MIDNIGHT + 3605 * SECOND


@pytest.mark.req("JOB-FAIL-12")
def test_a_job_that_kills_every_worker_becomes_a_dead_letter() -> None:
    job = queued()
    for _ in range(3):
        job = decide.expired(decide.deliver(job, "w", b"", MIDNIGHT, LEASE).job, MIDNIGHT + LEASE, Policy()).job

    assert (job.status, job.attempt, job.delivery_count) == ("dead_letter", 3, 3)
