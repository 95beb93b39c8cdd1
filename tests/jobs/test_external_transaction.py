"""An object and its job in one transaction of the caller: both or neither."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused, Policy, Scheduler, messages
from pendula.jobs.calls import Caller, Calls
from pendula.jobs.external_transaction import CannotJoin, defer_within, enqueue_within
from pendula.jobs.messages import Enqueued
from pendula.jobs.model import Actor, Refused, StorageBusy
from pendula.jobs.store.sqlite import NotDurable, SqliteStore
from pendula.jobs.upkeep.verification import check
from tests.jobs.stores import Clock, opened

JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Scheduler]:
    made, _ = opened(tmp_path)
    yield made
    made.close()


@pytest.fixture
def connection(tmp_path: Path, scheduler: Scheduler) -> Iterator[sqlite3.Connection]:
    """A connection of the caller to the file, with a table of the caller."""
    with closing(sqlite3.connect(tmp_path / "jobs.db", timeout=0.05)) as own:
        own.execute("CREATE TABLE memories (id TEXT PRIMARY KEY, text TEXT)")
        own.commit()
        yield own


def memories(connection: sqlite3.Connection) -> list[Any]:
    return [tuple(row) for row in connection.execute("SELECT id FROM memories ORDER BY id")]


@pytest.mark.req("JOB-ENQ-11")
def test_a_rollback_leaves_no_object_and_no_job(scheduler: Scheduler, connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO memories VALUES ('m', 'once')")
    answer = enqueue_within(connection, scheduler.calls, JOB)

    connection.rollback()

    assert isinstance(answer, Enqueued)
    assert not answer.deduplicated
    assert memories(connection) == []
    assert scheduler.list().jobs == []
    assert scheduler.audit().events == []
    assert check(scheduler.calls.store) == []


@pytest.mark.req("JOB-ENQ-11")
def test_a_commit_stores_both_and_continues_the_trail(scheduler: Scheduler, connection: sqlite3.Connection) -> None:
    scheduler.enqueue(**JOB, idempotency_key="before")
    connection.execute("INSERT INTO memories VALUES ('m', 'once')")
    first = enqueue_within(connection, scheduler.calls, JOB, Caller(Actor("user", "ann"), "req-1"))
    second = enqueue_within(connection, scheduler.calls, {**JOB, "idempotency_key": "second"})

    connection.commit()
    scheduler.enqueue(**JOB, idempotency_key="after")

    assert memories(connection) == [("m",)]
    assert isinstance(first, Enqueued)
    assert isinstance(second, Enqueued)
    jobs = scheduler.list().jobs
    assert [job.job_id for job in jobs][1:3] == [second.job.job_id, first.job.job_id]
    assert jobs[2] == first.job
    event = scheduler.audit().events[1]
    assert (event.actor, event.metadata) == (messages.Actor("user", "ann"), {"request_id": "req-1"})
    assert scheduler.metrics().jobs.queued == 4
    assert check(scheduler.calls.store) == []


@pytest.mark.req("JOB-ENQ-11", "JOB-ENQ-2", "JOB-API-5")
def test_answers_equal_those_of_any_other_enqueue(scheduler: Scheduler, connection: sqlite3.Connection) -> None:
    stored = scheduler.enqueue(**JOB, idempotency_key="k").job
    bodies = [
        {**JOB, "idempotency_key": "k"},
        {**JOB, "object_id": "other", "idempotency_key": "k"},
        {**JOB, "run_at": "2026-01-01T00:00:00Z"},
        {**JOB, "priority": "urgent", "when": "now"},
    ]
    connection.execute("INSERT INTO memories VALUES ('m', 'once')")

    inside = [enqueue_within(connection, scheduler.calls, body) for body in bodies]
    connection.commit()

    assert inside[0] == Enqueued(deduplicated=True, job=stored)
    for body, answer in zip(bodies[1:], inside[1:], strict=True):
        assert isinstance(answer, Refused)
        with pytest.raises(JobRefused) as outside:
            scheduler.enqueue(**body)
        assert outside.value.code == answer.code.value
    assert memories(connection) == [("m",)], "a refusal leaves the caller's own work"
    assert len(scheduler.list().jobs) == 1
    assert check(scheduler.calls.store) == []


def test_a_job_is_not_visible_before_the_caller_commits(scheduler: Scheduler, connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    enqueue_within(connection, scheduler.calls, JOB)

    before = scheduler.pull(worker_id="w").count
    connection.commit()
    after = scheduler.pull(worker_id="w").count

    assert (before, after) == (0, 1)


def test_the_row_factory_of_the_caller_is_kept(scheduler: Scheduler, connection: sqlite3.Connection) -> None:
    def as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
        return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}

    scheduler.enqueue(**JOB, idempotency_key="k")
    connection.row_factory, connection.text_factory = sqlite3.Row, bytes
    connection.execute("BEGIN IMMEDIATE")
    first = enqueue_within(connection, scheduler.calls, {**JOB, "idempotency_key": "k"})
    connection.row_factory = as_dict
    second = enqueue_within(connection, scheduler.calls, {**JOB, "idempotency_key": "k2"})
    connection.commit()

    assert isinstance(first, Enqueued)
    assert isinstance(second, Enqueued)
    assert (first.deduplicated, second.deduplicated) == (True, False)
    assert (connection.row_factory, connection.text_factory) == (as_dict, bytes)
    assert check(scheduler.calls.store) == []


def test_a_connection_without_a_transaction_is_rejected(scheduler: Scheduler, connection: sqlite3.Connection) -> None:
    with pytest.raises(CannotJoin):
        enqueue_within(connection, scheduler.calls, JOB)

    assert scheduler.list().jobs == []


def test_a_transaction_on_another_file_is_rejected(scheduler: Scheduler, tmp_path: Path) -> None:
    for name in (str(tmp_path / "other.db"), ":memory:"):
        with closing(sqlite3.connect(name)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(CannotJoin):
                enqueue_within(other, scheduler.calls, JOB)


@pytest.mark.req("JOB-STO-6")
def test_a_connection_that_does_not_flush_is_rejected(scheduler: Scheduler, connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN IMMEDIATE")

    with pytest.raises(NotDurable):
        enqueue_within(connection, scheduler.calls, JOB)


@pytest.mark.req("JOB-STO-5")
def test_a_transaction_with_a_stale_read_must_restart(scheduler: Scheduler, connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    memories(connection)
    scheduler.enqueue(**JOB, idempotency_key="k")

    with pytest.raises(StorageBusy):
        enqueue_within(connection, scheduler.calls, JOB)
    connection.rollback()
    connection.execute("BEGIN IMMEDIATE")
    again = enqueue_within(connection, scheduler.calls, JOB)
    connection.commit()

    assert isinstance(again, Enqueued)
    assert not again.deduplicated
    assert check(scheduler.calls.store) == []


def test_while_the_caller_holds_the_file_other_writers_are_busy(
    scheduler: Scheduler, connection: sqlite3.Connection, tmp_path: Path
) -> None:
    other = Scheduler(Calls(SqliteStore(tmp_path / "jobs.db", busy_seconds=0.05), Policy(), Clock()))
    connection.execute("BEGIN IMMEDIATE")
    enqueue_within(connection, scheduler.calls, JOB)

    with pytest.raises(StorageBusy):
        other.enqueue(**JOB, idempotency_key="k")
    connection.commit()

    assert other.enqueue(**JOB, idempotency_key="k").deduplicated is False
    assert check(scheduler.calls.store) == []
    other.close()


@pytest.mark.req("JOB-ENQ-11")
def test_defer_in_a_transaction_returns_the_job_or_raises_the_rejection(
    scheduler: Scheduler, connection: sqlite3.Connection
) -> None:
    connection.execute("INSERT INTO memories VALUES ('m', 'once')")
    with pytest.raises(JobRefused, match="action must be one of"):
        defer_within(connection, scheduler, "memory", "m", "forget")
    job = defer_within(connection, scheduler, "memory", "m", "verify", payload=[1])
    connection.commit()

    assert scheduler.show(job.job_id).job.payload == [1]
    assert memories(connection) == [("m",)]
