"""Jobs in one SQLite file: write-ahead log, one writer at a time over all processes, one flush for many callers.

Callers of `write` queue, and the one writer thread does the work of all queued calls in one transaction; they return
when it is durable. Each caller's part is a savepoint: a failing part is undone, the rest continues. A part that runs
user code has a separate transaction. A lost transaction never counts as committed, nor does one in a file that was
removed or replaced: the store is unusable then, and opened again when there is a store at its path.
"""

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pendula.jobs.model import ClockAhead, Durability, StorageBusy
from pendula.jobs.store.file.checkpoints import Checkpoints
from pendula.jobs.store.file.copies import copy_database, is_copy, mark_copy
from pendula.jobs.store.file.damage import any_text, damages, schema_faults
from pendula.jobs.store.file.identity import FileIdentity, refuse_network
from pendula.jobs.store.file.opening import (
    BUSY_SECONDS,
    PATIENCE_SECONDS,
    NewerStore,
    WriteProof,
    bring_up_to_date,
    connect,
    connect_to_look,
    has_version,
    is_busy,
    is_read_only,
    is_read_only_trouble,
    is_up_to_date,
    log,
    make_file,
    migrations,
    schema_versions,
    statements,
)
from pendula.jobs.store.file.store_time import MachineTime, StoreTime
from pendula.jobs.store.file.turnstile import Turnstile
from pendula.jobs.store.protocol import EffectWriter, FilesClosed, Reader, StoreReadOnly, StoreUnusable, Writer
from pendula.jobs.store.tables.reader import SqliteReader
from pendula.jobs.store.tables.writer import SqliteWriter, TransactionCache
from pendula.jobs.store.writer_thread import NOTHING, Call, Turn, WriterThread, refuse_inside
from pendula.kernel.cancellation import check, is_cancelled
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WorldBroken

__all__ = ["NewerStore", "NotDurable", "SqliteStore", "StoreUnusable", "migrations", "statements"]

T = TypeVar("T")

EFFECT_SECONDS = 10.0  # how long an effect may block other writers
TURNSTILE_SECONDS = 1.0  # how long to wait for a turn; then the lock of the file decides
STEPS_PER_CHECK = 100_000  # of SQLite's virtual machine between two checks for cancellation: some ms
STUCK_SECONDS = 5.0  # how long a stuck turnstile is not waited for


class NotDurable(WorldBroken):
    """The connection does not provide the configured durability. Facts: `synchronous`, `journal_mode`."""

    code = "not_durable"


