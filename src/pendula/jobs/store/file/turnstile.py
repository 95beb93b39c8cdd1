"""Who may write next, among the processes on one file: a queue, so that nobody waits for ever.

SQLite's own waiting is a series of guesses: under eight writers some starve and some are refused. Here a writer first
passes a turnstile and then takes the lock. Whoever comes back from writing finds somebody in the turnstile already, and
queues up behind.
"""

import fcntl
import os
import threading
from pathlib import Path


class Turnstile:
    """One writer at a time over all processes; one caller at a time within this one."""

    def __init__(self, database: Path) -> None:
        self._turn = _opened(database.with_name(database.name + ".turn"))
        self._lock = _opened(database.with_name(database.name + ".lock"))
        self._wanted = threading.Event()
        self._granted = threading.Event()
        self._waiting = False
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
                self._granted.clear()
                self._wanted.set()
                if self._waiter is None:
                    self._waiter = threading.Thread(target=self._wait, name="pendula-jobs-turnstile", daemon=True)
                    self._waiter.start()
        try:
            granted = self._granted.wait(timeout)
        except BaseException:
            self._give_up()
            raise
        if granted:
            with self._guard:
                self._waiting = False
            return True
        with self._guard:
            if self._granted.is_set():
                self._waiting = False
                return True
            # The thread goes on waiting, and lets go at once when its turn comes and nobody asked again.
            self._given_up = True
        return False

    def _give_up(self) -> None:
        """Somebody is broken off while waiting: what was granted meanwhile is let go."""
        with self._guard:
            if self._granted.is_set():
                self._waiting = False
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            else:
                self._given_up = True

    def release(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        self._closed = True
        self._wanted.set()
        if self._waiter is None or not self._waiting:
            os.close(self._turn)
            os.close(self._lock)

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
            self._wanted.wait()
            self._wanted.clear()
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
                    self._granted.set()


def _opened(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
