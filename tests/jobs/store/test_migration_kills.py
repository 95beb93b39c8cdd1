"""A killed migration leaves a consistent store of one version or the next, and the next opening continues from there.

Children are forked from the test process, which has no store open while it forks.
"""

import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pendula.jobs import Policy, Scheduler
from pendula.jobs.calls import Calls
from pendula.jobs.model import Durability
from pendula.jobs.store.file import opening
from pendula.jobs.store.file.opening import bring_up_to_date, connect, migrations
from pendula.jobs.store.file.turnstile import Turnstile
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from tests.forking import forked
from tests.jobs.filled_store import fill_store
from tests.jobs.store.test_migrations import MADE_UP, all_of, made, with_many
from tests.jobs.stores import Clock
from tests.waiting import status_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")

Schema = list[tuple[str, str, str]]


def migrating(path: Path, watch: Callable[[str], None]) -> int:
    """A child that migrates the store; `watch` gets each statement before it is executed."""

    def migrate() -> None:
        connection = connect(path, Durability.NORMAL, 5)  # survives a kill, which is enough here
        connection.set_trace_callback(watch)
        bring_up_to_date(connection, path, Turnstile(path))
        connection.close()

    return forked(migrate)


def was_killed(child: int) -> bool:
    status = status_of(child)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def killer(moment: int) -> Callable[[str], None]:
    """Kills the process before the statement of this number."""
    heard = 0

    def hear(_: str) -> None:
        nonlocal heard
        heard += 1
        if heard > moment:
            os.kill(os.getpid(), signal.SIGKILL)

    return hear


def schema_of(connection: sqlite3.Connection) -> Schema:
    query = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"
    return connection.execute(query).fetchall()


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Migrations of an invented later Pendula, which the children apply."""
    scripts = [*migrations(), *MADE_UP]
    monkeypatch.setattr(opening, "migrations", lambda: scripts)


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> list[Schema]:
    """The schema of each version; there is no version 0."""
    folder = tmp_path_factory.mktemp("schemas")
    scripts = [*migrations(), *MADE_UP]
    schemas: list[Schema] = [[]]
    for version in range(1, len(scripts) + 1):
        with closing(made(version, folder / f"{version}.db", scripts)) as connection:
            schemas.append(schema_of(connection))
    return schemas


def version_of(path: Path, schemas: list[Schema]) -> int:
    """The version whose schema the store has exactly."""
    with closing(sqlite3.connect(path)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        assert schema_of(connection) == schemas[version]
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return version


@pytest.mark.req("JOB-STO-8", "JOB-STO-7")
def test_a_migration_killed_before_any_statement_leaves_a_consistent_store(
    tmp_path: Path, schemas: list[Schema], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as present:
        present.setattr(opening, "migrations", migrations)
        source, clock = fill_store(tmp_path)
        before = list(all_of(source))
        source.close()
    seen: list[int] = []
    moment = 0
    while True:
        path = tmp_path / f"{moment}.db"
        shutil.copyfile(tmp_path / "jobs.db", path)
        if not was_killed(migrating(path, killer(moment))):
            break
        seen.append(version_of(path, schemas))
        store = SqliteStore(path, durability=Durability.NORMAL)
        scheduler = Scheduler(Calls(store, Policy(), clock))
        assert list(all_of(scheduler)) == before
        assert check(store) == []
        scheduler.close()
        moment += 1

    assert seen == sorted(seen)
    assert set(seen) == {1, 2, 3}


@pytest.mark.req("JOB-STO-8", "JOB-STO-7")
def test_a_large_migration_killed_at_any_time_can_continue(tmp_path: Path, schemas: list[Schema]) -> None:
    path, chance = tmp_path / "old.db", random.Random(7)
    with_many(path, 20_000)
    versions = [1]
    for _ in range(60):
        child = migrating(path, lambda _: None)
        time.sleep(chance.random() / 8)
        os.kill(child, signal.SIGKILL)
        was_killed(child)
        versions.append(version_of(path, schemas))
        if versions[-1] == len(schemas) - 1:
            break

    store = SqliteStore(path)
    assert store.integrity() == []
    with Scheduler(Calls(store, Policy(), Clock())) as scheduler:
        assert scheduler.metrics().jobs.queued == 2000
    assert versions == sorted(versions)
