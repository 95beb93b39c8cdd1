"""A worker's signs of life: its counters go into the store it works on, so that others see them with their age.

At most every 5 s where something changed, every 30 s where nothing did, and once more at the end. A sign that cannot be
written is only told in the log: no job waits for it.
"""

import logging
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from re import sub
from secrets import token_hex

from msgspec import Struct

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls
from pendula.jobs.calls.signs import fitting
from pendula.jobs.model import SECOND
from pendula.jobs.store.protocol import WorkerRow
from pendula.kernel.errors import WorldBroken

log = logging.getLogger("pendula.jobs.worker")

EVERY_SEC = 5.0
IDLE_US = 30 * SECOND


class Tally(Struct):
    """What a worker did: jobs taken, and how their deliveries ended. Dropped ones are somebody else's by now."""

    taken: int = 0
    succeeded: int = 0
    failed: int = 0
    dropped: int = 0
    released: int = 0


class Counted(Struct, frozen=True):
    """What changes about a worker."""

    running: int
    taken: int
    succeeded: int
    failed: int
    dropped: int
    released: int


class About(Struct, frozen=True):
    """What does not."""

    worker_id: str
    concurrency: int
    works: tuple[tuple[str, str], ...]
    queues: tuple[str, ...]


class Signs:
    """Writes the signs of one worker, in the background from `start` to `close`."""

    def __init__(self, calls: Calls, about: About, count: Callable[[], Counted]) -> None:
        self._calls = calls
        self._about = about
        self._count = count
        self._started_at = calls.clock()
        self._told: Counted | None = None
        self._told_at = 0
        self._loop = BackgroundLoop(
            "pendula-jobs-signs", self._round, log=log, trouble="signs of life cannot be written", pause_sec=EVERY_SEC
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        """The last sign says that the worker ended."""
        self._loop.close(seconds)
        try:
            self.tell(ended=True)
        except WorldBroken as trouble:
            log.warning("the last sign of life cannot be written: %s", trouble)

    def tell(self, *, ended: bool = False) -> bool:
        """Write a sign unless the last one tells the same and is young; whether one was written."""
        counted, now = self._count(), self._calls.clock()
        if counted == self._told and now - self._told_at < IDLE_US and not ended:
            return False
        self._calls.signs_of_life([self._row(counted, now, now if ended else None)])
        self._told, self._told_at = counted, now
        return True

    def _row(self, counted: Counted, now: int, ended_at: int | None) -> WorkerRow:
        return WorkerRow(
            worker_id=self._about.worker_id,
            started_at=self._started_at,
            seen_at=now,
            ended_at=ended_at,
            concurrency=self._about.concurrency,
            running=counted.running,
            taken=counted.taken,
            succeeded=counted.succeeded,
            failed=counted.failed,
            dropped=counted.dropped,
            released=counted.released,
            works=self._about.works,
            queues=self._about.queues,
        )

    def _round(self) -> float:
        self.tell()
        return EVERY_SEC


def own_name() -> str:
    """A worker's name that no other has: host, process and a few random digits."""
    host = sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:80] or "host"
    return f"{host}:{os.getpid()}:{token_hex(3)}"


def works_among(
    works: Iterable[tuple[str, str]], object_types: Sequence[str], actions: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """What a worker that keeps to these types and actions takes, as it is written down."""
    kept = [
        (kind, action)
        for kind, action in works
        if (not object_types or kind in object_types) and (not actions or action in actions)
    ]
    return fitting(kept)
