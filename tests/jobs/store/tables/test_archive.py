"""Events of removed jobs are packed: fewer bytes, the same events, the same chain, found by the same queries."""

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pendula.jobs import JobRefused, Policy, Scheduler
from pendula.jobs.messages import Job, plain
from pendula.jobs.model import AuditCheck, Finding, seq_of
from pendula.jobs.store.protocol import StoreUnusable
from pendula.jobs.store.tables.archive import SEGMENT_MOST
from pendula.jobs.upkeep.retention import retain
from pendula.jobs.upkeep.verification import check, replay
from tests.jobs.filled_store import fill_store
from tests.jobs.stores import Clock, opened
from tests.jobs.upkeep.test_retention import enqueue, finish

DAY = 86_400


def trail(scheduler: Scheduler, page: int = 7, **asked: Any) -> list[dict[str, Any]]:
    """All events of a query, page by page."""
    found: list[dict[str, Any]] = []
    after = None
    while True:
        reply = scheduler.audit(limit=page, after=after, **asked)
        found += map(plain, reply.events)
        after = reply.next_cursor
        if after is None:
            return found


def questions(scheduler: Scheduler) -> list[dict[str, Any]]:
    ids = sorted({event["job_id"] for event in trail(scheduler) if event["job_id"]})
    return [
        {},
        {"event_type": "state_transition"},
        {"object_type": "memory"},
        *({"job_id": job_id} for job_id in ids),
        *({"object_type": "scheduler_job", "object_id": job_id} for job_id in ids),
        *({"object_type": "memory", "object_id": name} for name in ("acked", "dead", "nobody")),
    ]


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(query).fetchall()


def old(scheduler: Scheduler, clock: Clock) -> None:
    """All jobs that can finish have finished long ago; one event is recent."""
    for job in scheduler.list(status="queued").jobs:
        scheduler.cancel(job.job_id)
    clock.pass_by(40 * DAY)
    scheduler.calls.reclaim()
    scheduler.enqueue(object_type="memory", object_id="young", action="verify", run_at=clock.text(DAY))