class SqliteStore:
    """One file; safe for threads and any number of processes, but not usable in a fork of the opening process.

    A file that cannot be written is opened read-only; `write` raises `StoreReadOnly` until it can be written.
    `patience_seconds` is how long a migration waits for another writer, which it reports to `on_wait`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Durability = Durability.FULL,
        busy_seconds: float = BUSY_SECONDS,
        effect_seconds: float = EFFECT_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
        on_wait: Callable[[str], None] = log.warning,
    ) -> None:
        self.path = Path(path)
        self.durability = durability
        self.commits = 0
        self._busy = busy_seconds
        self._effect_seconds = effect_seconds
        self._patience = patience_seconds
        self._on_wait = on_wait
        self._closed = False
        self._process = os.getpid()
        # The resolved path: all links to the file share one turnstile, and effects are recognised.
        self._place = Path(os.path.realpath(self.path))
        self._named = self.path.absolute()  # links are resolved again whenever the file is reopened
        self._proof = WriteProof(durability)
        self._time = StoreTime()
        self._cache = TransactionCache()
        self._using = threading.Lock()  # held while the writing connection is used
        self._readers: deque[sqlite3.Connection] = deque()
        self._turn: Turn | None = None
        self._stuck_until = 0.0
        self._turnstile: Turnstile | None = None
        self._read_only = False
        self._identity: FileIdentity | None = None  # None where the file is read-only or lost
        self._former: FileIdentity | None = None  # of the file that was lost
        self._lost = False
        self._is_copy = False  # a copy before its first write
        self._checkpoints = Checkpoints(self._place, self._connected)
        self._checkpoint_pages = 0
        refuse_network(self._place.parent)
        if not self._place.exists():
            make_file(self._place)
        self._connection = self._opened()
        self._writer_thread = WriterThread(self._serve, self._is_closed)

    def write(self, work: Callable[[Writer], T], *, metadata: Mapping[str, Json] | None = None) -> T:
        self.check_may_write()
        return self._writer_thread.submit(Call(work, metadata or NOTHING))

    def write_effect(self, work: Callable[[EffectWriter], T]) -> T:
        self.check_may_write()
        return self._writer_thread.submit(Call(None, effect=work))

    def check_may_write(self) -> None:
        self._refuse_closed()
        refuse_inside(self._place, self._turn)
        assert not self._writer_thread.is_current, "a part of a transaction writes through its writer"

    def now(self, clock: Callable[[], int]) -> int:
        try:
            return self._time.now(clock)
        except ClockAhead:
            if self._writer_thread.is_current:
                raise
        # Another process may have corrected the time.
        self.read(lambda look: look.catch_up())
        return self._time.now(clock)

    def hold_clock(self, machine: MachineTime) -> None:
        """Refuse a clock that is ahead of the boot clock."""
        self._time.machine = machine

    def ahead_of(self, clock: Callable[[], int]) -> int:
        """By how many microseconds the store's time is ahead of the clock; 0 when it is not."""
        return self._time.ahead_of(clock)

    def joined(self, connection: sqlite3.Connection) -> SqliteWriter:
        """A writer within a transaction that the caller has begun on this file."""
        writer = SqliteWriter(connection, self._time)
        if is_copy(connection):
            writer.begin_epoch(self._epoch())
        return writer

    def read(self, look: Callable[[Reader], T], *, damaged: bool = False) -> T:
        self._refuse_closed()
        try:
            with self._reading() as connection:
                connection.text_factory = any_text if damaged else str
                connection.execute("BEGIN")
                result = look(SqliteReader(connection, self._time))
                connection.execute("COMMIT")
                return result
        except sqlite3.Error as trouble:
            check()
            raise self._trouble("cannot be read", trouble) from trouble

    def check_writable(self) -> None:
        """Raise what a writing call would raise now; a successful check counts for some seconds."""
        self._refuse_closed()
        if not self.is_file_there() and not self._reopen():
            raise self._lost_file()
        self._proof.check(self._place)

    def is_file_there(self) -> bool:
        """Whether the file is still the one that was opened."""
        identity = self._identity
        return not self._lost and (identity is None or identity.is_same())

    def settings(self) -> dict[str, Json]:
        """Settings of the writing connection; not within an effect, which uses it."""
        refuse_inside(self._place, self._turn)
        with self._using:
            if self._lost:
                raise self._lost_file()
            synchronous = self._connection.execute("PRAGMA synchronous").fetchone()[0]
            mode = self._connection.execute("PRAGMA journal_mode").fetchone()[0]
        return {"synchronous": synchronous, "journal_mode": mode}

    def check_durable(self) -> None:
        """Raise `NotDurable` when a power cut could lose acknowledged writes."""
        settings = self.settings()
        if self.durability is Durability.FULL and settings != {"synchronous": 2, "journal_mode": "wal"}:
            raise NotDurable("The store does not provide full durability", **settings)

    def backup(self, target: str | Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Write a marked copy of one moment, during writes of other connections."""
        with self._reading() as connection, closing(self._new_copy(target)) as copy:
            copy_database(connection, copy, progress)
            mark_copy(copy)

    def _new_copy(self, target: str | Path) -> sqlite3.Connection:
        try:
            return sqlite3.connect(target)
        except sqlite3.Error as trouble:
            raise StoreUnusable(f"A copy cannot be written to {target}: {trouble}", path=str(target)) from trouble

    def integrity(self) -> list[str]:
        """Faults of the file, unreadable rows and missing parts of the schema; empty when sound."""
        with self._reading() as connection:
            return [*damages(connection), *schema_faults(connection)]

    def close(self) -> None:
        """Serve all queued calls, and close."""
        refuse_inside(self._place, self._turn)
        self._writer_thread.close()
        with self._using:
            if self._closed:
                return
            self._closed = True
            if not self.is_file_there():
                self._close_lost(for_good=True)
                return
            self._close_connections()

    # One transaction, in the writer thread

    def _serve(self, calls: list[Call[Any]]) -> None:
        """One transaction for these calls; an error of the file fails all of them."""
        try:
            with self._using:
                try:
                    self._transaction(calls)
                except BaseException:
                    if not self.is_file_there():
                        self._close_lost()
                    raise
        except (WorldBroken, sqlite3.Error) as trouble:
            broken = self._trouble("cannot be written", trouble) if isinstance(trouble, sqlite3.Error) else trouble
            if broken is not trouble:
                broken.__cause__ = trouble
            for call in calls:
                call.error = broken

    def _transaction(self, calls: list[Call[Any]]) -> None:
        if self._lost:
            self._open_again()
        self._make_writable()
        assert self._turnstile is not None
        if (closed := self._files_closed()) is not None:
            raise closed
        since = time.monotonic()
        try:
            self._pass(self._turnstile)
            self._begin(since)
            self._look_at_file()
            if self._is_copy:
                self._begin_epoch()
            writer = SqliteWriter(self._connection, self._time, self._cache)
            self._parts(calls, writer)
            self._end(writer)
        finally:
            # Both do nothing where there is nothing to leave.
            try:
                self._leave_no_transaction()
            finally:
                self._turnstile.release()

    def _parts(self, calls: list[Call[Any]], writer: SqliteWriter) -> None:
        if calls[0].is_effect:
            [call] = calls
            self._effect_part(call, writer)
            return
        for call in calls:
            self._part(call, writer, alone=len(calls) == 1)

    def _part(self, call: Call[Any], writer: SqliteWriter, *, alone: bool) -> None:
        mark = writer.mark(call.metadata)
        if not alone:
            self._connection.execute("SAVEPOINT part")
        assert call.work is not None
        try:
            call.result = call.work(writer)
        except sqlite3.Error:
            raise
        except BaseException as error:
            call.error = error
            if not alone:  # alone, the whole transaction is rolled back
                self._connection.execute("ROLLBACK TO part")
            writer.undo(mark)
        if not alone:
            self._connection.execute("RELEASE part")

    def _effect_part(self, call: Call[Any], writer: SqliteWriter) -> None:
        """Let the caller run its effect, within the time limit."""
        mark = writer.mark(call.metadata)
        turn = self._turn = Turn(writer, self._connection, self._place, self._effect_seconds)
        call.give(turn)
        answered = call.answered.acquire(timeout=self._effect_seconds)
        turn.end(too_long=not answered)
        self._turn = None
        call.error = turn.failure()
        if call.error is not None or not call.good:
            writer.undo(mark)

    def _end(self, writer: SqliteWriter) -> None:
        if not self._connection.in_transaction:
            if writer.wrote:
                raise StoreUnusable("The transaction ended too early; nothing was changed", path=str(self.path))
            return
        writer.finish()
        self._connection.execute("COMMIT" if writer.wrote else "ROLLBACK")
        self.commits += writer.wrote
        # Committed into a file that was removed meanwhile: must not be acknowledged.
        if writer.wrote and not self.is_file_there():
            raise StoreUnusable(
                f"{self.path} was removed or replaced during the write; check what was stored before you try again",
                path=str(self.path),
            )
        writer.keep()

    def _begin(self, since: float) -> None:
        """Begin a write transaction, within the time left after the turnstile."""
        left = self._busy - (time.monotonic() - since)
        if left > self._busy - TURNSTILE_SECONDS / 2:
            self._connection.execute("BEGIN IMMEDIATE")
            return
        self._connection.execute(f"PRAGMA busy_timeout = {max(1, round(left * 1000))}")
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {round(self._busy * 1000)}")

    def _begin_epoch(self) -> None:
        """The first write into a copy: in its own transaction, so that no caller's failure undoes it."""
        if is_copy(self._connection):
            writer = SqliteWriter(self._connection, self._time)
            writer.begin_epoch(self._epoch())
            writer.finish()
            self._connection.execute("COMMIT")
            self._connection.execute("BEGIN IMMEDIATE")
        self._is_copy = False
        self._cache = TransactionCache()

    def _epoch(self) -> int:
        """The start of numbers in a restored store: microseconds since 1970, above all earlier jobs and fences."""
        return max(time.time_ns() // 1000, self._time.latest)

    def _pass(self, turnstile: Turnstile) -> None:
        """Wait in the turnstile; where that takes too long, the lock of the file decides.

        A frozen process in it must not block the others. After a timeout it is not waited for, for a while.
        """
        stuck = time.monotonic() < self._stuck_until
        through = turnstile.acquire(0 if stuck else min(TURNSTILE_SECONDS, self._busy))
        if through:
            self._stuck_until = 0.0
        elif not stuck:
            self._stuck_until = time.monotonic() + STUCK_SECONDS

    def _leave_no_transaction(self) -> None:
        """Roll back an open transaction; if that fails, open another connection."""
        if not self._connection.in_transaction:
            return
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")
        if self._connection.in_transaction:
            # Opened before the other is closed: the last connection to close removes the log.
            stuck, self._connection = self._connection, connect(self._place, self.durability, self._busy)
            self._checkpoint_pages = 0
            stuck.close()

    # Opening

    def _opened(self) -> sqlite3.Connection:
        """A connection to a migrated store; read-only where it cannot be written."""
        if is_read_only(self._place):
            return self._opened_to_look()
        try:
            connection = connect(self._place, self.durability, self._busy)
        except sqlite3.Error as trouble:
            raise self._trouble("is not a usable store of jobs", trouble) from trouble
        try:
            self._turnstile = Turnstile(self._place)
            if not is_up_to_date(connection, self.path):
                bring_up_to_date(connection, self.path, self._turnstile, patience=self._patience, on_wait=self._on_wait)
            self._is_copy = is_copy(connection)
        except BaseException as trouble:
            connection.close()
            if self._turnstile is not None:
                self._turnstile.close()
                self._turnstile = None
            if isinstance(trouble, OSError):
                raise StoreUnusable(
                    f"{self.path} cannot be opened: {trouble.strerror}", path=str(self.path)
                ) from trouble
            if isinstance(trouble, sqlite3.Error):
                raise self._trouble("is not a usable store of jobs", trouble) from trouble
            raise
        try:
            self._identity = FileIdentity(self._named, self._place)
        except StoreUnusable:
            connection.close()
            self._turnstile.close()
            raise
        self._checkpoints = Checkpoints(self._place, self._connected)
        self._checkpoint_pages = 0
        self._learn_time(connection)
        return connection

    def _learn_time(self, connection: sqlite3.Connection) -> None:
        # A damaged trail does not prevent reading; writers read it again.
        with suppress(sqlite3.DatabaseError):
            SqliteReader(connection, self._time).head()

    def _opened_to_look(self) -> sqlite3.Connection:
        try:
            connection = connect_to_look(self.path, self._busy)
            if not is_up_to_date(connection, self.path):
                version, newest = schema_versions(connection, self.path)
                raise StoreReadOnly(
                    f"{self.path} has schema version {version} and must be migrated to "
                    f"{newest}, but cannot be written; make it writable",
                    path=str(self.path),
                )
            self._learn_time(connection)
        except sqlite3.Error as trouble:
            raise self._trouble("is not a usable store of jobs", trouble) from trouble
        self._read_only = True
        return connection

    def _make_writable(self) -> None:
        """Reopen a read-only store once it can be written."""
        if not self._read_only:
            return
        if is_read_only(self._place):
            raise StoreReadOnly(f"{self.path} cannot be written; nothing was changed", path=str(self.path))
        looking, self._connection = self._connection, self._opened()
        self._read_only = False
        looking.close()

    # The file was removed or replaced

    def _look_at_file(self) -> None:
        """Raise `StoreUnusable` where the file is not the one that was opened; start checkpoints of large logs."""
        assert self._identity is not None
        if not self._identity.is_same():
            raise self._lost_file()
        pages = self._checkpoints.pages_of_writer(self._identity.log_bytes)
        if pages != self._checkpoint_pages:
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            self._checkpoint_pages = pages

    def _lost_file(self) -> StoreUnusable:
        return StoreUnusable(
            f"{self.path} was removed or replaced since it was opened; nothing was changed. It is opened again when "
            "there is a store",
            path=str(self.path),
        )

    def _close_lost(self, *, for_good: bool = False) -> None:
        """Close all connections to a lost file, without a checkpoint that could damage its replacement.

        They stay open while only they hold acknowledged changes that cannot be saved yet, unless `for_good`.
        """
        if self._lost:
            return
        identity = self._identity
        # The last acknowledged changes are in the removed log only; only open connections can save them.
        if identity is not None and identity.is_log_missing() and not self._saves_log() and not for_good:
            log.error("the write-ahead log of %s was removed and cannot be saved yet: a reader blocks it", self.path)
            return
        self._lost = True
        log.error("%s was removed or replaced; the store is unusable until there is one again", self.path)
        if identity is not None:
            identity.remember_log()
            self._former, self._identity = identity, None
        with ExitStack() as stack:
            if identity is not None and identity.is_same_database():
                # SQLite does not touch the log of another database. For the same database a read-only connection is
                # closed last: otherwise the last connection would checkpoint its view of the log and remove it,
                # although another process may have written to it.
                with suppress(sqlite3.Error, WorldBroken):
                    stack.enter_context(closing(connect_to_look(self._place, self._busy)))
            self._close_connections()

    def _saves_log(self) -> bool:
        """Checkpoint the log; returns whether all of it is in the database now. A reader may block it."""
        try:
            busy, pages, copied = self._connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        except sqlite3.Error:
            return False
        return not busy and pages == copied

    def _close_connections(self) -> None:
        self._checkpoints.close()
        self._connection.close()
        while self._readers:
            self._readers.popleft().close()
        if self._turnstile is not None:
            self._turnstile.close()
            self._turnstile = None

    def _reopen(self) -> bool:
        """Reopen a lost file if there is a store again; returns whether it is open."""
        # Without waiting: an effect in this thread may hold it.
        if not self._using.acquire(blocking=False):
            return False
        try:
            if not self.is_file_there():
                self._close_lost()
                if not self._lost:
                    return False
                self._open_again()
            return True
        finally:
            self._using.release()

    def _open_again(self) -> None:
        """Open the file at the path; raises where it is not a store."""
        self._place = Path(os.path.realpath(self._named))
        if not self._place.is_file():
            raise self._lost_file()
        if self._former is not None and self._former.left_log():
            raise StoreUnusable(
                f"{self.path} was replaced, and the write-ahead log beside it belongs to the previous file and would "
                f"damage it: stop all programs that use it and remove {self._place}-wal and {self._place}-shm",
                path=str(self.path),
            )
        try:
            # An empty file, or the database of another program, is not made a store.
            with closing(connect_to_look(self._place, self._busy)) as looking:
                is_store = has_version(looking)
        except sqlite3.Error as trouble:
            raise self._trouble("is not a usable store of jobs", trouble) from trouble
        if not is_store:
            raise StoreUnusable(f"{self.path} is not a store of jobs", path=str(self.path))
        self._cache = TransactionCache()
        self._connection = self._opened()
        self._lost = False
        log.warning("%s was opened again", self.path)

    # Inside

    def _refuse_closed(self) -> None:
        if self._closed:
            raise self._is_closed()
        if self._process != os.getpid():
            # The writer thread does not exist here, and a connection used by two processes damages the file.
            message = f"The store {self.path.name} was opened before this process was forked; open it again here"
            raise StoreUnusable(message, path=str(self.path))

    def _is_closed(self) -> StoreUnusable:
        return StoreUnusable(f"The store {self.path.name} is closed", path=str(self.path))

    def _files_closed(self) -> FilesClosed | None:
        if self._turnstile is None or self._turnstile.has_its_files():
            return None
        message = f"The files of {self.path} were closed in this process, as by os.closerange; restart the process"
        return FilesClosed(message, path=str(self.path))

    def _trouble(self, what: str, trouble: sqlite3.Error) -> WorldBroken:
        if (closed := self._files_closed()) is not None:
            return closed
        if is_busy(trouble):
            return StorageBusy(
                f"{self.path.name} is locked by another writer for more than {self._busy:g} s; nothing was changed"
            )
        if is_read_only_trouble(trouble):
            return StoreReadOnly(f"{self.path} cannot be written; nothing was changed", path=str(self.path))
        return StoreUnusable(f"{self.path} {what}: {trouble}", path=str(self.path))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if not self.is_file_there() and not self._reopen():
            raise self._lost_file()
        identity = self._identity
        try:
            connection = self._readers.popleft()
        except IndexError:
            connection = self._connected()
            # SQLite aborts a running query once the read is cancelled.
            connection.set_progress_handler(is_cancelled, STEPS_PER_CHECK)
        try:
            yield connection
        except BaseException:
            connection.close()  # aborts its query
            raise
        # A read-only connection may treat the file as immutable, so it is not reused.
        if self._closed or self._read_only or identity is not self._identity:
            connection.close()
        else:
            self._readers.append(connection)

    def _connected(self) -> sqlite3.Connection:
        if self._read_only and is_read_only(self._place):
            return connect_to_look(self.path, self._busy)
        return connect(self._place, self.durability, self._busy)
