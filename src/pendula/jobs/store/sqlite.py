"""Jobs in one SQLite file: write-ahead log, one writer at a time over all processes, one flush for many callers.

Callers of `write` stand in line, and the one writer thread does the work of all who stand there in one transaction; all
return when it is durable. Each caller's part is a savepoint of its own: what fails is undone, the rest goes on. A part
that runs foreign code has a transaction of its own. A transaction that is gone is never taken for a committed one.
"""

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pendula.jobs.model import Durability, StorageBusy
from pendula.jobs.store.file.damage import any_text, damages
from pendula.jobs.store.file.mounts import refuse_network
from pendula.jobs.store.file.opening import (
    BUSY_SECONDS,
    PATIENCE_SECONDS,
    NewerStore,
    bring_up_to_date,
    connect,
    connect_to_look,
    is_busy,
    is_read_only,
    is_read_only_trouble,
    is_up_to_date,
    log,
    migrations,
    statements,
)
from pendula.jobs.store.file.proof import WriteProof
from pendula.jobs.store.file.schema import schema_faults
from pendula.jobs.store.file.store_time import StoreTime
from pendula.jobs.store.file.turnstile import Turnstile
from pendula.jobs.store.protocol import Reader, StoreReadOnly, StoreUnusable, Writer
from pendula.jobs.store.tables.reader import SqliteReader
from pendula.jobs.store.tables.writer import Kept, SqliteWriter
from pendula.jobs.store.turn import Turn, refuse_inside
from pendula.jobs.store.writer_thread import NOTHING, Call, WriterThread
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WorldBroken

__all__ = ["NewerStore", "NotDurable", "SqliteStore", "StoreUnusable", "migrations", "statements"]

T = TypeVar("T")

EFFECT_SECONDS = 10.0  # how long an effect may keep everybody else from writing
TURNSTILE_SECONDS = 1.0  # how long fairness may cost progress; then the lock of the file decides
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
        self.proof = WriteProof(self._place, durability)
        self._time = StoreTime()
        self._kept = Kept()
        self._using = threading.Lock()  # held while the connection that writes is used
        self._readers: deque[sqlite3.Connection] = deque()
        self._turn: Turn | None = None
        self._stuck_until = 0.0
        self._turnstile: Turnstile | None = None
        self._read_only = False
        refuse_network(self._place.parent)
        self._connection = self._opened()
        self._line = WriterThread(self._serve, self._is_closed)

    def write(self, work: Callable[[Writer], T], *, metadata: Mapping[str, Json] | None = None, own: bool = False) -> T:
        self.check_may_write()
        return self._line.ask(Call(work, metadata or NOTHING, own=own))

    def check_may_write(self) -> None:
        self._refuse_closed()
        refuse_inside(self._place, self._turn)
        assert not self._line.is_current, "a part of a transaction writes through its writer"

    def now(self, clock: Callable[[], int]) -> int:
        return self._time.now(clock)

    def ahead_of(self, clock: Callable[[], int]) -> int:
        """By how many microseconds the store's time is ahead of the clock; 0 when it is not."""
        return self._time.ahead_of(clock)

    def joined(self, connection: sqlite3.Connection) -> SqliteWriter:
        """A writer within the transaction that somebody else has begun on this file."""
        return SqliteWriter(connection, self._time)

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
            raise self._trouble("cannot be read", trouble) from trouble

    def settings(self) -> dict[str, Json]:
        """What the connection that commits says of itself; not within an effect, which has it meanwhile."""
        refuse_inside(self._place, self._turn)
        with self._using:
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
        with self._reading() as connection, closing(self._new_copy(target)) as copy:
            # Of one moment: outside of a transaction the copy would begin again with every write of another process.
            connection.execute("BEGIN")
            try:
                connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
                connection.backup(
                    copy, pages=256, progress=lambda _, left, all: progress(all - left, all) if progress else None
                )
            finally:
                connection.execute("COMMIT")

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
            self._connection.close()
            while self._readers:
                self._readers.popleft().close()
            if self._turnstile is not None:
                self._turnstile.close()

    # One transaction, in the writer thread

    def _serve(self, calls: list[Call[Any]]) -> None:
        """One transaction for these calls; a trouble of the file is the trouble of all."""
        try:
            with self._using:
                self._transaction(calls)
        except (WorldBroken, sqlite3.Error) as trouble:
            broken = self._trouble("cannot be written", trouble) if isinstance(trouble, sqlite3.Error) else trouble
            if broken is not trouble:
                broken.__cause__ = trouble
            for call in calls:
                call.error = broken

    def _transaction(self, calls: list[Call[Any]]) -> None:
        self._make_writable()
        assert self._turnstile is not None
        since = time.monotonic()
        through = self._pass(self._turnstile)
        try:
            self._begin(since)
            try:
                writer = SqliteWriter(self._connection, self._time, self._kept)
                self._parts(calls, writer)
                self._end(writer)
            finally:
                self._leave_no_transaction()
        finally:
            if through:
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

    def _pass(self, turnstile: Turnstile) -> bool:
        """Whether we came through the turnstile; if not, the lock of the file decides.

        Somebody who is frozen there must not keep the others from going on. Once it did not move it is tried in passing
        only, for a while.
        """
        stuck = time.monotonic() < self._stuck_until
        through = turnstile.acquire(0 if stuck else min(TURNSTILE_SECONDS, self._busy))
        if through:
            self._stuck_until = 0.0
        elif not stuck:
            self._stuck_until = time.monotonic() + STUCK_SECONDS
        return through

    def _leave_no_transaction(self) -> None:
        """Whatever went wrong, the next one begins anew; if need be with another connection."""
        if not self._connection.in_transaction:
            return
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")
        if self._connection.in_transaction:
            self._connection.close()
            self._connection = connect(self._place, self.durability, self._busy)

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
                raise StoreReadOnly(f"{self.path} has to be brought up to date, and cannot be written")
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

    def _trouble(self, what: str, trouble: sqlite3.Error) -> WorldBroken:
        if is_busy(trouble):
            return StorageBusy(
                f"Another writer holds {self.path.name} for more than {self._busy:g} s; nothing was changed"
            )
        if is_read_only_trouble(trouble):
            return StoreReadOnly(f"{self.path} cannot be written; nothing was changed", path=str(self.path))
        return StoreUnusable(f"{self.path} {what}: {trouble}", path=str(self.path))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._readers.popleft()
        except IndexError:
            connection = self._connected()
        try:
            yield connection
        except BaseException:
            connection.close()  # what it was in the middle of goes with it
            raise
        # One that only looks may take the file for one that nobody changes, so it is not kept.
        if self._closed or self._read_only:
            connection.close()
        else:
            self._readers.append(connection)

    def _connected(self) -> sqlite3.Connection:
        if self._read_only and is_read_only(self._place):
            return connect_to_look(self.path, self._busy)
        return connect(self._place, self.durability, self._busy)
