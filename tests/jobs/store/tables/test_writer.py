"""The jobs and objects that a transaction caches equal those of the store."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pendula.jobs.messages import JobRefused
from pendula.jobs.model import Job, seq_of
from pendula.jobs.store.protocol import ObjectRow
from pendula.jobs.store.sqlite import StoreUnusable
from pendula.jobs.store.tables.writer import SqliteWriter
from pendula.jobs.upkeep import check, retain
from tests.jobs.stores import opened
from tests.jobs.watched_connections import watched, watching

__all__ = ["watched"]

KNOWN = ObjectRow("memory", "mem_0", 5, 1, "active")


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[SqliteWriter]:
    """In a transaction, on a store with the jobs of three objects."""
    scheduler, _ = opened(tmp_path)
    with scheduler:
        for number in range(3):
            scheduler.defer("memory", f"mem_{number}", "decay")
        with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield SqliteWriter(connection)
            connection.execute("ROLLBACK")


def job_of(writer: SqliteWriter, number: int) -> Job:
    job = writer.job(f"job_{number:012d}")
    assert job is not None
    return job


def test_a_change_is_visible_at_once_and_after_it_is_written(writer: SqliteWriter) -> None:
    after = replace(job_of(writer, 1), updated_at=7)
    mark = writer.mark({})
    writer.touch(after)
    writer.put_object(KNOWN)
    seen = job_of(writer, 1), writer.object("memory", "mem_0")

    writer.finish()

    assert mark.wrote is False
    assert seen == (after, KNOWN)
    again = SqliteWriter(writer._connection)
    assert (job_of(again, 1), again.object("memory", "mem_0")) == seen


def test_a_rolled_back_change_leaves_the_cache(writer: SqliteWriter) -> None:
    before = job_of(writer, 1)
    mark = writer.mark({})
    writer.expect([before.job_id])
    writer.touch(replace(before, updated_at=7))
    writer.put_object(KNOWN)

    writer.undo(mark)

    assert job_of(writer, 1) == before
    assert writer.object("memory", "mem_0") is None
    writer.finish()
    assert job_of(SqliteWriter(writer._connection), 1) == before


def test_prefetched_jobs_equal_stored_jobs(writer: SqliteWriter) -> None:
    writer.put_object(KNOWN)
    jobs = [job_of(writer, number) for number in (1, 2, 3)]

    writer.expect([*(job.job_id for job in jobs), "job_000000000099", "nonsense", jobs[0].job_id])

    assert [writer.job(job.job_id) for job in jobs] == jobs
    assert writer.job("job_000000000099") is None
    assert writer.job("nonsense") is None
    assert writer.object("memory", "mem_0") == KNOWN
    assert writer.object("memory", "mem_1") is None


def test_a_removed_job_leaves_the_cache(writer: SqliteWriter) -> None:
    job = job_of(writer, 1)
    writer.expect([job.job_id])

    writer.remove([job])

    assert writer.job(job.job_id) is None


def test_a_callers_statement_is_visible(writer: SqliteWriter) -> None:
    job = job_of(writer, 1)
    writer.expect([job.job_id])
    # A trigger of an application can change cached rows.
    writer.execute("CREATE TABLE mine (n INTEGER)")
    writer._connection.execute(
        "CREATE TRIGGER theirs AFTER INSERT ON mine BEGIN UPDATE jobs SET updated_at = 9 WHERE seq = 1; END"
    )
    writer._connection.execute("INSERT INTO mine VALUES (1)")

    writer.execute("SELECT 1")

    assert job_of(writer, 1) == replace(job, updated_at=9)


# Values kept from the previous transaction


def statements_of(call: Callable[[], Any]) -> list[str]:
    asked: list[str] = []
    with watching(lambda connection, sql, parameters: asked.append(sql)):
        call()
    return asked


@pytest.mark.usefixtures("watched")
def test_a_second_enqueue_queries_neither_the_last_number_nor_the_last_event(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.enqueue(object_type="memory", object_id="first", action="verify")

    asked = statements_of(lambda: scheduler.enqueue(object_type="memory", object_id="next", action="verify"))

    assert [sql for sql in asked if sql.startswith(("SELECT", "SAVEPOINT", "RELEASE"))] == []
    assert [sql.split(" (")[0] for sql in asked if "INTO" in sql] == [
        "INSERT INTO jobs",
        "INSERT INTO audit",
        "INSERT INTO counts",
    ]
    scheduler.close()


@pytest.mark.req("JOB-STO-5", "JOB-OBJ-3", "JOB-AUD-4")
def test_alternating_writers_on_one_file_continue_both_numberings(tmp_path: Path) -> None:
    one, clock = opened(tmp_path)
    other, _ = opened(tmp_path, clock=clock)
    ids = [
        writer.enqueue(object_type="memory", object_id=f"m{number}", action="verify").job.job_id
        for number, writer in enumerate((one, one, other, one, other, other, one))
    ]

    assert [seq_of(job_id) for job_id in ids] == list(range(1, 8))
    assert check(one.calls.store) == []
    for scheduler in (one, other):
        scheduler.close()


@pytest.mark.req("JOB-AUD-1", "JOB-AUD-4")
@pytest.mark.usefixtures("watched")
def test_a_failed_transaction_leaves_nothing_in_the_cache(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.enqueue(object_type="memory", object_id="first", action="verify")

    def breaks(connection: sqlite3.Connection, sql: str, parameters: Any) -> None:
        if sql == "COMMIT":
            raise sqlite3.OperationalError("the disk is full")

    with watching(breaks), pytest.raises(StoreUnusable):
        scheduler.enqueue(object_type="memory", object_id="lost", action="verify")
    job = scheduler.enqueue(object_type="memory", object_id="second", action="verify").job

    assert seq_of(job.job_id) == 2
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-STO-13")
def test_a_key_removed_by_another_process_counts_as_used(tmp_path: Path) -> None:
    one, clock = opened(tmp_path)
    other, _ = opened(tmp_path, clock=clock)
    job = one.enqueue(object_type="memory", object_id="m", action="verify", idempotency_key="k").job
    one.cancel(job.job_id)
    clock.pass_by(40 * 86_400)
    retain(other.calls)

    with pytest.raises(JobRefused, match="removed"):
        one.enqueue(object_type="memory", object_id="m", action="verify", idempotency_key="k")
    for scheduler in (one, other):
        scheduler.close()
