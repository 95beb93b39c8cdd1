"""One SQLite file: settings, schema, migrations, other programs, and backups while it is in use."""

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.model import Durability, Policy, StorageBusy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.file import opening as store_module
from pendula.jobs.store.file.identity import NetworkFileSystem, refuse_network
from pendula.jobs.store.protocol import Listing, StoreReadOnly, WriteInsideEffect
from pendula.jobs.store.sqlite import NotDurable, SqliteStore, StoreUnusable, migrations, statements
from pendula.jobs.store.sqlite_files import check_store
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.effects import once
from pendula.kernel.cancellation import Cancellation, Cancelled, cancellable
from tests.forking import forked
from tests.jobs.stores import Clock, opened
from tests.jobs.watched_connections import everything, failing_at, watched, watching
from tests.waiting import line_of, status_of

__all__ = ["watched"]

ROOT = Path(__file__).resolve().parents[3]
JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}
FULL, NORMAL = 2, 1


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


# Durability


@pytest.mark.req("JOB-STO-6", "JOB-STO-5")
@pytest.mark.parametrize(("durability", "synchronous"), [(Durability.FULL, FULL), (Durability.NORMAL, NORMAL)])
@pytest.mark.usefixtures("watched")
def test_the_connection_that_commits_has_the_settings_of_the_durability(
    tmp_path: Path, durability: Durability, synchronous: int
) -> None:
    scheduler = Scheduler(Calls(SqliteStore(tmp_path / "jobs.db", durability=durability), Policy(), Clock()))
    committed: list[sqlite3.Connection] = []

    def watcher(connection: sqlite3.Connection, sql: str, parameters: Any) -> None:
        if sql == "COMMIT":
            committed.append(connection)

    with watching(watcher):
        scheduler.enqueue(**JOB)

    [connection] = committed
    assert (pragma(connection, "synchronous"), pragma(connection, "journal_mode")) == (synchronous, "wal")
    assert pragma(connection, "foreign_keys") == 1
    scheduler.close()


