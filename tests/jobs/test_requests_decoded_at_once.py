"""Decoding a body at once gives the same as reading it field by field."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.jobs.messages import Ack, Enqueue
from pendula.jobs.model import Policy
from pendula.jobs.request_reading import Faults, Request, _read_each, read
from pendula.kernel.time import parse_utc

TEXTS = st.one_of(
    st.sampled_from(["", " ", "mem_1", " mem", "mem ", "a\tb", "a\u00a0b", "\u2028", "ä" * 200, "x" * 201, "x" * 513]),
    st.text(max_size=12),
)
ODD = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.lists(st.integers(), max_size=1), st.binary())
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "object_type": st.sampled_from(["memory", "experience", "dream", ""]),
    "object_id": TEXTS,
    "action": st.sampled_from(["verify", "decay", "explode"]),
    "run_at": st.sampled_from(
        [
            "2026-02-21T08:00:00Z",
            "2026-02-21T08:00:00.123456+08:00",
            "2026-02-21T08:00:00",
            "0000-01-01T00:00:00Z",
            "now",
        ]
    ),
    "priority": st.sampled_from(["high", "medium", "low", "urgent", ""]),
    "max_attempts": st.one_of(st.integers(-1, 102), st.just(3.0)),
    "idempotency_key": TEXTS,
    "correlation_id": TEXTS,
    "queue": st.sampled_from(["default", "a-b_9", "A", "", "q\n", "x" * 65]),
}
NOW = parse_utc("2026-02-21T04:00:00Z")
NEEDED = {"object_type": "memory", "object_id": "mem_1", "action": "verify"}
FULL = {**NEEDED, "priority": "low", "max_attempts": 2, "idempotency_key": "k", "correlation_id": "c", "queue": "q"}
# Mostly valid, so that a single fault is frequent.
CHANGES = st.dictionaries(st.sampled_from([*FIELDS, "shade"]), st.none(), max_size=3).flatmap(
    lambda names: st.fixed_dictionaries(
        {name: st.one_of(FIELDS[name], FIELDS[name], ODD) if name in FIELDS else ODD for name in names}
    )
)


@given(st.sampled_from([NEEDED, FULL, {}]), CHANGES)
def test_decoding_at_once_equals_reading_field_by_field(sound: dict[str, Any], changes: dict[str, Any]) -> None:
    body = {**sound, **changes}

    assert quick(Enqueue, body) == careful(Enqueue, body)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("value", ["a\tb", " a", "a ", "a\u00a0", "\ud800", "", 0, True, 3.0, None, [], "x" * 600])
def test_one_unusual_value_is_read_alike(name: str, value: object) -> None:
    body = {**FULL, name: value}

    assert quick(Enqueue, body) == careful(Enqueue, body)


def quick(kind: type[Request], body: dict[str, Any]) -> object:
    request = read(kind, body, Policy(), NOW)
    return request.entries if isinstance(request, Faults) else request


def careful(kind: type[Request], body: dict[str, Any]) -> object:
    request, faults = _read_each(kind, body, Policy(), NOW)
    request.fill(Policy())
    return faults.entries or request


ACK_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "result": st.sampled_from(["succeeded", "failed", ""]),
    "audit_event_id": TEXTS,
    "next_action_at": st.sampled_from(["2026-02-21T08:00:00Z", "2026-02-21T03:59:59.999999Z", "2026-02-21", None]),
    "next_action": st.sampled_from(["verify", "explode", ""]),
    "outcome": TEXTS,
    "worker_id": TEXTS,
    "lease_token": TEXTS,
}
ACKS = st.dictionaries(st.sampled_from([*ACK_FIELDS, "shade"]), st.none(), max_size=3).flatmap(
    lambda names: st.fixed_dictionaries(
        {name: st.one_of(ACK_FIELDS[name], ACK_FIELDS[name], ODD) if name in ACK_FIELDS else ODD for name in names}
    )
)


@pytest.mark.req("JOB-ACK-2", "JOB-ACK-4", "JOB-ACK-10")
@given(st.sampled_from([{"result": "succeeded"}, {"result": "succeeded", "outcome": "noop"}, {}]), ACKS)
def test_decoding_acks_at_once_equals_reading_field_by_field(sound: dict[str, Any], changes: dict[str, Any]) -> None:
    body = {**sound, **changes}

    assert quick(Ack, body) == careful(Ack, body)
