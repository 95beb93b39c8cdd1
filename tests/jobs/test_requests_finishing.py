"""Bodies of ack, fail, renew, release and requeue: every rule of their fields."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pendula.jobs.messages import Ack, Fail, Renew
from pendula.jobs.model import SECOND, Policy
from tests.jobs.bodies import (
    DONE,
    NOW,
    PROOF,
    faults,
    read_ack,
    read_fail,
    read_release,
    read_renew,
    read_requeue,
)


@pytest.mark.req("JOB-ACK-2", "JOB-ACK-3", "JOB-ACK-4")
@pytest.mark.parametrize(
    ("field", "given", "code"),
    [
        ("result", "failed", "invalid_result"),
        ("result", None, "invalid_result"),
        ("result", True, "invalid_result"),
        ("result", ["succeeded"], "invalid_result"),
        ("audit_event_id", "", "invalid_field"),
        ("audit_event_id", "a" * 513, "invalid_field"),
        ("next_action_at", "2026-02-20T11:59:59.999999Z", "next_action_at_in_past"),
        ("next_action", "dream", "invalid_enum"),
        ("outcome", "o" * 65, "invalid_field"),
        ("worker_id", 5, "invalid_field"),
        ("lease_token", 5, "invalid_field"),
    ],
)
def test_invalid_fields_of_an_ack_are_rejected(field: str, given: object, code: str) -> None:
    assert faults(read_ack({**DONE, field: given}, Policy(), NOW)) == [(field, code)]


@pytest.mark.req("JOB-ACK-2")
def test_an_ack_requires_its_result() -> None:
    assert faults(read_ack({}, Policy(), NOW)) == [("result", "invalid_result")]


@pytest.mark.req("JOB-ACK-4")
def test_an_omitted_next_action_at_differs_from_null() -> None:
    left_out = read_ack(DONE, Policy(), NOW)
    cleared = read_ack({**DONE, "next_action_at": None}, Policy(), NOW)
    at_once = read_ack({**DONE, "next_action_at": "2026-02-20T12:00:00Z"}, Policy(), NOW)

    assert left_out == Ack(result="succeeded")
    assert cleared == Ack(result="succeeded", next_action_at=None)
    assert left_out != cleared
    assert at_once == Ack(result="succeeded", next_action_at=NOW)


@pytest.mark.req("JOB-FAIL-3", "JOB-FAIL-4", "JOB-FAIL-8")
@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("error", ""),
        ("error", " \t\n"),
        ("error", None),
        ("error", 5),
        ("retry_delay_sec", -1),
        ("retry_delay_sec", -0.001),
        ("retry_delay_sec", 2_592_000.000001),
        ("retry_delay_sec", 2_592_001),
        ("retry_delay_sec", float("nan")),
        ("retry_delay_sec", float("inf")),
        ("retry_delay_sec", Decimal("NaN")),
        ("retry_delay_sec", Decimal("sNaN")),
        ("retry_delay_sec", Decimal("Infinity")),
        ("retry_delay_sec", "5"),
        ("retry_delay_sec", True),
        ("retryable", "no"),
        ("retryable", 0),
    ],
)
def test_invalid_fields_of_a_fail_are_rejected(field: str, given: object) -> None:
    assert faults(read_fail({"error": "x", field: given})) == [(field, "invalid_field")]


@pytest.mark.req("JOB-FAIL-3")
def test_a_fail_without_an_error_is_an_invalid_field() -> None:
    assert faults(read_fail({})) == [("error", "invalid_field")]


@pytest.mark.req("JOB-FAIL-4")
@pytest.mark.parametrize(
    ("given", "micros"),
    [(0, 0), (2_592_000, 2_592_000 * SECOND), (0.1, 100_000), (Decimal("1.0000019"), 1_000_001), (0.0000001, 0)],
)
def test_a_delay_is_whole_microseconds_rounded_down(given: Any, micros: int) -> None:
    assert read_fail({"error": "x", "retry_delay_sec": given}) == Fail("x", micros)


def test_a_lone_surrogate_in_an_error_text_is_repaired_not_rejected() -> None:
    found = read_fail({"error": "no file \udcff"})

    assert found == Fail("no file ?")


@pytest.mark.req("JOB-API-10", "JOB-API-11")
@pytest.mark.parametrize("read", [read_renew, read_release])
def test_renew_and_release_require_worker_id_and_lease_token(read: Callable[[dict[str, Any]], object]) -> None:
    assert faults(read({})) == [("worker_id", "missing_field"), ("lease_token", "missing_field")]
    assert faults(read({**PROOF, "worker_id": None})) == [("worker_id", "invalid_field")]


@pytest.mark.req("JOB-API-10")
@pytest.mark.parametrize("lease", [0, 43_201, "60", 1.5, True])
def test_invalid_lease_lengths_are_rejected(lease: object) -> None:
    assert faults(read_renew({**PROOF, "lease_sec": lease})) == [("lease_sec", "invalid_field")]
    assert read_renew({**PROOF, "lease_sec": 43_200}) == Renew(**PROOF, lease_sec=43_200)


@pytest.mark.req("JOB-API-13")
def test_a_requeue_into_the_past_is_rejected() -> None:
    found = read_requeue({"run_at": "2026-02-20T11:59:59Z", "reason": ""}, NOW)

    assert faults(found) == [("run_at", "run_at_in_past"), ("reason", "invalid_field")]
