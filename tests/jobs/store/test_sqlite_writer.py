"""What a transaction remembers of jobs and objects is what the store would say."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from pendula.jobs.model import Job
from pendula.jobs.store.protocol import ObjectRow
from pendula.jobs.store.sqlite_writer import SqliteWriter
from tests.jobs.stores import opened

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


def test_a_change_is_seen_at_once_and_again_when_it_is_written(writer: SqliteWriter) -> None:
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


def test_what_is_undone_is_forgotten(writer: SqliteWriter) -> None:
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


def test_what_is_expected_is_what_would_be_found(writer: SqliteWriter) -> None:
    writer.put_object(KNOWN)
    jobs = [job_of(writer, number) for number in (1, 2, 3)]

    writer.expect([*(job.job_id for job in jobs), "job_000000000099", "nonsense", jobs[0].job_id])

    assert [writer.job(job.job_id) for job in jobs] == jobs
    assert writer.job("job_000000000099") is None
    assert writer.job("nonsense") is None
    assert writer.object("memory", "mem_0") == KNOWN
    assert writer.object("memory", "mem_1") is None


def test_what_is_removed_is_gone(writer: SqliteWriter) -> None:
    job = job_of(writer, 1)
    writer.expect([job.job_id])

    writer.remove([job])

    assert writer.job(job.job_id) is None


def test_a_statement_of_somebodys_own_is_seen(writer: SqliteWriter) -> None:
    job = job_of(writer, 1)
    writer.expect([job.job_id])
    # A trigger of somebody's own may change what the writer remembers.
    writer.execute("CREATE TABLE mine (n INTEGER)")
    writer._connection.execute(
        "CREATE TRIGGER theirs AFTER INSERT ON mine BEGIN UPDATE jobs SET updated_at = 9 WHERE seq = 1; END"
    )
    writer._connection.execute("INSERT INTO mine VALUES (1)")

    writer.execute("SELECT 1")

    assert job_of(writer, 1) == replace(job, updated_at=9)
