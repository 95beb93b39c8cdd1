"""Opening the file of a store: creation, migrations, read-only connections, and the proof that it can be written.

Opening a store that is up to date takes no lock. A migration does; it waits for another writer, reports the wait, and
gives up after a while. Free space does not show a quota, so the proof is a write; a successful one counts for a while,
so that a check every second writes a page only every few seconds.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from urllib.parse import quote

from pendula.jobs.model import Durability, StorageBusy
from pendula.jobs.store.file.turnstile import Turnstile
from pendula.jobs.store.protocol import StoreReadOnly, StoreUnusable
from pendula.kernel.errors import WorldBroken

log = logging.getLogger("pendula.jobs.store")

BUSY_SECONDS = 5.0
PATIENCE_SECONDS = 30.0  # for which a migration waits for another writer
REPORT_SECONDS = 1.0  # until the first report of a wait; pauses double
REPORT_MOST_SECONDS = 60.0
CACHE_KIB = 16384
LOG_BYTES = 4 << 20  # `journal_size_limit` of the write-ahead log
MIGRATIONS = Path(__file__).parents[1] / "migrations"
OWNER_ONLY = 0o600


class NewerStore(WorldBroken):
    """The file was written by a later Pendula. Facts: `found`, `known`."""

    code = "newer_store"


def make_file(path: Path) -> None:
    """Create an empty file with access for its owner only, unless it exists."""
    with suppress(OSError):  # `connect` reports the fault
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, OWNER_ONLY))


def connect(path: Path, durability: Durability, busy_seconds: float) -> sqlite3.Connection:
    """A connection that reads and writes; never creates the file, which may have been moved away for a while.

    It does no checkpoints: the writer controls them.
    """
    connection = _opened(f"file:{quote(os.fsencode(path))}?mode=rw", busy_seconds, uri=True)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durability is Durability.FULL else 'NORMAL'}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    except UnicodeDecodeError as trouble:
        # The message of SQLite quotes a damaged part of the schema that is not valid text.
        connection.close()
        raise sqlite3.DatabaseError(f"malformed database schema: {trouble}") from trouble
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_look(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """A read-only connection, for a file that cannot be written.

    Raises `StoreReadOnly` where the write-ahead log has content that cannot be read without write access.
    """
    place = Path(os.path.realpath(path))  # SQLite follows links and keeps its log beside the real file
    address = f"file:{quote(os.fsencode(place))}"
    log_file = place.with_name(place.name + "-wal")
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = _opened(f"{address}?{mode}", busy_seconds, uri=True)
        try:
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError as trouble:
            connection.close()
            if log_file.exists() and log_file.stat().st_size:
                message = f"{path} cannot be written, and its write-ahead log cannot be read without: {trouble}"
                raise StoreReadOnly(message, path=str(path)) from trouble
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise StoreUnusable(f"{path} can neither be written nor read", path=str(path))


def _opened(address: str, busy_seconds: float, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        address, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256, uri=uri
    )


def is_read_only(path: Path) -> bool:
    """Whether the file exists and it, or the folder of its write-ahead log, cannot be written."""
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def has_version(connection: sqlite3.Connection) -> bool:
    """Whether any migration was applied: the file is a store."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version > 0


def _schema_version(connection: sqlite3.Connection, path: Path) -> int:
    """The number of the last migration that was applied. Raises `NewerStore`."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    known = len(migrations())
    if version > known:
        raise NewerStore(
            f"{path.name} has schema version {version}, and this Pendula knows up to {known}; open it with a newer "
            "Pendula",
            found=version,
            known=known,
        )
    return version


def schema_versions(connection: sqlite3.Connection, path: Path) -> tuple[int, int]:
    """The version of the store, and the newest one; takes no lock. Raises `NewerStore`."""
    return _schema_version(connection, path), len(migrations())


def is_up_to_date(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether no migration is missing; takes no lock. Raises `NewerStore`."""
    version, newest = schema_versions(connection, path)
    return version == newest


def bring_up_to_date(
    connection: sqlite3.Connection,
    path: Path,
    turnstile: Turnstile,
    *,
    patience: float = PATIENCE_SECONDS,
    on_wait: Callable[[str], None] = log.warning,
) -> None:
    """Apply the missing migrations, each in its own transaction.

    Waits up to `patience` seconds for another writer, with growing pauses between reports to `on_wait`, at most a
    minute; then raises `StorageBusy`.
    """
    waiting = Waiting(path, patience, on_wait)
    steps = migrations()
    through = turnstile.acquire(min(patience, REPORT_SECONDS))  # only for fairness: the lock of the file decides
    try:
        while _one_step(connection, path, steps, waiting):
            pass
    finally:
        if through:
            turnstile.release()


