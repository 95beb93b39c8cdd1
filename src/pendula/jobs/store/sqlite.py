"""Jobs in one SQLite file: write-ahead log, one writer at a time over all processes, one flush for many callers.

Callers of `write` stand in line; whoever comes first does the work of all who stand there, in one transaction, and all
return when it is durable. Each caller's part is a savepoint of its own: what fails is undone, the rest goes on.
"""

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, Generic, TypeVar

from pendula.jobs.model import Durability, StorageBusy
from pendula.jobs.store.mounts import refuse_network
from pendula.jobs.store.protocol import Reader, Writer
from pendula.jobs.store.sqlite_reader import SqliteReader
from pendula.jobs.store.sqlite_writer import Kept, SqliteWriter
from pendula.jobs.store.turnstile import Turnstile
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WorldBroken

T = TypeVar("T")

BUSY_SECONDS = 5.0
TOGETHER_MOST = 256  # callers served by one transaction
NOTHING: Mapping[str, Json] = {}
MIGRATIONS = "migrations"


class StoreUnusable(WorldBroken):
    """The file is not a store of ours, or the disk does not let us use it."""

    code = "store_unusable"


class NewerStore(WorldBroken):
    """The file was written by a later Pendula. Facts: `found`, `known`."""

    code = "newer_store"


class NotDurable(WorldBroken):
    """The connection does not give the durability that was asked for. Facts: `synchronous`, `journal_mode`."""

    code = "not_durable"


class _Call(Generic[T]):
    """One caller's work and what came of it."""

    __slots__ = ("done", "error", "leads", "metadata", "result", "turn", "work")

    def __init__(self, work: Callable[[Writer], T], metadata: Mapping[str, Json]) -> None:
        self.work = work
        self.metadata = metadata
        self.done = False
        self.leads = False
        self.turn = threading.Lock()  # held until the work is done, or until it is this caller's turn to lead
        self.result: T | None = None
        self.error: BaseException | None = None


