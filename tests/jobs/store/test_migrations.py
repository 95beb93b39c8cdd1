"""A store that an older version filled is brought forward with everything in it, and goes on."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import Policy, Scheduler
from pendula.jobs.calls import Calls
from pendula.jobs.ids import job_id
from pendula.jobs.store.sqlite import SqliteStore, migrations, statements
from pendula.jobs.upkeep.retention import retain
from pendula.jobs.upkeep.verification import check
from tests.jobs.lived import lived
from tests.jobs.stores import NOON, Clock

VERSIONS = range(1, len(migrations()))
DAY = 86_400


def filled_as(version: int, path: Path, source: Path) -> None:
    """A store of an old version with all that another store holds and this version knew."""
    with closing(made(version, path)) as connection:
        connection.execute("ATTACH ? AS new", (str(source),))
        for table in tables(connection):
            columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}")
        connection.commit()


def made(version: int, path: Path) -> sqlite3.Connection:
    """An empty store of this version."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    for script in migrations()[:version]:
        for statement in statements(script):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    return connection


def tables(connection: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    return [row[0] for row in connection.execute(query)]


def all_of(scheduler: Scheduler) -> Iterator[Any]:
    """What a store shows."""
    yield scheduler.list(limit=1000)
    yield scheduler.audit(limit=1000)
    yield scheduler.metrics()["jobs"]
    for job in scheduler.list(limit=1000)["jobs"]:
        yield scheduler.history(job["job_id"])
        yield scheduler.list(object_type=job["object_type"], object_id=job["object_id"])
    for status in ("queued", "running", "succeeded", "failed", "dead_letter"):
        yield scheduler.list(status=status)


@pytest.mark.req("JOB-STO-8")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_filled_store_of_an_older_version_shows_the_same_and_goes_on(tmp_path: Path, version: int) -> None:
    source, clock = lived(tmp_path)
    before = list(all_of(source))
    source.close()
    filled_as(version, tmp_path / "old.db", tmp_path / "jobs.db")

    store = SqliteStore(tmp_path / "old.db")
    scheduler = Scheduler(Calls(store, Policy(), clock))

    assert list(all_of(scheduler)) == before
    assert check(store) == []
    clock.pass_by(DAY)
    while jobs := scheduler.pull(worker_id="w", limit=2)["jobs"]:
        scheduler.ack_batch([{"job_id": job["job_id"], "result": "succeeded"} | proof(job) for job in jobs])
    scheduler.enqueue(object_type="memory", object_id="after", action="verify")
    clock.pass_by(40 * DAY)
    assert retain(scheduler.calls).removed["succeeded"] > 3
    assert check(store) == []
    scheduler.close()


def proof(job: dict[str, Any]) -> dict[str, str]:
    return {"worker_id": job["worker_id"], "lease_token": job["lease_token"]}


def with_many(path: Path, count: int) -> None:
    """A store of the first version with so many jobs: one in ten waits, the others are over."""
    with closing(made(1, path)) as connection:
        connection.create_function("job_id", 1, job_id, deterministic=True)
        facts = {"count": count, "now": NOON}
        numbers = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)"
        connection.execute(
            f"""{numbers} INSERT INTO jobs (seq, job_id, object_type, object_id, action, run_at, priority, attempt,
                max_attempts, idempotency_key, status, created_at, updated_at, scheduled_for, delivery_count, queue,
                expired)
            SELECT n, job_id(n), 'memory', 'm' || n, 'verify', :now - n, n % 3, 0, 3, 'k' || n,
                iif(n % 10, 'succeeded', 'queued'), :now, :now, :now - n, 0, 'q' || (n % 4), 0 FROM numbers""",
            facts,
        )
        connection.execute(
            "INSERT INTO counts SELECT status, object_type, action, priority, queue, count(*) FROM jobs "
            "GROUP BY status, object_type, action, priority, queue"
        )
        connection.commit()


def assert_many_come_through(folder: Path, count: int) -> None:
    with_many(folder / "old.db", count)

    with Scheduler(Calls(SqliteStore(folder / "old.db"), Policy(pull_max_limit=1000), Clock())) as scheduler:
        by_status = scheduler.metrics()["jobs"]
        oldest = scheduler.pull(worker_id="w", limit=3)["jobs"]
        of_queue = scheduler.pull(worker_id="w", limit=3, queues=["q2"])["jobs"]

    assert (by_status["queued"], by_status["succeeded"]) == (count // 10, count - count // 10)
    assert [job["job_id"] for job in oldest] == [job_id(count - skipped) for skipped in (0, 10, 20)]
    assert {job["queue"] for job in of_queue} == {"q2"}


@pytest.mark.req("JOB-STO-8")
def test_many_jobs_are_migrated(tmp_path: Path) -> None:
    assert_many_come_through(tmp_path, 20_000)


@pytest.mark.long
@pytest.mark.req("JOB-STO-8")
def test_a_million_jobs_are_migrated(tmp_path: Path) -> None:
    assert_many_come_through(tmp_path, 1_000_000)
