"""Wakes one waiting thread. May be rung from any thread and from a signal handler, which a lock would not bear."""

from contextlib import suppress
from queue import Empty, SimpleQueue


class Bell:
    def __init__(self) -> None:
        self._rung: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        self._rung.put(None)

    def wait(self, seconds: float | None) -> bool:
        """Whether it was rung, since the last time somebody waited or within so many seconds (None: for ever)."""
        with suppress(Empty):
            self._rung.get(timeout=seconds)
            while not self._rung.empty():
                self._rung.get_nowait()
            return True
        return False
