"""Deliver write-backs, the next times of objects in another database: at least once, in order, with a fence.

With `objects_elsewhere` an ack and its write-back are committed together; `WriteBacks` then delivers the write-backs
one after another and deletes each that was accepted. After a crash one may be delivered again. The fence of a
write-back is the version of the object: the receiver ignores older ones.
"""

import logging
from collections.abc import Callable
from typing import Any

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.model import SECOND
from pendula.jobs.store.protocol import Store
from pendula.kernel.wallclock import steady_us

log = logging.getLogger("pendula.jobs.outbox")

WriteBack = dict[str, Any]

POLL_SEC = 1.0
FIRST_PAUSE_SEC, LONGEST_PAUSE_SEC = 1, 60
AT_ONCE = 100


class Newest:
    """A receiver for tests and small programs: accepts a write-back only if it is newer than the last."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], int] = {}

    def takes(self, write_back: WriteBack) -> bool:
        key = (write_back["object_type"], write_back["object_id"])
        if write_back["version"] <= self._seen.get(key, 0):
            return False
        self._seen[key] = write_back["version"]
        return True


class WriteBacks:
    """Calls `send` with each write-back of a store; if it raises, retries later and keeps the order."""

    def __init__(
        self,
        store: Store,
        send: Callable[[WriteBack], object],
        *,
        poll_sec: float = POLL_SEC,
        ticks: Callable[[], int] = steady_us,
    ) -> None:
        self._store = store
        self._send = send
        self._poll = poll_sec
        self._ticks = ticks
        self._failures = 0
        self._not_before = 0
        self._loop = BackgroundLoop(
            "pendula-jobs-outbox", self._round, log=log, trouble="write-backs cannot be delivered", pause_sec=poll_sec
        )

    def deliver(self) -> int:
        """Deliver waiting write-backs in order until one fails; return how many were accepted."""
        taken = 0
        while not self._loop.closed and self._ticks() >= self._not_before:
            waiting = self._store.read(lambda look: look.write_backs(AT_ONCE))
            sent = self._hand_out(waiting)
            if sent:
                self._forget(waiting[sent - 1][0])
            taken += sent
            if sent < len(waiting) or len(waiting) < AT_ONCE:
                break
        return taken

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        """Stop; undelivered write-backs stay in the store."""
        self._loop.close(seconds)

    def _forget(self, upto: int) -> None:
        self._store.write(lambda tx: tx.write_backs_taken(upto))

    def _hand_out(self, waiting: list[tuple[int, WriteBack]]) -> int:
        for number, (_, write_back) in enumerate(waiting):
            try:
                self._send(write_back)
            except Exception as trouble:
                self._failures += 1
                pause = min(FIRST_PAUSE_SEC << min(self._failures - 1, 16), LONGEST_PAUSE_SEC)
                self._not_before = self._ticks() + pause * SECOND
                log.warning("a write-back cannot be delivered; retry in %d s: %r", pause, trouble)
                return number
            self._failures = 0
        return len(waiting)

    def _round(self) -> float:
        self.deliver()
        return self._poll
