"""The trail: the fields of every event, tamper detection, and replay to the current state."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.audit import GENESIS, Broken, Row, Trail, verify
from pendula.jobs.messages import Fail, Pulled, plain
from pendula.jobs.model import Policy, Refused, event_id, job_id, number_of
from pendula.jobs.reasons import stated
from tests.jobs.filled_store import ANN, JOB, fill_store
from tests.jobs.samples import MIDNIGHT, queued, running
from tests.jobs.stores import opened

REQUIRED = (
    "id", "event_type", "actor", "object_type", "object_id", "before", "after", "reason", "evidence_refs", "timestamp",
)  # fmt: skip
TYPES = ("scheduler_job", "state_transition", "decision_gate", "rollback", "investigation", "policy_override")


# Fields of an event


@pytest.mark.req("JOB-AUD-2")
def test_every_event_has_the_fields_of_the_document(tmp_path: Path) -> None:
    scheduler, _ = fill_store(tmp_path)
    events = scheduler.audit(limit=1000).events
    jobs = {job.job_id: job for job in scheduler.list(limit=1000).jobs}

    assert len({event.id for event in events}) == len(events)
    for event in events:
        assert set(REQUIRED) <= plain(event).keys()
        assert event.id.startswith("aud_")
        assert event.event_type in TYPES
        assert event.actor.type in ("system", "user", "worker", "service")
        assert event.actor.id
        assert f"scheduler_job:{event.job_id}" in event.evidence_refs
        assert event.correlation_id == jobs[str(event.job_id)].correlation_id
        assert event.reason
    scheduler.close()


@pytest.mark.req("JOB-AUD-1", "JOB-AUD-3")
def test_each_change_writes_one_event_with_old_and_new(tmp_path: Path) -> None:
    scheduler, _ = fill_store(tmp_path)
    events = scheduler.audit(limit=1000).events
    seen = [
        (event.actor.type, (event.before or {}).get("status"), event.after.get("status"))
        for event in events
        if event.event_type == "scheduler_job"
    ]

    assert seen == [
        *[("service", None, "queued")] * 8,
        ("service", "queued", "failed"),
        *[("worker", "queued", "running")] * 6,
        ("worker", "running", "succeeded"),
        ("worker", None, "queued"),
        ("worker", "running", "queued"),
        ("worker", "running", "dead_letter"),
        ("worker", "running", "failed"),
        ("worker", "running", "queued"),
        ("system", "running", "queued"),
        ("worker", "queued", "running"),
        ("user", "dead_letter", "queued"),
    ]
    for event in events:
        if event.before is not None:
            assert event.before.keys() == event.after.keys()
            assert event.before != event.after
    scheduler.close()


@pytest.mark.req("JOB-AUD-3")
def test_an_event_has_every_field_the_change_touched(tmp_path: Path) -> None:
    """Read the job before and after each change: every difference except `updated_at` is in the event."""
    scheduler, _ = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB, max_attempts=2).job.job_id
    steps: list[Callable[[], Any]] = [
        lambda: scheduler.pull(worker_id="w"),
        lambda: scheduler.release(job_id, worker_id="w", lease_token=token),
        lambda: scheduler.pull(worker_id="w"),
        lambda: scheduler.fail(job_id, error="x", retry_delay_sec=0),
        lambda: scheduler.pull(worker_id="w"),
        lambda: scheduler.fail(job_id, error="y"),
        lambda: scheduler.requeue(job_id),
        lambda: scheduler.pull(worker_id="w"),
        lambda: scheduler.ack(job_id, worker_id="w", lease_token=token, result="succeeded", outcome="noop"),
    ]
    for step in steps:
        before = plain(scheduler.show(job_id).job)
        reply = step()
        if isinstance(reply, Pulled):
            token = str(reply.jobs[0].lease_token)
        after = plain(scheduler.show(job_id).job)
        event = scheduler.history(job_id).events[-1]
        touched = {name for name in after if before[name] != after[name]} - {"updated_at"}

        assert touched <= event.after.keys()
        assert {name: (event.before or {})[name] for name in touched} == {name: before[name] for name in touched}
        assert {name: event.after[name] for name in touched} == {name: after[name] for name in touched}
        assert event.timestamp == after["updated_at"]
    scheduler.close()


@pytest.mark.req("JOB-AUD-1", "JOB-ACK-4")
def test_only_a_changed_next_action_at_is_a_state_change(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, Policy(auto_followup=False))
    at = clock.text(86_400)
    acks: list[dict[str, Any]] = [{}, *({"next_action_at": given} for given in (None, at, at, None))]
    for number, members in enumerate(acks):
        job_id = scheduler.enqueue(**JOB, idempotency_key=f"k{number}").job.job_id
        scheduler.pull(worker_id="w")
        scheduler.ack(job_id, result="succeeded", **members)

    changes = scheduler.audit(event_type="state_transition").events

    assert [(one.before, one.after) for one in changes] == [
        ({"next_action_at": None}, {"next_action_at": at}),
        ({"next_action_at": at}, {"next_action_at": None}),
    ]
    assert {(one.object_type, one.object_id) for one in changes} == {("memory", "m")}
    scheduler.close()


@pytest.mark.req("JOB-AUD-5")
def test_renewals_empty_pulls_and_rejections_write_no_event(tmp_path: Path) -> None:
    scheduler, _ = fill_store(tmp_path)
    before = len(scheduler.audit(limit=1000).events)
    held = scheduler.list(status="running").jobs[0].job_id
    calls = scheduler.calls
    refused = [
        calls.enqueue({}),
        calls.ack("job_nope", {}),
        calls.ack(held, {"result": "maybe"}),
        calls.fail(held, {"error": "x", "worker_id": "w9"}),
        calls.cancel(held, {"reason": ""}),
        calls.requeue(held, {}),
    ]
    empty = calls.pull({"worker_id": "w", "actions": ["archive"]})

    assert all(isinstance(answer, Refused) for answer in refused)
    assert isinstance(empty, Pulled)
    assert len(scheduler.audit(limit=1000).events) == before
    scheduler.close()


@pytest.mark.req("JOB-API-7", "JOB-API-13")
def test_the_caller_and_its_request_are_in_the_event(tmp_path: Path) -> None:
    scheduler, _ = fill_store(tmp_path)

    [requeued] = [one for one in scheduler.audit(limit=1000).events if one.actor.type == "user"]

    assert (requeued.actor.id, requeued.metadata) == ("ann", {"request_id": "req-9"})
    assert "mended" in requeued.reason
    scheduler.close()


# The chain


def rows(count: int) -> list[Row]:
    """A trail of different events of two jobs."""
    trail = Trail(0, GENESIS, {"request_id": "r"})
    first, second = queued(), queued(seq=8, job_id=job_id(8))
    for number in range(count):
        match number % 4:
            case 0:
                trail.enqueued(replace(first, updated_at=MIDNIGHT + number), ANN)
            case 1:
                trail.object_changed(
                    second, {"next_action_at": None}, {"next_action_at": "x"}, stated(f"{number}"), ANN, ()
                )
            case 2:
                held = running()
                done = decide.failed(held, Fail(f"{number}"), MIDNIGHT, Policy())
                trail.changed(held, done.job, done.touched, done.reason, ANN)
            case _:
                trail.enqueued(replace(second, updated_at=MIDNIGHT + number), ANN)
    return [Row(*values) for values in trail.rows]


def broken(trail: list[Row]) -> bool:
    return list(verify(trail)) != []


@pytest.mark.req("JOB-AUD-4")
def test_an_untouched_trail_is_intact() -> None:
    assert not broken(rows(30))
    assert not broken([])


@pytest.mark.req("JOB-AUD-4")
@given(st.data())
def test_any_change_of_any_event_is_found(data: st.DataObject) -> None:
    trail = rows(data.draw(st.integers(1, 12)))
    at = data.draw(st.integers(0, len(trail) - 1))
    row = trail[at]
    place = data.draw(st.integers(0, len(row.body) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda one: one != row.body[place]))
    changed = data.draw(
        st.sampled_from(
            [
                replace(row, body=row.body[:place] + other + row.body[place + 1 :]),
                replace(row, body=row.body[:place] + row.body[place + 1 :]),
                replace(row, body=row.body + " "),
                replace(row, hash=bytes([row.hash[0] ^ 1]) + row.hash[1:]),
                replace(row, n=row.n + 1),
                replace(row, event_type="rollback"),
                replace(row, object_type="persona"),
                replace(row, object_id=row.object_id + "x"),
                replace(row, job_seq=99),
                replace(row, job_seq=None),
            ]
        )
    )

    assert broken([*trail[:at], changed, *trail[at + 1 :]])


@pytest.mark.req("JOB-AUD-4")
@given(st.data())
def test_any_removal_insertion_or_reordering_is_found(data: st.DataObject) -> None:
    trail = rows(data.draw(st.integers(3, 12)))
    one, two = sorted(data.draw(st.lists(st.integers(0, len(trail) - 1), min_size=2, max_size=2, unique=True)))
    swapped = list(trail)
    swapped[one], swapped[two] = trail[two], trail[one]
    renumbered = [replace(row, n=number) for number, row in enumerate([*trail[:one], *trail[one + 1 :]], 1)]

    assert broken([*trail[:one], *trail[two:]])
    assert broken(swapped)
    assert broken([replace(row, n=number) for number, row in enumerate(swapped, 1)])
    assert broken([*trail[:one], trail[two], *trail[one:]])
    assert broken(renumbered)


@pytest.mark.req("JOB-AUD-4")
def test_the_first_broken_link_is_named_and_nothing_after_it() -> None:
    trail = rows(10)

    assert list(verify([*trail[:2], *trail[3:]])) == [Broken(4, "event 3 is missing")]
    assert list(verify(trail[1:])) == [Broken(2, "event 1 is missing")]


def test_an_event_id_is_parsed_only_if_it_is_one_of_ours() -> None:
    assert number_of(event_id(812)) == 812
    for other in ("aud_812", "aud_elsewhere", "812", "", "aud_", "aud_-00000000001", "aud_٠٠٠٠٠٠٠٠٠٠٠١", "x" * 16):
        assert number_of(other) is None