class SqliteStore:
    """One file; safe for threads and for any number of processes, not for forks of an open one."""

    def __init__(
        self, path: str | Path, *, durability: Durability = Durability.FULL, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self.path = Path(path)
        self.durability = durability
        self._busy = busy_seconds
        self._closed = False
        refuse_network(self.path.parent)
        try:
            self._connection = self._connect()
        except sqlite3.Error as trouble:
            raise self._trouble("is not a usable store of jobs", trouble) from trouble
        try:
            self._turnstile = Turnstile(self.path)
        except OSError as trouble:
            self._connection.close()
            raise StoreUnusable(f"{self.path} cannot be opened: {trouble.strerror}", path=str(path)) from trouble
        try:
            self._migrate()
        except BaseException as trouble:
            self._connection.close()
            self._turnstile.close()
            if isinstance(trouble, sqlite3.Error):
                raise self._trouble("is not a usable store of jobs", trouble) from trouble
            raise
        self._writing = threading.Lock()  # held while the connection is used
        self._guard = threading.Lock()  # held while the line changes
        self._led = False  # somebody serves the line, or was told to
        self._line: deque[_Call[Any]] = deque()
        self._readers: deque[sqlite3.Connection] = deque()
        self._kept = Kept()
        self.commits = 0

    def write(self, work: Callable[[Writer], T], *, metadata: Mapping[str, Json] | None = None) -> T:
        self._refuse_closed()
        call: _Call[T] = _Call(work, metadata or NOTHING)
        call.turn.acquire()
        with self._guard:
            self._line.append(call)
            call.leads = not self._led
            self._led = True
        try:
            if not call.leads:
                call.turn.acquire()
            if not call.done:
                self._lead(call)
        except BaseException:
            self._leave(call)
            raise
        assert call.done
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[return-value]

    def read(self, look: Callable[[Reader], T]) -> T:
        self._refuse_closed()
        try:
            with self._reading() as connection:
                connection.execute("BEGIN")
                found = look(SqliteReader(connection))
                connection.execute("COMMIT")
                return found
        except sqlite3.Error as trouble:
            raise self._trouble("cannot be read", trouble) from trouble

    def settings(self) -> dict[str, Json]:
        """What the connection that commits says of itself."""
        with self._writing:
            synchronous = self._connection.execute("PRAGMA synchronous").fetchone()[0]
            mode = self._connection.execute("PRAGMA journal_mode").fetchone()[0]
        return {"synchronous": synchronous, "journal_mode": mode}

    def check_durable(self) -> None:
        """Raise `NotDurable` when a power cut could take what was acknowledged."""
        settings = self.settings()
        if self.durability is Durability.FULL and settings != {"synchronous": 2, "journal_mode": "wal"}:
            raise NotDurable("The store does not give full durability", **settings)

    def backup(self, target: str | Path, progress: Callable[[int, int], None] | None = None) -> None:
        """A copy while others go on writing."""
        with self._reading() as connection, closing(sqlite3.connect(target)) as copy:
            # Of one moment: outside of a transaction the copy would begin again with every write of another process.
            connection.execute("BEGIN")
            try:
                connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
                connection.backup(
                    copy, pages=256, progress=lambda _, left, all: progress(all - left, all) if progress else None
                )
            finally:
                connection.execute("COMMIT")

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file; nothing when it is sound."""
        with self._reading() as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        with self._writing:
            if self._closed:
                return
            self._closed = True
            self._connection.close()
            while self._readers:
                self._readers.popleft().close()
            self._turnstile.close()

    # Inside

    def _lead(self, own: _Call[Any]) -> None:
        """Do the work of all who stand in line, ours among them; whoever came meanwhile leads next."""
        calls: list[_Call[Any]] = []
        try:
            with self._guard:
                calls += [self._line.popleft() for _ in range(min(len(self._line), TOGETHER_MOST))]
            with self._writing:
                self._serve(calls)
        finally:
            # The next leader first: it works while the others only return.
            with self._guard:
                self._hand_over()
            for call in calls:
                if call is not own:
                    call.turn.release()

    def _hand_over(self) -> None:
        """Whoever stands first leads from now on; if nobody does, whoever comes next."""
        self._led = bool(self._line)
        if self._line:
            self._line[0].leads = True
            self._line[0].turn.release()

    def _leave(self, call: _Call[Any]) -> None:
        """Somebody is broken off while waiting; if it was to lead, the next one does."""
        with self._guard:
            if call in self._line:
                self._line.remove(call)
                if call.leads:
                    self._hand_over()

    def _serve(self, calls: list[_Call[Any]]) -> None:
        """One transaction for these calls; a trouble of the file is the trouble of all."""
        committed = False
        try:
            self._transaction(calls)
            committed = True
        except (WorldBroken, sqlite3.Error) as trouble:
            broken = self._trouble("cannot be written", trouble) if isinstance(trouble, sqlite3.Error) else trouble
            if broken is not trouble:
                broken.__cause__ = trouble
            for call in calls:
                call.error = broken
        finally:
            for call in calls:
                if not committed and call.error is None:
                    # Whoever leads was broken off. Nobody may wait for it, and nobody may take it for done.
                    call.error = StoreUnusable(
                        "The transaction was broken off; look before you try again", path=str(self.path)
                    )
                call.done = True

    def _transaction(self, calls: list[_Call[Any]]) -> None:
        if not self._turnstile.acquire(self._busy):
            raise StorageBusy(
                f"Another writer holds {self.path.name} for more than {self._busy:.0f} s; nothing was changed"
            )
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                writer = SqliteWriter(self._connection, self._kept)
                for call in calls:
                    self._one(call, writer, alone=len(calls) == 1)
                writer.finish()
                self._connection.execute("COMMIT" if writer.wrote else "ROLLBACK")
                self.commits += writer.wrote
                writer.keep()
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
        finally:
            self._turnstile.release()

    def _one(self, call: _Call[Any], writer: SqliteWriter, *, alone: bool) -> None:
        mark = writer.mark(call.metadata)
        if not alone:
            self._connection.execute("SAVEPOINT part")
        try:
            call.result = call.work(writer)
        except sqlite3.Error:
            raise
        except Exception as error:
            call.error = error
            if alone:
                self._connection.execute("ROLLBACK")
                self._connection.execute("BEGIN IMMEDIATE")
            else:
                self._connection.execute("ROLLBACK TO part")
            writer.undo(mark)
        if not alone:
            self._connection.execute("RELEASE part")

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnusable(f"The store {self.path.name} is closed", path=str(self.path))

    def _trouble(self, what: str, trouble: sqlite3.Error) -> WorldBroken:
        # Python's own refusals, such as a call from the wrong thread, have no number.
        if getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF == sqlite3.SQLITE_BUSY:
            return StorageBusy(f"A foreign program holds {self.path.name}; nothing was changed")
        return StoreUnusable(f"{self.path} {what}: {trouble}", path=str(self.path))

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._busy, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self.durability is Durability.FULL else 'NORMAL'}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -16384")
        return connection

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._readers.popleft()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()  # what it was in the middle of goes with it
            raise
        if self._closed:
            connection.close()
        else:
            self._readers.append(connection)

    def _migrate(self) -> None:
        """Forward, step by step, each in a transaction of its own."""
        steps = migrations()
        if not self._turnstile.acquire(self._busy):
            raise StorageBusy(f"Another writer holds {self.path.name}")
        try:
            while self._one_step(steps):
                pass
        finally:
            self._turnstile.release()

    def _one_step(self, steps: list[str]) -> bool:
        """Whether one more step was needed, and taken."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version > len(steps):
                raise NewerStore(
                    f"{self.path.name} has version {version}; this Pendula knows {len(steps)}. Use a newer one",
                    found=version,
                    known=len(steps),
                )
            if version < len(steps):
                for statement in statements(steps[version]):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {version + 1}")
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        return version < len(steps)


def migrations() -> list[str]:
    """The numbered steps, in order."""
    folder = files("pendula.jobs.store") / MIGRATIONS
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would end the transaction."""
    statement = ""
    for line in script.splitlines():
        if not statement and (not line.strip() or line.lstrip().startswith("--")):
            continue
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
