"""Jobs in one SQLite file: write-ahead log, one writer at a time over all processes, one flush for many callers.

Callers of `write` stand in line, and the one writer thread does the work of all who stand there in one transaction; all
return when it is durable. Each caller's part is a savepoint of its own: what fails is undone, the rest goes on. A part
that runs foreign code has a transaction of its own. A transaction that is gone is never taken for a committed one, nor
is one in a file that no longer lies at its path: the store is unusable then, and opened again when a store lies there.
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
from pendula.jobs.store.file.damage import any_text, damages
from pendula.jobs.store.file.identity import FileIdentity
from pendula.jobs.store.file.mounts import refuse_network
from pendula.jobs.store.file.opening import (
    BUSY_SECONDS,
    PATIENCE_SECONDS,
    NewerStore,
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
from pendula.jobs.store.file.proof import WriteProof
from pendula.jobs.store.file.schema import schema_faults
from pendula.jobs.store.file.store_time import MachineTime, StoreTime
from pendula.jobs.store.file.turnstile import Turnstile
from pendula.jobs.store.protocol import EffectWriter, FilesClosed, Reader, StoreReadOnly, StoreUnusable, Writer
from pendula.jobs.store.tables.reader import SqliteReader
from pendula.jobs.store.tables.writer import Kept, SqliteWriter
from pendula.jobs.store.turn import Turn, refuse_inside
from pendula.jobs.store.writer_thread import NOTHING, Call, WriterThread
from pendula.kernel.cancellation import check, is_cancelled
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WorldBroken

__all__ = ["NewerStore", "NotDurable", "SqliteStore", "StoreUnusable", "migrations", "statements"]

T = TypeVar("T")

EFFECT_SECONDS = 10.0  # how long an effect may keep everybody else from writing
TURNSTILE_SECONDS = 1.0  # how long fairness may cost progress; then the lock of the file decides
STEPS_BETWEEN_LOOKS = 100_000  # of SQLite's machine, between two looks whether a read was cancelled: some ms
STUCK_SECONDS = 5.0  # how long a turnstile that did not move is passed by


class NotDurable(WorldBroken):
    """The connection does not give the durability that was asked for. Facts: `synchronous`, `journal_mode`."""

    code = "not_durable"


class SqliteStore:
    """One file; safe for threads and any number of processes. In a fork of the one that opened it, it is refused.

    Where the file cannot be written it is opened to be looked at; `write` raises `StoreReadOnly` until it can be.
    `patience_seconds` is how long a migration waits for another writer, which it tells `on_wait`.
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
        # The file itself, whatever links lead to it: all pass one turnstile, and know each other's effects.
        self._place = Path(os.path.realpath(self.path))
        self._named = self.path.absolute()  # links are followed again whenever the file is looked for
        self._proof = WriteProof(durability)
        self._time = StoreTime()
        self._kept = Kept()
        self._using = threading.Lock()  # held while the connection that writes is used
        self._readers: deque[sqlite3.Connection] = deque()
        self._turn: Turn | None = None
        self._stuck_until = 0.0
        self._turnstile: Turnstile | None = None
        self._read_only = False
        self._identity: FileIdentity | None = None  # None where the file cannot be written, or was lost
        self._former: FileIdentity | None = None  # of the file that was lost
        self._lost = False
        self._is_copy = False  # to which nothing was written yet
        self._checkpoints = Checkpoints(self._place, self._connected)
        self._checkpoint_pages = 0
        refuse_network(self._place.parent)
        if not self._place.exists():
            make_file(self._place)
        self._connection = self._opened()
        self._line = WriterThread(self._serve, self._is_closed)

    def write(self, work: Callable[[Writer], T], *, metadata: Mapping[str, Json] | None = None) -> T:
        self.check_may_write()
        return self._line.ask(Call(work, metadata or NOTHING))

    def write_effect(self, work: Callable[[EffectWriter], T]) -> T:
        self.check_may_write()
        return self._line.ask(Call(None, effect=work))

    def check_may_write(self) -> None:
        self._refuse_closed()
        refuse_inside(self._place, self._turn)
        assert not self._line.is_current, "a part of a transaction writes through its writer"

    def now(self, clock: Callable[[], int]) -> int:
        try:
            return self._time.now(clock)
        except ClockAhead:
            if self._line.is_current:
                raise
        # Another process may have set the time since this one looked.
        self.read(lambda look: look.catch_up())
        return self._time.now(clock)

    def hold_clock(self, machine: MachineTime) -> None:
        """From here on a clock that is ahead of the boot's is refused."""
        self._time.machine = machine

    def ahead_of(self, clock: Callable[[], int]) -> int:
        """By how many microseconds the store's time is ahead of the clock; 0 when it is not."""
        return self._time.ahead_of(clock)

    def joined(self, connection: sqlite3.Connection) -> SqliteWriter:
        """A writer within the transaction that somebody else has begun on this file."""
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
                found = look(SqliteReader(connection, self._time))
                connection.execute("COMMIT")
                return found
        except sqlite3.Error as trouble:
            check()
            raise self._trouble("cannot be read", trouble) from trouble

    def check_writable(self) -> None:
        """Raise what a call that writes would meet now; the proof costs a page, and is believed for some seconds."""
        self._refuse_closed()
        if not self.is_file_there() and not self._found_again():
            raise self._lost_file()
        self._proof.check(self._place)

    def is_file_there(self) -> bool:
        """Whether the file is still the one that was opened."""
        identity = self._identity
        return not self._lost and (identity is None or identity.is_same())

    def settings(self) -> dict[str, Json]:
        """What the connection that commits says of itself; not within an effect, which has it meanwhile."""
        refuse_inside(self._place, self._turn)
        with self._using:
            if self._lost:
                raise self._lost_file()
            synchronous = self._connection.execute("PRAGMA synchronous").fetchone()[0]
            mode = self._connection.execute("PRAGMA journal_mode").fetchone()[0]
        return {"synchronous": synchronous, "journal_mode": mode}

    def check_durable(self) -> None:
        """Raise `NotDurable` when a power cut could take what was acknowledged."""
        settings = self.settings()
        if self.durability is Durability.FULL and settings != {"synchronous": 2, "journal_mode": "wal"}:
            raise NotDurable("The store does not give full durability", **settings)

    def backup(self, target: str | Path, progress: Callable[[int, int], None] | None = None) -> None:
        """A copy while others go on writing, of one moment; it knows that it is a copy."""
        with self._reading() as connection, closing(self._new_copy(target)) as copy:
            copy_database(connection, copy, progress)
            mark_copy(copy)

    def _new_copy(self, target: str | Path) -> sqlite3.Connection:
        try:
            return sqlite3.connect(target)
        except sqlite3.Error as trouble:
            raise StoreUnusable(f"A copy cannot be written to {target}: {trouble}", path=str(target)) from trouble

    def integrity(self) -> list[str]:
        """What is wrong with the file, which rows cannot be read, what of the store is missing; nothing when sound."""
        with self._reading() as connection:
            return [*damages(connection), *schema_faults(connection)]

    def close(self) -> None:
        """Serve all who stand in line, and close."""
        refuse_inside(self._place, self._turn)
        self._line.close()
        with self._using:
            if self._closed:
                return
            self._closed = True
            if not self.is_file_there():
                self._let_go(for_good=True)
                return
            self._close_connections()

    # One transaction, in the writer thread

    def _serve(self, calls: list[Call[Any]]) -> None:
        """One transaction for these calls; a trouble of the file is the trouble of all."""
        try:
            with self._using:
                try:
                    self._transaction(calls)
                except BaseException:
                    if not self.is_file_there():
                        self._let_go()
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
            writer = SqliteWriter(self._connection, self._time, self._kept)
            self._parts(calls, writer)
            self._end(writer)
        finally:
            # Whatever was reached: both do nothing where there is nothing to leave.
            try:
                self._leave_no_transaction()
            finally:
                self._turnstile.release()

    def _parts(self, calls: list[Call[Any]], writer: SqliteWriter) -> None:
        if calls[0].own:
            [call] = calls
            self._own_part(call, writer)
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
            if not alone:  # whoever is alone has written nothing, so all of the transaction is undone
                self._connection.execute("ROLLBACK TO part")
            writer.undo(mark)
        if not alone:
            self._connection.execute("RELEASE part")

    def _own_part(self, call: Call[Any], writer: SqliteWriter) -> None:
        """The caller's turn, for so long and no longer."""
        mark = writer.mark(call.metadata)
        turn = self._turn = Turn(writer, self._connection, self._place, self._effect_seconds)
        call.give(turn)
        answered = call.answered.acquire(timeout=self._effect_seconds)
        turn.end(too_long=not answered)
        self._turn = None
        call.error = turn.trouble()
        if call.error is not None or not call.good:
            writer.undo(mark)

    def _end(self, writer: SqliteWriter) -> None:
        if not self._connection.in_transaction:
            if writer.wrote:
                raise StoreUnusable("The transaction ended before its time; nothing was changed", path=str(self.path))
            return
        writer.finish()
        self._connection.execute("COMMIT" if writer.wrote else "ROLLBACK")
        self.commits += writer.wrote
        # Committed into a file that was removed meanwhile: nothing of it may be acknowledged.
        if writer.wrote and not self.is_file_there():
            raise StoreUnusable(
                f"{self.path} was removed or replaced while the change was written; look before you try again",
                path=str(self.path),
            )
        writer.keep()

    def _begin(self, since: float) -> None:
        """Begin to write, with what is left of the time after the turnstile."""
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
        """The first write into a copy: in a transaction of its own, so that no caller's failure undoes it."""
        if is_copy(self._connection):
            writer = SqliteWriter(self._connection, self._time)
            writer.begin_epoch(self._epoch())
            writer.finish()
            self._connection.execute("COMMIT")
            self._connection.execute("BEGIN IMMEDIATE")
        self._is_copy = False
        self._kept = Kept()

    def _epoch(self) -> int:
        """From where a restored store counts: the microseconds since 1970, which no job or fence of before reaches."""
        return max(time.time_ns() // 1000, self._time.latest)

    def _pass(self, turnstile: Turnstile) -> None:
        """Come through the turnstile; where that takes too long, the lock of the file decides.

        Somebody who is frozen there must not keep the others from going on. Once it did not move it is tried in passing
        only, for a while.
        """
        stuck = time.monotonic() < self._stuck_until
        through = turnstile.acquire(0 if stuck else min(TURNSTILE_SECONDS, self._busy))
        if through:
            self._stuck_until = 0.0
        elif not stuck:
            self._stuck_until = time.monotonic() + STUCK_SECONDS

    def _leave_no_transaction(self) -> None:
        """Whatever went wrong, the next one begins anew; if need be with another connection."""
        if not self._connection.in_transaction:
            return
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")
        if self._connection.in_transaction:
            # Opened before the other is closed: the last one to be closed removes the log.
            stuck, self._connection = self._connection, connect(self._place, self.durability, self._busy)
            self._checkpoint_pages = 0
            stuck.close()

    # Opening

    def _opened(self) -> sqlite3.Connection:
        """A connection to a store that is up to date; to look only, where it cannot be written."""
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
        # A damaged trail keeps nobody from looking at what is left; whoever writes reads it again.
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
        """What was opened to be looked at is opened again when it can be written."""
        if not self._read_only:
            return
        if is_read_only(self._place):
            raise StoreReadOnly(f"{self.path} cannot be written; nothing was changed", path=str(self.path))
        looking, self._connection = self._connection, self._opened()
        self._read_only = False
        looking.close()

    # The file is gone, or another

    def _look_at_file(self) -> None:
        """Raise `StoreUnusable` where the file is not the one that was opened; let large logs be copied back beside."""
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
            "a store lies there",
            path=str(self.path),
        )

    def _let_go(self, *, for_good: bool = False) -> None:
        """Close all connections to a file that was lost, without a checkpoint that could harm what lies there now.

        They stay open where they alone hold acknowledged changes and cannot save them yet, unless it is `for_good`.
        """
        if self._lost:
            return
        identity = self._identity
        # What was acknowledged last lies in the removed log alone; only connections to it can save it.
        if identity is not None and identity.is_log_missing() and not self._saves_log() and not for_good:
            log.error(
                "the write-ahead log of %s was removed and cannot be saved yet: a reader is in the way", self.path
            )
            return
        self._lost = True
        log.error("%s was removed or replaced; the store is unusable until one lies there again", self.path)
        if identity is not None:
            identity.remember_log()
            self._former, self._identity = identity, None
        with ExitStack() as stack:
            if identity is not None and identity.is_same_database():
                # Of another database SQLite itself leaves the log alone. Of this one, a connection that cannot write is
                # closed last: as long as it is open no other one is the last, which would copy back what it knows of
                # the log and remove it, although another process may have gone on with it.
                with suppress(sqlite3.Error, WorldBroken):
                    stack.enter_context(closing(connect_to_look(self._place, self._busy)))
            self._close_connections()

    def _saves_log(self) -> bool:
        """Whether all of the log is in the database now; a reader, or another checkpoint, may be in the way."""
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

    def _found_again(self) -> bool:
        """Whether a store lies there again, which is open now."""
        # Not waited for: an effect of this very thread may hold it.
        if not self._using.acquire(blocking=False):
            return False
        try:
            if not self.is_file_there():
                self._let_go()
                if not self._lost:
                    return False
                self._open_again()
            return True
        finally:
            self._using.release()

    def _open_again(self) -> None:
        """Open what lies at the path now; raises where that is no store."""
        self._place = Path(os.path.realpath(self._named))
        if not self._place.is_file():
            raise self._lost_file()
        if self._former is not None and self._former.left_log():
            raise StoreUnusable(
                f"{self.path} was replaced, and the write-ahead log beside it is that of the file before, which would "
                f"spoil it: stop all that use it and remove {self._place}-wal and {self._place}-shm",
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
        self._kept = Kept()
        self._connection = self._opened()
        self._lost = False
        log.warning("%s was opened again", self.path)

    # Inside

    def _refuse_closed(self) -> None:
        if self._closed:
            raise self._is_closed()
        if self._process != os.getpid():
            # The thread that writes is not there, and a connection that two processes use spoils the file.
            message = f"The store {self.path.name} was opened before this process was forked; open it again here"
            raise StoreUnusable(message, path=str(self.path))

    def _is_closed(self) -> StoreUnusable:
        return StoreUnusable(f"The store {self.path.name} is closed", path=str(self.path))

    def _files_closed(self) -> FilesClosed | None:
        if self._turnstile is None or self._turnstile.has_its_files():
            return None
        message = f"The files of {self.path} were closed in this process, as by os.closerange; start it again"
        return FilesClosed(message, path=str(self.path))

    def _trouble(self, what: str, trouble: sqlite3.Error) -> WorldBroken:
        if (closed := self._files_closed()) is not None:
            return closed
        if is_busy(trouble):
            return StorageBusy(
                f"Another writer holds {self.path.name} for more than {self._busy:g} s; nothing was changed"
            )
        if is_read_only_trouble(trouble):
            return StoreReadOnly(f"{self.path} cannot be written; nothing was changed", path=str(self.path))
        return StoreUnusable(f"{self.path} {what}: {trouble}", path=str(self.path))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if not self.is_file_there() and not self._found_again():
            raise self._lost_file()
        identity = self._identity
        try:
            connection = self._readers.popleft()
        except IndexError:
            connection = self._connected()
            # SQLite ends a query in its middle once the read is cancelled.
            connection.set_progress_handler(is_cancelled, STEPS_BETWEEN_LOOKS)
        try:
            yield connection
        except BaseException:
            connection.close()  # what it was in the middle of goes with it
            raise
        # One that only looks may take the file for one that nobody changes, so it is not kept.
        if self._closed or self._read_only or identity is not self._identity:
            connection.close()
        else:
            self._readers.append(connection)

    def _connected(self) -> sqlite3.Connection:
        if self._read_only and is_read_only(self._place):
            return connect_to_look(self.path, self._busy)
        return connect(self._place, self.durability, self._busy)
