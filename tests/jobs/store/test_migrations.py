"""The numbered migrations, with invented ones after the current schema: a store is migrated with all its content."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import Policy, Scheduler
from pendula.jobs.calls import Calls
from pendula.jobs.messages import Job
from pendula.jobs.model import job_id
from pendula.jobs.store import sqlite
from pendula.jobs.store.file import opening
from pendula.jobs.store.protocol import StoreReadOnly, StoreUnusable
from pendula.jobs.store.sqlite import NewerStore, SqliteStore, migrations, statements
from pendula.jobs.upkeep.retention import retain
from pendula.jobs.upkeep.verification import check
from tests.jobs.filled_store import fill_store
from tests.jobs.stores import NOON, Clock

DAY = 86_400
# What a migration can do: a column for every job, a table filled from another, an index.
SECOND = """-- Version 2.

ALTER TABLE jobs ADD COLUMN region TEXT NOT NULL DEFAULT 'eu';
UPDATE jobs SET region = 'us' WHERE seq % 2;
CREATE TABLE regions (job_id TEXT PRIMARY KEY, region TEXT NOT NULL) STRICT;
INSERT INTO regions SELECT job_id, region FROM jobs;
"""
THIRD = "CREATE INDEX jobs_regions ON jobs (region, seq);\nDROP TABLE regions;\n"
MADE_UP = (SECOND, THIRD)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All migrations of an invented later Pendula; `monkeypatch.undo` restores the current ones."""
    scripts = [*migrations(), *MADE_UP]
    monkeypatch.setattr(opening, "migrations", lambda: scripts)
    return scripts


