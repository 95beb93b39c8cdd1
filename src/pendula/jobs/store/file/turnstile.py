"""A fair queue of the writing processes on one file.

SQLite waits with random pauses: with eight writers some starve and some are refused. Here a writer first passes a
turnstile and then takes the lock. A writer that returns finds another one in the turnstile, and queues behind it.
"""

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue


class Turnstile:
    """One writer at a time over all processes; one caller at a time within this one."""

    def __init__(self, database: Path) -> None:
        self._turn = _opened(database.with_name(database.name + ".turn"))
        self._lock = _opened(database.with_name(database.name + ".lock"))
        self._files = [(handle, _identity(handle)) for handle in (self._turn, self._lock)]
        # Not `threading.Event`: an interrupt within `set` would leave it locked.
        self._wanted: SimpleQueue[None] = SimpleQueue()
        self._granted: SimpleQueue[None] = SimpleQueue()
        self._waiting = False
        self._has_turn = False
        self._given_up = False
        self._closed = False
        self._guard = threading.Lock()
        self._waiter: threading.Thread | None = None

    def acquire(self, timeout: float) -> bool:
        """Whether this process may write, after at most `timeout` seconds."""
        if not self._waiting and self._at_once():
            return True
        with self._guard:
            self._given_up = False
            if not self._waiting:
                self._waiting = True
                self._has_turn = False
                self._granted = SimpleQueue()
                self._wanted.put(None)
                if self._waiter is None:
                    self._waiter = threading.Thread(target=self._wait, name="pendula-jobs-turnstile", daemon=True)
                    self._waiter.start()
        try:
            with suppress(Empty):
                self._granted.get(timeout=timeout)
        except BaseException:
            self._give_up()
            raise
        with self._guard:
            if self._has_turn:
                self._waiting = False
                return True
            # The thread keeps waiting, and releases its turn at once unless it is wanted again by then.
            self._given_up = True
        return False

    def _give_up(self) -> None:
        """The wait was interrupted: release a turn that was granted meanwhile."""
        with self._guard:
            if self._has_turn:
                self._waiting = False
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            else:
                self._given_up = True

    def release(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def has_its_files(self) -> bool:
        """Whether its files are still open; user code may have closed them (`os.closerange`)."""
        return all(_identity(handle) == identity for handle, identity in self._files)

    def close(self) -> None:
        self._closed = True
        self._wanted.put(None)
        if self._waiter is None or not self._waiting:
            for handle, identity in self._files:
                if _identity(handle) == identity:  # not another file with a reused descriptor
                    os.close(handle)

    def _at_once(self) -> bool:
        if not _try(self._turn):
            return False
        try:
            return _try(self._lock)
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _wait(self) -> None:
        """The one thread that blocks: `flock` has no timeout."""
        while True:
            self._wanted.get()
            if self._closed:
                return
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            fcntl.flock(self._turn, fcntl.LOCK_UN)
            with self._guard:
                if self._given_up:
                    fcntl.flock(self._lock, fcntl.LOCK_UN)
                    self._waiting = False
                else:
                    self._has_turn = True
                    self._granted.put(None)


def _opened(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


def _identity(handle: int) -> tuple[int, int] | None:
    """Device and inode of an open file; None where it is closed."""
    try:
        status = os.fstat(handle)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
