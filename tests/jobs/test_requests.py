"""Bodies decoded into requests: every rule of a field, every member of a call, all faults at once."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.jobs.messages import Enqueue, Pull, status_of
from pendula.jobs.model import Policy, PullClock, Refused, Vocabulary
from pendula.jobs.request_reading import Faults
from tests.jobs.bodies import (
    DONE,
    JOB,
    NOW,
    PROOF,
    WORKER,
    Fields,
    faults,
    read_ack,
    read_enqueue,
    read_fail,
    read_pull,
    read_reason,
    read_release,
    read_renew,
    read_requeue,
)

READERS: dict[str, tuple[Callable[[dict[str, Any]], object], dict[str, Any]]] = {
    "enqueue": (lambda body: read_enqueue(body, Policy()), JOB),
    "pull": (lambda body: read_pull(body, Policy(), NOW), WORKER),
    "ack": (lambda body: read_ack(body, Policy(), NOW), DONE),
    "fail": (read_fail, {"error": "x"}),
    "renew": (read_renew, PROOF),
    "release": (read_release, PROOF),
    "cancel": (read_reason, {}),
    "requeue": (lambda body: read_requeue(body, NOW), {}),
}
MEMBERS: dict[str, dict[str, Any]] = {
    "enqueue": {
        **JOB, "run_at": "2026-02-21T00:00:00Z", "priority": "low", "max_attempts": 1, "idempotency_key": "k",
        "correlation_id": "c", "queue": "q", "payload": {"a": 1}, "unique": "waiting",
    },
    "pull": {
        **WORKER, "now": "2026-02-20T12:05:00Z", "limit": 1, "lease_sec": 1, "object_types": ["memory"],
        "actions": ["decay"], "wait_ms": 0, "queues": ["q"], "pairs": [["memory", "decay"]],
    },
    "ack": {
        **DONE, **PROOF, "audit_event_id": "a", "next_action_at": "2026-02-21T00:00:00Z", "next_action": "decay",
        "outcome": "noop", "outcome_result": 1,
    },
    "fail": {**PROOF, "error": "x", "retry_delay_sec": 1, "retryable": True, "cancelled": False},
    "renew": {**PROOF, "lease_sec": 1, "progress": 0.5, "progress_note": "n"},
    "release": PROOF,
    "cancel": {"reason": "r"},
    "requeue": {"run_at": "2026-02-21T00:00:00Z", "reason": "r"},
}  # fmt: skip


def enqueue(**members: Any) -> Enqueue | Faults:
    return read_enqueue({**JOB, **members}, Policy())


def pull(**members: Any) -> Pull | Faults:
    return read_pull({**WORKER, **members}, Policy(), NOW)


# Members


@pytest.mark.req("JOB-ENQ-8")
@pytest.mark.parametrize("call", MEMBERS)
def test_every_specified_member_is_accepted(call: str) -> None:
    read, _ = READERS[call]

    assert faults(read(MEMBERS[call])) == []


@pytest.mark.req("JOB-ENQ-8")
@pytest.mark.parametrize("call", READERS)
@given(name=st.text(max_size=12))
def test_any_other_member_is_rejected(call: str, name: str) -> None:
    read, body = READERS[call]

    expected = [] if name in MEMBERS[call] else [(name, "unknown_field")]
    given_body = body if name in MEMBERS[call] else {**body, name: 1}

    assert faults(read(given_body)) == expected


@pytest.mark.req("JOB-ENQ-8")
def test_a_misspelt_member_does_not_give_the_default() -> None:
    assert faults(enqueue(priorty="high")) == [("priorty", "unknown_field")]


# Times


@pytest.mark.req("JOB-OBJ-11")
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("2026-02-21T00:00:00", "naive_timestamp"),
        ("2026-02-21", "invalid_timestamp"),
        ("tomorrow", "invalid_timestamp"),
        ("", "invalid_timestamp"),
        (1771632000, "invalid_timestamp"),
        ("2026-02-30T00:00:00Z", "invalid_timestamp"),
        ("2026-02-21 00:00:00Z", "invalid_timestamp"),
        ("2026-02-21T00:00:60Z", "invalid_timestamp"),
        ("2026-02-21T24:00:00Z", "invalid_timestamp"),
        ("2026-02-21t00:00:00Z", "invalid_timestamp"),
        ("2026-02-21T00:00:00z", "invalid_timestamp"),
        ("2026-02-21T00:00Z", "invalid_timestamp"),
        ("2026-02-21T00:00:00.Z", "invalid_timestamp"),
        ("2026-02-21T00:00:00+0800", "invalid_timestamp"),
        ("２026-02-21T00:00:00Z", "invalid_timestamp"),
        (True, "invalid_timestamp"),
        (["2026-02-21T00:00:00Z"], "invalid_timestamp"),
        ("1969-12-31T23:59:59.999999Z", "timestamp_out_of_range"),
        ("1970-01-01T00:00:00+00:01", "timestamp_out_of_range"),
        ("9999-12-31T23:59:59-00:01", "timestamp_out_of_range"),
    ],
)
def test_invalid_times_are_rejected(given: object, code: str) -> None:
    assert faults(enqueue(run_at=given)) == [("run_at", code)]
    assert faults(pull(now=given)) == [("now", code)]
    assert faults(read_ack({**DONE, "next_action_at": given}, Policy(), NOW)) == [("next_action_at", code)]


@pytest.mark.req("JOB-OBJ-10")
@pytest.mark.parametrize(
    ("given", "micros"),
    [
        ("2026-02-21T08:00:00+08:00", 1_771_632_000_000_000),
        ("2026-02-21T00:00:00Z", 1_771_632_000_000_000),
        ("2026-02-20T19:30:00-04:30", 1_771_632_000_000_000),
        ("2026-02-21T00:00:00.5Z", 1_771_632_000_500_000),
        ("2026-02-21T00:00:00.1234569Z", 1_771_632_000_123_456),
        ("1970-01-01T00:00:00Z", 0),
        ("9999-12-31T23:59:59.999999999Z", 253_402_300_799_999_999),
    ],
)
def test_times_are_formatted_in_utc_with_six_digits(given: str, micros: int) -> None:
    result = enqueue(run_at=given)

    assert isinstance(result, Enqueue)
    assert result.run_at == micros


# Enqueue


@pytest.mark.req("JOB-ENQ-6", "JOB-OBJ-9")
@pytest.mark.parametrize("absent", [{}, {"run_at": None, "priority": None, "max_attempts": None}])
def test_null_means_omitted_where_a_default_exists(absent: dict[str, None]) -> None:
    result = enqueue(**absent)

    assert result == Enqueue("cognition", "cg_123", "revalidate", None, 1, 3, None, None, "default")


@pytest.mark.req("JOB-OBJ-4", "JOB-OBJ-5", "JOB-OBJ-9", "JOB-OBJ-12")
@pytest.mark.parametrize(
    ("field", "given", "code"),
    [
        ("object_type", "Memory", "invalid_enum"),
        ("object_type", "", "invalid_enum"),
        ("object_type", 1, "invalid_enum"),
        ("object_type", None, "invalid_enum"),
        ("action", "reinstate_check", "invalid_enum"),
        ("action", ["verify"], "invalid_enum"),
        ("priority", "High", "invalid_enum"),
        ("object_id", "", "invalid_field"),
        ("object_id", " cg", "invalid_field"),
        ("object_id", "cg\t", "invalid_field"),
        ("object_id", "cg\u2003", "invalid_field"),
        ("object_id", "c\x00g", "invalid_field"),
        ("object_id", "c\x85g", "invalid_field"),
        ("object_id", "c\x7fg", "invalid_field"),
        ("object_id", "x" * 513, "invalid_field"),
        ("object_id", 5, "invalid_field"),
        ("object_id", None, "invalid_field"),
        ("object_id", "\ud800", "invalid_field"),
        ("max_attempts", 0, "invalid_field"),
        ("max_attempts", 101, "invalid_field"),
        ("max_attempts", 3.0, "invalid_field"),
        ("max_attempts", Decimal("3.0"), "invalid_field"),
        ("max_attempts", "3", "invalid_field"),
        ("max_attempts", True, "invalid_field"),
        ("idempotency_key", "", "invalid_field"),
        ("idempotency_key", "k" * 513, "invalid_field"),
        ("idempotency_key", "k\n", "invalid_field"),
        ("queue", "Default", "invalid_field"),
        ("queue", "q" * 65, "invalid_field"),
        ("queue", "", "invalid_field"),
    ],
)
def test_invalid_fields_of_an_enqueue_are_rejected(field: str, given: object, code: str) -> None:
    assert faults(enqueue(**{field: given})) == [(field, code)]


@pytest.mark.req("JOB-OBJ-5", "JOB-OBJ-12", "JOB-OBJ-9")
@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("object_id", "x" * 512),
        ("correlation_id", "x" * 512),
        ("object_id", "日本 語"),
        ("idempotency_key", " " * 512),
        ("max_attempts", 100),
    ],
)
def test_fields_of_an_enqueue_at_their_limits_are_accepted(field: str, given: object) -> None:
    result = enqueue(**{field: given})

    assert isinstance(result, Enqueue)
    assert getattr(result, field) == given


@pytest.mark.req("JOB-ENQ-7")
def test_all_faults_are_reported_at_once_as_specified() -> None:
    result = enqueue(action="dream", run_at="2026-02-21T00:00:00")
    assert isinstance(result, Faults)
    refused = result.refusal()

    assert (status_of(refused), refused.code, refused.message) == (422, "validation_failed", "2 fields are invalid")
    assert refused.details == {
        "fields": [
            {
                "field": "action",
                "code": "invalid_enum",
                "allowed": ["verify", "revalidate", "decay", "archive", "reinstate-check"],
            },
            {"field": "run_at", "code": "naive_timestamp"},
        ]
    }


@pytest.mark.req("JOB-ENQ-7")
def test_a_single_fault_gives_its_code_to_the_rejection() -> None:
    result = enqueue(run_at="2026-02-21T00:00:00")
    assert isinstance(result, Faults)
    refused = result.refusal()

    assert isinstance(refused, Refused)
    assert (status_of(refused), refused.code) == (422, "naive_timestamp")
    assert refused.details["fields"] == [{"field": "run_at", "code": "naive_timestamp"}]


@pytest.mark.req("JOB-ENQ-7")
def test_an_empty_or_wholly_wrong_body_names_every_fault() -> None:
    nothing = read_enqueue({}, Policy())
    wrong = read_enqueue({name: {} for name in MEMBERS["enqueue"]}, Policy())

    assert faults(nothing) == [(name, "missing_field") for name in ("object_type", "object_id", "action")]
    # Any JSON value is a payload.
    assert sorted(name for name, _ in faults(wrong)) == sorted(MEMBERS["enqueue"].keys() - {"payload"})


def test_added_words_of_the_vocabulary_are_accepted_and_listed() -> None:
    policy = Policy(vocabulary=Vocabulary(object_types=("memory", "photo"), actions=("verify", "develop")))

    assert isinstance(read_enqueue({**JOB, "object_type": "photo", "action": "develop"}, policy), Enqueue)
    result = read_enqueue({**JOB, "object_type": "photo"}, policy)
    assert isinstance(result, Faults)
    assert result.entries == [{"field": "action", "code": "invalid_enum", "allowed": ["verify", "develop"]}]


# Pull


@pytest.mark.req("JOB-PULL-4")
@pytest.mark.parametrize("limit", [0, -1, 1.5, Decimal("1.5"), "10", True, 1001, [1]])
def test_limits_out_of_range_are_rejected(limit: object) -> None:
    assert faults(pull(limit=limit)) == [("limit", "invalid_limit")]


@pytest.mark.req("JOB-PULL-4")
@pytest.mark.parametrize(
    ("given", "limit"), [({}, 100), ({"limit": None}, 100), ({"limit": 1}, 1), ({"limit": 1000}, 1000)]
)
def test_the_limit_of_a_pull_follows_the_policy(given: dict[str, Any], limit: int) -> None:
    result = pull(**given)

    assert isinstance(result, Pull)
    assert result.limit == limit


@pytest.mark.req("JOB-PULL-5")
@pytest.mark.parametrize("worker", ["", "a b", "ä", "w" * 129, "w\n", 7, None, "a/b"])
def test_invalid_worker_ids_are_rejected(worker: object) -> None:
    assert faults(pull(worker_id=worker)) == [("worker_id", "invalid_worker_id")]
    assert faults(read_pull({}, Policy(), NOW)) == [("worker_id", "invalid_worker_id")]


@pytest.mark.req("JOB-PULL-5")
@pytest.mark.parametrize("worker", ["w", "A.z_0:9@host-1", "w" * 128])
def test_valid_worker_ids_are_accepted(worker: str) -> None:
    assert faults(pull(worker_id=worker)) == []


@pytest.mark.req("JOB-PULL-9", "JOB-PULL-11")
@pytest.mark.parametrize(
    ("field", "given", "code"),
    [
        ("lease_sec", 0, "invalid_field"),
        ("lease_sec", 43_201, "invalid_field"),
        ("lease_sec", 1.5, "invalid_field"),
        ("object_types", [], "invalid_field"),
        ("object_types", "memory", "invalid_field"),
        ("object_types", ["memory", "dream"], "invalid_enum"),
        ("actions", ["reinstate_check"], "invalid_enum"),
        ("actions", [["verify"]], "invalid_enum"),
        ("actions", {}, "invalid_field"),
        ("wait_ms", -1, "invalid_field"),
        ("wait_ms", 30_001, "invalid_field"),
        ("queues", [], "invalid_field"),
        ("queues", ["No"], "invalid_field"),
    ],
)
def test_invalid_fields_of_a_pull_are_rejected(field: str, given: object, code: str) -> None:
    assert faults(pull(**{field: given})) == [(field, code)]


@pytest.mark.req("JOB-PULL-2")
@pytest.mark.parametrize(
    ("clock", "expected"), [(PullClock.SERVER, [("now", "now_in_future")]), (PullClock.REQUEST, [])]
)
def test_a_later_now_is_rejected_when_the_server_clock_decides(clock: PullClock, expected: Fields) -> None:
    later = {**WORKER, "now": "2026-02-20T12:00:00.000001Z"}
    equal = {**WORKER, "now": "2026-02-20T12:00:00Z"}

    assert faults(read_pull(later, Policy(pull_clock=clock), NOW)) == expected
    assert faults(read_pull(equal, Policy(pull_clock=clock), NOW)) == []
