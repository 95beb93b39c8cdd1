"""Who may write next, among the processes on one file: a queue, so that nobody waits for ever.

SQLite's own waiting is a series of guesses: under eight writers some starve and some are refused. Here a writer first
passes a turnstile and then takes the lock. Whoever comes back from writing finds somebody in the turnstile already, and
queues up behind.
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
        # No events: one that an interrupt strikes in `set` stays locked for ever.
        self._wanted: SimpleQueue[None] = SimpleQueue()
        self._granted: SimpleQueue[None] = SimpleQueue()
        self._waiting = False
        self._has_turn = False
        self._given_up = False
        self._closed = False
        self._guard = threading.Lock()
        self._waiter: threading.Thread | None = None

    def acquire(self, timeout: float) -> bool:
        """Whether the file is ours to write, after at most `timeout` seconds."""
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
            # The thread goes on waiting, and lets go at once when its turn comes and nobody asked again.
            self._given_up = True
        return False

    def _give_up(self) -> None:
        """Somebody is broken off while waiting: what was granted meanwhile is let go."""
        with self._guard:
            if self._has_turn:
                self._waiting = False
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            else:
                self._given_up = True

    def release(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def has_its_files(self) -> bool:
        """Whether its files are open; user code may have closed all that this process had open (`os.closerange`)."""
        return all(_identity(handle) == identity for handle, identity in self._files)

    def close(self) -> None:
        self._closed = True
        self._wanted.put(None)
        if self._waiter is None or not self._waiting:
            for handle, identity in self._files:
                if _identity(handle) == identity:  # not a file that got its number since
                    os.close(handle)

    def _at_once(self) -> bool:
        if not _try(self._turn):
            return False
        try:
            return _try(self._lock)
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _wait(self) -> None:
        """The one thread that blocks: a lock of the system has no time limit of its own."""
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
    """Device and number of an open file; None where it is closed."""
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
