"""Work in the background: a thread that does something again and again until it is closed, and a bell that wakes it.

Nothing that goes wrong ends the loop: it is told in the log, and the work is tried again after a pause.
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
    """Wakes one waiting thread. May be rung from any thread and from a signal handler, which a lock would not bear."""

    def __init__(self) -> None:
        self._rung: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        if self._rung.empty():  # one that is not waited for any more does not grow
            self._rung.put(None)

    def wait(self, seconds: float | None) -> bool:
        """Whether it was rung, since the last time somebody waited or within so many seconds (None: for ever)."""
        with suppress(Empty):
            self._rung.get(timeout=seconds)
            while not self._rung.empty():
                self._rung.get_nowait()
            return True
        return False


class Gate:
    """Opens once, for all who wait. A `threading.Event` that an interrupt strikes in `set` stays locked for ever."""

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

    `work` returns how many seconds to rest before it is called again, None to rest until `wake`. `trouble` is what is
    told where it cannot be done, and `pause_sec` the rest after that.
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
        """No further round; one that is under way is waited for, for so long."""
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
            # What is not a number of seconds must not end the thread where it rests.
            return rest if rest is None else min(rest, REST_MOST_SEC) if rest >= 0 else self._pause
        except WorldBroken as trouble:
            self._log.warning("%s now: %s", self._trouble, trouble)
        except BaseException:  # an exit of the program, too, would end only this thread, and without a word
            self._log.exception("%s now", self._trouble)
        return self._pause