@pytest.mark.req("JOB-AUD-4", "JOB-AUD-7", "JOB-STO-13")
def test_packed_events_are_unchanged_and_found_by_the_same_queries(tmp_path: Path) -> None:
    scheduler, clock = fill_store(tmp_path)
    old(scheduler, clock)
    asked = questions(scheduler)
    before = [trail(scheduler, **question) for question in asked]

    assert retain(scheduler.calls).steps

    assert [trail(scheduler, **question) for question in asked] == before
    assert rows(tmp_path / "jobs.db", "SELECT sum(events) FROM audit_archive")[0][0] > 10
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-AUD-4", "JOB-STO-13")
def test_jobs_removed_later_are_packed_into_overlapping_segments(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    late = enqueue(scheduler, 5, action="decay", run_at=clock.text(60 * DAY))
    enqueue(scheduler, 20)
    finish(scheduler)
    clock.pass_by(40 * DAY)
    enqueue(scheduler, 5, action="archive", run_at=clock.text(60 * DAY))
    retain(scheduler.calls)
    before = trail(scheduler)
    for job_id in late:
        scheduler.cancel(job_id)
    clock.pass_by(40 * DAY)
    scheduler.enqueue(object_type="memory", object_id="young", action="verify")
    retain(scheduler.calls)

    ranges = rows(tmp_path / "jobs.db", "SELECT first_n, last_n FROM audit_archive ORDER BY segment")
    assert ranges[1][0] < ranges[0][0] < ranges[0][1] < ranges[1][1]
    assert trail(scheduler)[: len(before)] == before
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-AUD-4", "JOB-STO-13")
def test_the_chain_continues_after_every_job_was_removed(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    enqueue(scheduler, 3)
    finish(scheduler)
    clock.pass_by(40 * DAY)
    retain(scheduler.calls)
    last = trail(scheduler)[-1]["id"]
    scheduler.close()

    again, _ = opened(tmp_path, clock=clock)
    again.enqueue(object_type="memory", object_id="young", action="verify")

    assert [event["id"] for event in trail(again)[-2:]] == [last, f"aud_{int(last[4:]) + 1:012d}"]
    assert check(again.calls.store) == []
    again.close()


@pytest.mark.req("JOB-STO-13")
def test_a_removed_job_takes_a_fraction_of_its_bytes(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    enqueue(scheduler, 1500)
    finish(scheduler)
    clock.pass_by(40 * DAY)
    scheduler.enqueue(object_type="memory", object_id="young", action="verify")
    [[plain]] = rows(tmp_path / "jobs.db", "SELECT sum(length(body) + length(hash)) FROM audit")

    retain(scheduler.calls)

    [[packed, most]] = rows(tmp_path / "jobs.db", "SELECT sum(length(body)), max(events) FROM audit_archive")
    assert packed * 8 < plain
    assert most <= SEGMENT_MOST
    assert len(rows(tmp_path / "jobs.db", "SELECT n FROM audit")) == 1
    scheduler.close()


@pytest.mark.req("JOB-AUD-7")
def test_packed_events_of_one_job_are_found_without_reading_other_segments(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    ids = enqueue(scheduler, 1500)
    finish(scheduler)
    clock.pass_by(40 * DAY)
    retain(scheduler.calls)

    [[all_segments]] = rows(tmp_path / "jobs.db", "SELECT count(*) FROM audit_archive")
    [[of_job]] = rows(
        tmp_path / "jobs.db", f"SELECT count(*) FROM audit_archive_about WHERE about = {seq_of(ids[700])}"
    )
    assert (all_segments > 3, of_job <= 3) == (True, True)
    assert len(trail(scheduler, job_id=ids[700])) == 3
    scheduler.close()


# Damage and forgery


def packed(folder: Path) -> Scheduler:
    scheduler, clock = opened(folder)
    enqueue(scheduler, 4)
    finish(scheduler)
    clock.pass_by(40 * DAY)
    scheduler.enqueue(object_type="memory", object_id="young", action="verify")
    retain(scheduler.calls)
    assert replay(scheduler.calls.store).findings == ()
    return scheduler


def forge(path: Path, change: Any) -> None:
    """Unpack the segment, change one thing and pack it again correctly."""
    with closing(sqlite3.connect(path)) as connection, connection:
        [(body,)] = connection.execute("SELECT body FROM audit_archive").fetchall()
        events = msgspec.msgpack.decode(zlib.decompress(body))
        change(events)
        connection.execute("UPDATE audit_archive SET body = ?", (zlib.compress(msgspec.msgpack.encode(events)),))


def change_body(events: list[Any]) -> None:
    events[4][2] = events[4][2].replace('"delivered"', '"withheld"')


def change_body_and_hash(events: list[Any]) -> None:
    change_body(events)
    events[4][1] = bytes(8)


def leave_out(events: list[Any]) -> None:
    del events[4]


@pytest.mark.req("JOB-AUD-4", "JOB-STO-12")
@pytest.mark.parametrize("change", [change_body, change_body_and_hash, leave_out])
def test_a_forged_packed_event_is_named(tmp_path: Path, change: Any) -> None:
    scheduler = packed(tmp_path)

    forge(tmp_path / "jobs.db", change)

    finding, *_ = replay(scheduler.calls.store).findings
    assert finding.code == "trail_broken"
    assert finding.where in ("event 5", "event 6")
    scheduler.close()


def not_json(events: list[Any]) -> None:
    events[4][2] = "no JSON at all"


def another_shape(events: list[Any]) -> None:
    events[4][2] = "[1, 2]"


def no_after(events: list[Any]) -> None:
    events[4][2] = events[4][2].replace('"after":', '"beyond":')


@pytest.mark.req("JOB-AUD-4", "JOB-STO-12")
@pytest.mark.parametrize("change", [not_json, another_shape, no_after])
def test_an_unreadable_packed_event_is_named_and_raises_no_raw_error(tmp_path: Path, change: Any) -> None:
    scheduler = packed(tmp_path)

    forge(tmp_path / "jobs.db", change)

    assert check(scheduler.calls.store)[0].where == "event 5"
    with pytest.raises(StoreUnusable, match="aud_000000000005 cannot be read"):
        scheduler.audit()
    scheduler.close()


@pytest.mark.req("JOB-AUD-4", "JOB-STO-12")
def test_after_a_broken_packed_event_the_segment_is_unchecked_and_rows_are_checked(tmp_path: Path) -> None:
    scheduler = packed(tmp_path)
    for _ in range(3):
        enqueue(scheduler, 1)

    forge(tmp_path / "jobs.db", change_body)
    rows(tmp_path / "jobs.db", "UPDATE audit SET body = replace(body, 'enqueued', 'forgotten') WHERE n = 15")

    assert replay(scheduler.calls.store).findings == (
        Finding("trail_broken", "event 5", "the event is not the one that was written"),
        Finding("trail_broken", "event 6", "event 6 to 13 cannot be judged: the chain before is broken"),
        Finding("trail_broken", "event 15", "the event is not the one that was written"),
    )
    scheduler.close()


@pytest.mark.req("JOB-AUD-4", "JOB-STO-12")
def test_a_duplicate_segment_is_reported(tmp_path: Path) -> None:
    scheduler = packed(tmp_path)

    columns = "first_n, last_n, events, body"
    rows(tmp_path / "jobs.db", f"INSERT INTO audit_archive ({columns}) SELECT {columns} FROM audit_archive")

    assert check(scheduler.calls.store)[0] == Finding("trail_broken", "event 1", "the event is out of order")
    assert len(trail(scheduler)) >= 13
    scheduler.close()


@pytest.mark.req("JOB-AUD-4", "JOB-STO-12")
@pytest.mark.parametrize(
    "damage", ["DELETE FROM audit_archive", "UPDATE audit_archive SET body = substr(body, 1, length(body) / 2)"]
)
def test_a_lost_or_damaged_segment_is_reported_with_the_first_missing_event(tmp_path: Path, damage: str) -> None:
    scheduler = packed(tmp_path)

    rows(tmp_path / "jobs.db", damage)

    assert replay(scheduler.calls.store).findings == (Finding("trail_broken", "event 13", "event 1 is missing"),)
    scheduler.close()


@pytest.mark.req("JOB-ACK-3")
def test_a_packed_event_of_the_object_can_be_linked(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, Policy(audit_event_check=AuditCheck.STRICT))
    enqueue(scheduler, 1)
    [job] = scheduler.pull(worker_id="w").jobs
    scheduler.ack(job.job_id, result="succeeded", next_action_at=None)
    [job] = _again(scheduler, clock, next_action_at=clock.text(45 * DAY))
    event = next(event for event in trail(scheduler) if event["event_type"] == "state_transition")["id"]
    retain(scheduler.calls, days=1)

    with pytest.raises(JobRefused):
        scheduler.ack(job.job_id, result="succeeded", audit_event_id="aud_000000000099")
    assert scheduler.ack(job.job_id, result="succeeded", audit_event_id=event).job.audit_event_id == event
    scheduler.close()


def _again(scheduler: Scheduler, clock: Clock, next_action_at: str) -> list[Job]:
    """Finish one more job of the same object and pull its follow-up."""
    enqueue(scheduler, 1, idempotency_key="again")
    [job] = scheduler.pull(worker_id="w").jobs
    scheduler.ack(job.job_id, result="succeeded", next_action_at=next_action_at)
    clock.pass_by(46 * DAY)
    return scheduler.pull(worker_id="w").jobs