@pytest.mark.req("JOB-STO-6")
@pytest.mark.usefixtures("watched")
def test_every_write_begins_immediate_and_ends_before_the_reply(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    seen: list[str] = []

    with watching(lambda connection, sql, parameters: seen.append(sql)):
        scheduler.enqueue(**JOB)

    assert seen[0] == "BEGIN IMMEDIATE"
    assert seen[-1] == "COMMIT"
    scheduler.close()


@pytest.mark.req("JOB-STO-6")
def test_a_connection_that_does_not_flush_is_detected(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "jobs.db", durability=Durability.NORMAL)
    store.check_durable()
    store.durability = Durability.FULL

    with pytest.raises(NotDurable) as found:
        store.check_durable()

    assert (found.value.details["synchronous"], found.value.details["journal_mode"]) == (NORMAL, "wal")
    store.close()


# Schema


@pytest.mark.req("JOB-STO-3")
def test_a_database_constraint_makes_keys_unique(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.enqueue(**JOB)
    scheduler.close()

    names = "job_id, object_type, object_id, action, run_at, priority, attempt, max_attempts, idempotency_key, status"
    rest = "created_at, updated_at, scheduled_for, delivery_count, queue, expired"
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, pytest.raises(sqlite3.IntegrityError) as found:
        connection.execute(f"INSERT INTO jobs ({names}, {rest}) SELECT {names}, {rest} FROM jobs")

    assert "jobs.idempotency_key" in str(found.value)


@pytest.mark.req("JOB-STO-4")
def test_all_tables_are_strict_and_times_and_priorities_are_integers(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.close()
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        tables = {row[1]: row[5] for row in connection.execute("PRAGMA table_list") if row[0] == "main"}
        strict = {name: bool(is_strict) for name, is_strict in tables.items() if not name.startswith("sqlite_")}
        types = {row[1]: row[2] for row in connection.execute("PRAGMA table_info(jobs)")}

    assert all(strict.values()), strict
    assert "jobs" in strict
    for name in ("run_at", "scheduled_for", "created_at", "updated_at", "lease_expires_at", "priority"):
        assert types[name] == "INTEGER"


# Migrations


@pytest.mark.req("JOB-STO-8")
@pytest.mark.usefixtures("watched")
def test_a_migration_that_fails_at_any_statement_leaves_the_old_version(tmp_path: Path) -> None:
    count = sum(1 for script in migrations() for _ in statements(script))
    failures = 0
    for at in range(1, count + 100):
        path = tmp_path / f"{at}.db"
        try:
            with watching(failing_at(at)):
                SqliteStore(path).close()
        except StoreUnusable:
            failures += 1
            assert version_and_tables(path) in whole_steps()
        else:
            break

    # Each trial starts after the last complete step.
    assert failures > max(sum(1 for _ in statements(script)) for script in migrations())
    assert version_and_tables(path) == whole()


@pytest.mark.req("JOB-STO-8")
def test_a_migration_that_is_killed_at_any_statement_leaves_the_old_version(tmp_path: Path) -> None:
    """A child without threads forks once per statement, and each grandchild dies before that statement."""
    program = """
        import os, signal, sqlite3, sys
        from functools import partial
        from pathlib import Path

        from pendula.jobs.model import Durability
        from pendula.jobs.store.sqlite import SqliteStore
        from tests.jobs.watched_connections import Watched

        class Mortal(Watched):
            left = 0

            def execute(self, sql, parameters=(), /):
                Mortal.left -= 1
                if Mortal.left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().execute(sql, parameters)

        sqlite3.connect = partial(sqlite3.connect, factory=Mortal)
        for at in range(1, 200):
            if (child := os.fork()) == 0:
                signal.alarm(900)
                Mortal.left = at
                SqliteStore(Path(sys.argv[1]) / f"{at}.db", durability=Durability.NORMAL)
                os._exit(0)
            if os.waitpid(child, 0)[1] == 0:
                print(at)
                break
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    survived = int(found.stdout)

    seen = [version_and_tables(tmp_path / f"{at}.db") for at in range(1, survived + 1)]

    assert set(seen) == whole_steps()
    assert seen[-1] == whole()
    for at in range(1, survived + 1):
        SqliteStore(tmp_path / f"{at}.db", durability=Durability.NORMAL).close()
        assert version_and_tables(tmp_path / f"{at}.db") == whole()


def whole_steps() -> set[tuple[int, int]]:
    """Version and number of tables before the first step and after each: no other combination is ever stored."""
    scripts = migrations()
    return {
        (number, sum(script.count("CREATE TABLE") for script in scripts[:number])) for number in range(len(scripts) + 1)
    }


def whole() -> tuple[int, int]:
    """The same after all migrations."""
    return max(whole_steps())


def version_and_tables(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as connection:
        tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        return pragma(connection, "user_version"), connection.execute(tables).fetchone()[0]


# Other programs


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Another program holds the write lock of the file."""
    program = """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        print("held", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert line_of(child.stdout) == "held\n"
        yield
        child.stdin.close()


@pytest.mark.req("JOB-STO-5")
def test_calls_blocked_by_a_foreign_writer_are_busy_and_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    scheduler = Scheduler(Calls(SqliteStore(path, busy_seconds=0.05), Policy(), Clock()))
    scheduler.enqueue(**JOB)
    before = everything(str(path))

    with holding(path):
        with pytest.raises(StorageBusy) as busy:
            scheduler.enqueue(**JOB, idempotency_key="k")
        with pytest.raises(StorageBusy):
            scheduler.pull(worker_id="w")
        shown = scheduler.metrics().jobs_due_count

    assert (busy.value.code, busy.value.status) == ("storage_busy", 503)
    assert shown == 1
    assert everything(str(path)) == before
    assert scheduler.enqueue(**JOB, idempotency_key="k").deduplicated is False
    scheduler.close()


@pytest.mark.req("JOB-STO-5")
def test_a_store_locked_by_another_program_can_be_opened_and_read(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    scheduler, _ = opened(tmp_path)
    scheduler.enqueue(**JOB)
    scheduler.close()

    with holding(path):
        store = SqliteStore(path, busy_seconds=0.05)
        there = store.read(lambda look: look.jobs(Listing(10)))
        store.backup(tmp_path / "copy.db")
        findings = check(store)
        with pytest.raises(StorageBusy):
            store.write(lambda _: None)
    store.write(lambda _: None)
    store.close()

    assert len(there) == 1
    assert findings == []


@pytest.mark.req("JOB-STO-5")
def test_a_migration_waits_for_another_writer_and_logs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jobs.db"
    SqliteStore(path).close()
    known = migrations()
    monkeypatch.setattr(store_module, "migrations", lambda: [*known, "CREATE TABLE later (n INTEGER) STRICT;\n"])
    monkeypatch.setattr(store_module, "REPORT_SECONDS", 0.02)
    waits: list[str] = []

    with holding(path):
        with pytest.raises(StorageBusy):
            SqliteStore(path, patience_seconds=0.1, on_wait=waits.append)
        released = threading.Event()

        def hear(sentence: str) -> None:
            waits.append(sentence)
            released.set()

        opening = threading.Thread(target=lambda: SqliteStore(path, on_wait=hear).close())
        opening.start()
        assert released.wait(240)
    opening.join(240)

    assert waits[0].startswith(f"waiting for the writer of {path}, 0 s")
    assert version_and_tables(path)[0] == len(known) + 1


def test_a_store_opened_by_a_link_uses_the_same_turnstile(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.enqueue(**JOB)
    [job] = scheduler.pull(worker_id="w").jobs
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(tmp_path / "jobs.db")

    with Scheduler.open(link) as linked:
        with pytest.raises(WriteInsideEffect):
            once(scheduler.calls, job, lambda _: linked.defer("memory", "m", "verify").job_id)
        linked.defer("memory", "m", "verify")

    assert [entry.name for entry in link.parent.iterdir()] == ["link.db"]
    assert scheduler.count().count == 2
    scheduler.close()


def test_a_file_whose_name_is_not_text_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff\xfe.db")
    SqliteStore(path).close()

    check_store(path)


@pytest.mark.long  # SQLite waits ten seconds for the index of the log
def test_a_link_to_a_read_only_store_finds_the_log_beside_the_store(tmp_path: Path) -> None:
    """Without the log, commits that only the log has would be missing without an error."""
    SqliteStore(tmp_path / "jobs.db").close()
    (tmp_path / "jobs.db-wal").write_bytes(b"not a valid log")
    (tmp_path / "jobs.db-shm").mkdir()
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(tmp_path / "jobs.db")

    with pytest.raises(StoreReadOnly):
        store_module.connect_to_look(link, 0.05)


def test_only_the_owner_can_read_the_file_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        scheduler, _ = opened(tmp_path)
        scheduler.enqueue(**JOB)
    finally:
        os.umask(before)

    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()}
    scheduler.close()

    assert set(modes) >= {"jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db.turn", "jobs.db.lock"}
    assert set(modes.values()) == {0o600}


def test_a_file_that_is_not_a_database_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.write_bytes(b"once upon a time" * 1000)

    with pytest.raises(StoreUnusable):
        SqliteStore(path)


def test_a_missing_folder_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable):
        SqliteStore(tmp_path / "nowhere" / "jobs.db")


@pytest.mark.parametrize(
    ("mounts", "refused"),
    [
        ("/dev/sda1 / ext4 rw 0 0\n", None),
        ("server:/x / nfs4 rw 0 0\n", "nfs4"),
        ("/dev/sda1 / ext4 rw 0 0\nserver:/x {folder} nfs rw 0 0\n", "nfs"),
        ("server:/x / nfs rw 0 0\n/dev/sdb {folder} xfs rw 0 0\n", None),
        ("/dev/sda1 / ext4 rw 0 0\nserver:/x {folder}/other cifs rw 0 0\n", None),
        ("/dev/sdb {folder} xfs rw 0 0\nme@host: {folder} fuse.sshfs rw 0 0\n", "fuse.sshfs"),
        ("nonsense\n\n/dev/sda1 / 9p rw 0 0\n", "9p"),
        ("", None),
    ],
)
def test_network_file_systems_are_rejected(tmp_path: Path, mounts: str, refused: str | None) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    table = tmp_path / "mounts"
    table.write_text(mounts.replace("{folder}", str(folder).replace(" ", "\\040")))

    if refused is None:
        refuse_network(folder, table)
    else:
        with pytest.raises(NetworkFileSystem) as found:
            refuse_network(folder, table)
        assert (found.value.code, found.value.details["type"]) == ("network_file_system", refused)


def test_a_system_that_does_not_list_its_mounts_is_trusted(tmp_path: Path) -> None:
    refuse_network(tmp_path, tmp_path / "no mounts")


# Copies


@pytest.mark.req("JOB-STO-12")
def test_a_backup_taken_during_writes_is_complete_and_of_one_moment(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    for first in range(0, 4000, 1000):
        scheduler.enqueue_batch([{**JOB, "object_id": f"m{first + number}"} for number in range(1000)])
    other = SqliteStore(tmp_path / "jobs.db")
    elsewhere = Scheduler(Calls(other, Policy(), Clock()))
    steps = 0

    def write(done: int, total: int) -> None:
        nonlocal steps
        steps += 1
        assert steps < 1000, "the copy begins again with every write"
        # Until the copy stops restarting and reads everything as of one moment.
        elsewhere.enqueue(**JOB, idempotency_key=f"during {steps}")

    scheduler.calls.store.backup(tmp_path / "copy.db", write)  # type: ignore[attr-defined]

    copy = SqliteStore(tmp_path / "copy.db")
    assert steps > 2
    assert check(copy) == []
    assert 4000 <= len(copy.read(lambda look: look.jobs(Listing(10_000)))) < 4000 + steps
    assert scheduler.metrics().jobs.queued == 4000 + steps
    for store in (copy, other):
        store.close()
    scheduler.close()


@pytest.mark.req("JOB-STO-12")
def test_the_log_can_be_truncated_between_two_steps_of_a_backup(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    for first in range(0, 8000, 1000):
        scheduler.enqueue_batch([{**JOB, "object_id": f"m{first + n}", "payload": "x" * 1000} for n in range(1000)])
    emptied: list[int] = []
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as other:

        def empty_log(_done: int, _total: int) -> None:
            emptied.append(other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])

        scheduler.calls.store.backup(tmp_path / "copy.db", empty_log)  # type: ignore[attr-defined]
    scheduler.close()

    assert len(emptied) > 2
    assert set(emptied) == {0}, "a reader was in the way"
    with closing(SqliteStore(tmp_path / "copy.db")) as copy:
        assert check(copy) == []


def test_a_closed_store_rejects_calls(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.close()
    scheduler.close()

    with pytest.raises(StoreUnusable):
        scheduler.enqueue(**JOB)


@pytest.mark.parametrize("call", ["write", "read"])
def test_a_forked_child_cannot_use_the_store_of_its_parent(tmp_path: Path, call: str) -> None:
    store = SqliteStore(tmp_path / "jobs.db")
    store.write(lambda tx: None)

    def use_inherited_store() -> None:
        try:
            getattr(store, call)(lambda tx: None)
        except StoreUnusable as refused:
            os._exit(7 if "forked" in refused.message else 8)

    child = forked(use_inherited_store)

    assert os.waitstatus_to_exitcode(status_of(child)) == 7
    assert store.integrity() == []
    store.close()


# Cancelled reads


def test_a_running_query_stops_when_its_read_is_cancelled(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "jobs.db")
    cancellation = Cancellation()

    def look(reader: Any) -> None:
        cancellation.cancel()
        long = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000000) SELECT count(*) FROM n"
        reader._connection.execute(long).fetchone()

    with closing(store):
        with pytest.raises(Cancelled), cancellable(cancellation):
            store.read(look)

        assert store.read(lambda reader: reader.count(Listing(limit=1))) == 0
