"""A background thread that repeats some work until it is closed, and a bell that wakes it.

No error ends the loop: it is logged, and the work is retried after a pause.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from pendula.kernel.errors import WorldBroken

CLOSE_SEC = 5.0
REST_MOST_SEC = 86_400.0


class Bell:
    """Wakes one waiting thread. May be rung from any thread and from a signal handler, so it uses no lock."""

    def __init__(self) -> None:
        self._rung: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        if self._rung.empty():  # an abandoned bell does not grow
            self._rung.put(None)

    def wait(self, seconds: float | None) -> bool:
        """Whether it was rung, since the last wait or within so many seconds (None: without limit)."""
        with suppress(Empty):
            self._rung.get(timeout=seconds)
            while not self._rung.empty():
                self._rung.get_nowait()
            return True
        return False


class Gate:
    """Opens once, for all waiting threads. A `threading.Event` stays locked after an interrupt within `set`."""

    def __init__(self) -> None:
        self._closed = threading.Lock()
        self._closed.acquire()

    def open(self) -> None:
        with suppress(RuntimeError):  # it is open
            self._closed.release()

    def wait(self, seconds: float) -> bool:
        """Whether it is open, now or within so many seconds."""
        if not self._closed.acquire(timeout=seconds):
            return False
        self.open()
        return True


class BackgroundLoop:
    """Calls `work` in a daemon thread of its own, from `start` to `close`.

    `work` returns how many seconds to rest before the next call, None to rest until `wake`. `trouble` is the log
    message for a failure, `pause_sec` the rest after it.
    """

    def __init__(
        self, name: str, work: Callable[[], float | None], *, log: logging.Logger, trouble: str, pause_sec: float
    ) -> None:
        self.closed = False
        self._name = name
        self._work = work
        self._log = log
        self._trouble = trouble
        self._pause = pause_sec
        self._bell = Bell()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """End the present rest."""
        self._bell.ring()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        """Stop; wait up to `seconds` for a running round."""
        self.closed = True
        self._bell.ring()
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self.closed:
            self._bell.wait(self._round())

    def _round(self) -> float | None:
        try:
            rest = self._work()
            # A negative or huge rest must not end the thread in `wait`.
            return rest if rest is None else min(rest, REST_MOST_SEC) if rest >= 0 else self._pause
        except WorldBroken as trouble:
            self._log.warning("%s now: %s", self._trouble, trouble)
        except BaseException:  # `SystemExit`, too, would end only this thread, silently
            self._log.exception("%s now", self._trouble)
        return self._pause