def made(version: int, path: Path, scripts: list[str] | None = None) -> sqlite3.Connection:
    """An empty store of this version."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    for script in (scripts or migrations())[:version]:
        for statement in statements(script):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    return connection


def all_of(scheduler: Scheduler) -> Iterator[Any]:
    """The content of a store as its calls show it."""
    yield scheduler.list(limit=1000)
    yield scheduler.audit(limit=1000)
    yield scheduler.metrics().jobs
    for job in scheduler.list(limit=1000).jobs:
        yield scheduler.history(job.job_id)
        yield scheduler.list(object_type=job.object_type, object_id=job.object_id)
    for status in ("queued", "running", "succeeded", "failed", "dead_letter"):
        yield scheduler.list(status=status)


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def test_there_is_one_version() -> None:
    assert len(migrations()) == 1


@pytest.mark.req("JOB-STO-8")
def test_a_store_of_an_older_version_keeps_its_content_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, clock = fill_store(tmp_path)
    before = list(all_of(source))
    source.close()
    scripts = [*migrations(), *MADE_UP]
    monkeypatch.setattr(opening, "migrations", lambda: scripts)

    store = SqliteStore(tmp_path / "jobs.db")
    scheduler = Scheduler(Calls(store, Policy(), clock))

    assert version_of(tmp_path / "jobs.db") == 3
    assert list(all_of(scheduler)) == before
    assert check(store) == []
    clock.pass_by(DAY)
    while jobs := scheduler.pull(worker_id="w", limit=2).jobs:
        scheduler.ack_batch([{"job_id": job.job_id, "result": "succeeded"} | proof(job) for job in jobs])
    scheduler.enqueue(object_type="memory", object_id="after", action="verify")
    clock.pass_by(40 * DAY)
    assert retain(scheduler.calls).removed["succeeded"] > 3
    assert check(store) == []
    scheduler.close()


def proof(job: Job) -> dict[str, Any]:
    return {"worker_id": job.worker_id, "lease_token": job.lease_token}


@pytest.mark.req("JOB-STO-8")
def test_a_migration_sees_the_rows_of_the_previous_version(tmp_path: Path, later: list[str]) -> None:
    with_many(tmp_path / "jobs.db", 10)

    with closing(SqliteStore(tmp_path / "jobs.db")):
        pass

    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        regions = connection.execute("SELECT region, count(*) FROM jobs GROUP BY region ORDER BY region").fetchall()
    assert regions == [("eu", 5), ("us", 5)]
    assert version_of(tmp_path / "jobs.db") == len(later)


@pytest.mark.req("JOB-STO-8")
def test_a_store_of_a_later_version_is_rejected_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = [*migrations(), *MADE_UP]
    with monkeypatch.context() as patched:
        patched.setattr(opening, "migrations", lambda: scripts)
        SqliteStore(tmp_path / "jobs.db").close()
    before = (tmp_path / "jobs.db").read_bytes()

    with pytest.raises(NewerStore) as refused:
        SqliteStore(tmp_path / "jobs.db")

    assert str(refused.value) == (
        "jobs.db has schema version 3, and this Pendula knows up to 1; open it with a newer Pendula"
    )
    assert refused.value.details == {"found": 3, "known": 1}
    assert (tmp_path / "jobs.db").read_bytes() == before


@pytest.mark.req("JOB-STO-8")
def test_a_read_only_store_of_an_older_version_is_rejected_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "jobs.db"
    SqliteStore(path).close()
    scripts = [*migrations(), *MADE_UP]
    monkeypatch.setattr(opening, "migrations", lambda: scripts)
    monkeypatch.setattr(sqlite, "is_read_only", lambda _: True)

    with pytest.raises(StoreReadOnly) as refused:
        SqliteStore(path)

    assert str(refused.value) == (
        f"{path} has schema version 1 and must be migrated to 3, but cannot be written; make it writable"
    )
    assert version_of(path) == 1


@pytest.mark.req("JOB-STO-8")
@pytest.mark.parametrize("marked", [0, 1, 2])
def test_a_store_marked_with_a_wrong_older_version_is_rejected_with_the_remedy(
    tmp_path: Path, later: list[str], marked: int
) -> None:
    path = tmp_path / "jobs.db"
    SqliteStore(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {marked}")

    with pytest.raises(StoreUnusable) as refused:
        SqliteStore(path)

    remedy = f"PRAGMA user_version = {len(later)}"
    assert f"is marked with version {marked}, but has the tables of version {len(later)}" in str(refused.value)
    assert remedy in str(refused.value)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(remedy)
    with closing(SqliteStore(path)) as store:
        assert check(store) == []


@pytest.mark.req("JOB-STO-8")
def test_a_migration_that_fails_halfway_leaves_the_previous_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, clock = fill_store(tmp_path)
    before = list(all_of(source))
    source.close()
    path = tmp_path / "jobs.db"
    with monkeypatch.context() as patched:
        faulty = [*migrations(), SECOND + "INSERT INTO regions SELECT job_id, region FROM jobs;\n"]
        patched.setattr(opening, "migrations", lambda: faulty)
        with pytest.raises(StoreUnusable):
            SqliteStore(path)

    assert version_of(path) == 1
    with closing(SqliteStore(path)) as store:
        assert list(all_of(Scheduler(Calls(store, Policy(), clock)))) == before
        assert check(store) == []


def with_many(path: Path, count: int) -> None:
    """A store of version 1 with `count` jobs: one in ten is queued, the others are finished."""
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
            "INSERT INTO counts (status, object_type, action, priority, queue, n) "
            "SELECT status, object_type, action, priority, queue, count(*) FROM jobs "
            "GROUP BY status, object_type, action, priority, queue"
        )
        connection.commit()


def assert_many_come_through(folder: Path, count: int) -> None:
    with_many(folder / "old.db", count)

    with Scheduler(Calls(SqliteStore(folder / "old.db"), Policy(pull_max_limit=1000), Clock())) as scheduler:
        by_status = scheduler.metrics().jobs
        oldest = scheduler.pull(worker_id="w", limit=3).jobs
        of_queue = scheduler.pull(worker_id="w", limit=3, queues=["q2"]).jobs

    assert version_of(folder / "old.db") == 3
    assert (by_status.queued, by_status.succeeded) == (count // 10, count - count // 10)
    assert [job.job_id for job in oldest] == [job_id(count - skipped) for skipped in (0, 10, 20)]
    assert {job.queue for job in of_queue} == {"q2"}


@pytest.mark.req("JOB-STO-8")
@pytest.mark.usefixtures("later")
def test_many_jobs_can_be_migrated(tmp_path: Path) -> None:
    assert_many_come_through(tmp_path, 20_000)


@pytest.mark.long
@pytest.mark.req("JOB-STO-8")
@pytest.mark.usefixtures("later")
def test_a_million_jobs_can_be_migrated(tmp_path: Path) -> None:
    assert_many_come_through(tmp_path, 1_000_000)
