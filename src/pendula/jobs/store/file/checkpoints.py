"""Checkpoints of a large write-ahead log, in a separate thread so that no call waits for them.

A reader of another program that keeps a snapshot open stops every checkpoint at that point, and the log grows until the
reader ends. The writer checkpoints a small log itself, as SQLite does by default. Once the log is large, a thread with
its own connection does it while the writer continues.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from pendula.jobs.background import Gate

log = logging.getLogger("pendula.jobs.store")

LARGE_BYTES = 16 << 20  # above this, the separate thread does the checkpoints
STEP_PAGES = 1000  # the writer's `wal_autocheckpoint`, SQLite's default
PAUSE_SECONDS = 0.5
WARN_SECONDS = 10.0  # how long a reader blocks before the first warning; pauses double


class Checkpoints:
    """Starts when the log is large, ends when it is small again. `connect` opens a connection to the store."""

    def __init__(self, place: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        self._place = place
        self._connect = connect
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._log_bytes = 0
        self._behind = False
        self._closing = False
        self._ended = Gate()  # not a `threading.Event`: an interrupt within `set` would leave it locked
        self._blocked_since: float | None = None
        self._copied = 0
        self._next_warning = WARN_SECONDS

    def pages_of_writer(self, log_bytes: int) -> int:
        """The writer's `wal_autocheckpoint`; 0 while this thread catches up."""
        self._log_bytes = log_bytes
        if log_bytes <= LARGE_BYTES:
            return STEP_PAGES
        with self._lock:
            if self._thread is None and not self._closing:
                self._behind = True
                self._thread = threading.Thread(target=self._run, name="pendula-jobs-checkpoints", daemon=True)
                self._thread.start()
        return 0 if self._behind else STEP_PAGES

    def close(self) -> None:
        self._closing = True
        self._ended.open()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        try:
            with suppress(sqlite3.Error), closing(self._connect()) as connection:
                # Do not wait for writers: the next try is soon.
                connection.execute("PRAGMA busy_timeout = 0")
                while not self._closing and self._log_bytes > LARGE_BYTES:
                    if not self._step(connection):
                        self._ended.wait(PAUSE_SECONDS)
        finally:
            with self._lock:
                self._behind = False
                self._thread = None

    def _step(self, connection: sqlite3.Connection) -> bool:
        """One checkpoint; returns whether the next may follow at once."""
        busy, pages, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if busy:  # another process does a checkpoint
            return False
        left = pages - copied
        self._behind = left > STEP_PAGES
        if left:
            moved = copied != self._copied
            self._note(copied)
            return self._behind and moved
        self._blocked_since = None
        # Nothing is left to copy, so this only truncates the file, when no other connection uses it.
        with suppress(sqlite3.OperationalError):
            if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                self._log_bytes = 0
        return False

    def _note(self, copied: int) -> None:
        """Warn of a reader that has blocked checkpoints for long."""
        now = time.monotonic()
        if self._blocked_since is None or copied != self._copied:
            self._blocked_since, self._copied, self._next_warning = now, copied, WARN_SECONDS
            return
        age = now - self._blocked_since
        if age >= self._next_warning:
            self._next_warning = 2 * age
            log.warning(
                "a reader has held %s open for at least %.0f s; its write-ahead log has %d MiB and grows until the "
                "reader ends its transaction (which process it is: lsof %s-shm)",
                self._place,
                age,
                self._log_bytes >> 20,
                self._place,
            )