class Waiting:
    """Retries while another writer holds the file, and reports the wait."""

    def __init__(self, path: Path, patience: float, on_wait: Callable[[str], None]) -> None:
        self._path = path
        self._patience = patience
        self._on_wait = on_wait
        self._since = time.monotonic()
        self._next_report = 0.0  # seconds after the start

    def begin(self, connection: sqlite3.Connection) -> None:
        """Begin a write transaction as soon as possible."""
        before = connection.execute("PRAGMA busy_timeout").fetchone()[0]
        connection.execute(f"PRAGMA busy_timeout = {round(min(self._patience, REPORT_SECONDS) * 1000)}")
        try:
            while True:
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as trouble:
                    if not is_busy(trouble):
                        raise
                    self._report(trouble)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {before}")

    def _report(self, trouble: sqlite3.Error) -> None:
        waited = time.monotonic() - self._since
        if waited >= self._patience:
            raise StorageBusy(
                f"{self._path.name} is locked by another writer for more than {waited:.0f} s"
            ) from trouble
        if waited >= self._next_report:
            self._next_report = waited + min(max(waited, REPORT_SECONDS / 2), REPORT_MOST_SECONDS)
            self._on_wait(f"waiting for the writer of {self._path}, {waited:.0f} s")


def _one_step(connection: sqlite3.Connection, path: Path, steps: list[str], waiting: Waiting) -> bool:
    """Apply one more migration if any is missing; returns whether it did."""
    waiting.begin(connection)
    try:
        version = _schema_version(connection, path)
        if version < len(steps):
            for statement in statements(steps[version]):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.execute("COMMIT")
    except BaseException as trouble:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        if isinstance(trouble, sqlite3.OperationalError):
            _refuse_wrong_mark(connection, path, steps)
        raise
    return version < len(steps)


def _refuse_wrong_mark(connection: sqlite3.Connection, path: Path, steps: list[str]) -> None:
    """Raise `StoreUnusable` where the file has the tables of a later version than its mark says."""
    marked, there = _schema_version(connection, path), _definitions(connection)
    found = 0
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for version, step in enumerate(steps, 1):
            for statement in statements(step):
                made.execute(statement)
            if _definitions(made) <= there:
                found = version
    if found > marked:
        raise StoreUnusable(
            f"{path} is marked with version {marked}, but has the tables of version {found}: another program changed "
            f"the mark. Correct it with: sqlite3 {path} 'PRAGMA user_version = {found}'",
            path=str(path),
        )


def _definitions(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    return set(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))


def is_busy(trouble: sqlite3.Error) -> bool:
    # Errors of Python's own, such as a call from the wrong thread, have no code.
    return getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF == sqlite3.SQLITE_BUSY


def is_read_only_trouble(trouble: sqlite3.Error) -> bool:
    return getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF == sqlite3.SQLITE_READONLY


@cache
def migrations() -> list[str]:
    """The numbered migrations, in order."""
    return [file.read_text(encoding="utf-8") for file in sorted(MIGRATIONS.glob("*.sql"))]


def statements(script: str) -> Iterator[str]:
    """The statements of a script; `executescript` would end the transaction."""
    statement = ""
    for line in script.splitlines():
        if not statement and (not line.strip() or line.lstrip().startswith("--")):
            continue
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


BELIEVED_SECONDS = 5.0
PROOF_SECONDS = 0.8  # for which a readiness check waits for another writer


class WriteProof:
    """The last successful write, repeated once it is too old."""

    def __init__(self, durability: Durability) -> None:
        self._durability = durability
        self._believed_until = 0.0

    def check(self, place: Path) -> None:
        """Rewrite one page unchanged and flush it; raises what a writing call would raise.

        The caller has checked that the file is the one it opened.
        """
        if time.monotonic() < self._believed_until:
            return
        self._believed_until = 0.0
        try:
            self._write(place)
        except sqlite3.Error as trouble:
            if is_busy(trouble):
                raise StorageBusy(f"{place.name} is locked by another writer") from trouble
            if is_read_only_trouble(trouble):
                raise StoreReadOnly(f"{place} cannot be written", path=str(place)) from trouble
            raise StoreUnusable(f"{place} cannot be written: {trouble}", path=str(place)) from trouble
        self._believed_until = time.monotonic() + BELIEVED_SECONDS

    def _write(self, place: Path) -> None:
        with closing(connect(place, self._durability, PROOF_SECONDS)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
