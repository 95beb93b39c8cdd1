"""Heartbeats of a worker: its counters, written to the store, so that others see them with their age.

At most every 5 s when a counter changed, every 30 s otherwise, and once at the end. A failed write is only logged.
"""

import logging
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from re import sub

from msgspec import Struct

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls
from pendula.jobs.calls.queries import fitting
from pendula.jobs.model import SECOND
from pendula.jobs.store.protocol import WorkerRow
from pendula.kernel.errors import WorldBroken

log = logging.getLogger("pendula.jobs.worker")

EVERY_SEC = 5.0
IDLE_US = 30 * SECOND


class Tally(Struct):
    """Jobs taken and how their deliveries ended. The lease of a dropped one was lost."""

    taken: int = 0
    succeeded: int = 0
    failed: int = 0
    dropped: int = 0
    released: int = 0


class WorkerCounts(Struct, frozen=True):
    """The changing part of a heartbeat."""

    running: int
    taken: int
    succeeded: int
    failed: int
    dropped: int
    released: int


class WorkerInfo(Struct, frozen=True):
    """The constant part of a heartbeat."""

    worker_id: str
    concurrency: int
    works: tuple[tuple[str, str], ...]
    queues: tuple[str, ...]


class Heartbeats:
    """Writes the heartbeats of one worker, in the background from `start` to `close`."""

    def __init__(self, calls: Calls, about: WorkerInfo, count: Callable[[], WorkerCounts]) -> None:
        self._calls = calls
        self._about = about
        self._count = count
        self._started_at = calls.clock()
        self._last: WorkerCounts | None = None
        self._last_at = 0
        self._loop = BackgroundLoop(
            "pendula-jobs-heartbeats", self._round, log=log, trouble="heartbeats cannot be written", pause_sec=EVERY_SEC
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        """Stop, and write a last heartbeat with the time of the end."""
        self._loop.close(seconds)
        try:
            self.record(ended=True)
        except WorldBroken as trouble:
            log.warning("the last heartbeat cannot be written: %s", trouble)

    def record(self, *, ended: bool = False) -> bool:
        """Write a heartbeat unless the last one is equal and recent; whether one was written."""
        counts, now = self._count(), self._calls.clock()
        if counts == self._last and now - self._last_at < IDLE_US and not ended:
            return False
        self._calls.record_heartbeats([self._row(counts, now, now if ended else None)])
        self._last, self._last_at = counts, now
        return True

    def _row(self, counts: WorkerCounts, now: int, ended_at: int | None) -> WorkerRow:
        return WorkerRow(
            worker_id=self._about.worker_id,
            started_at=self._started_at,
            seen_at=now,
            ended_at=ended_at,
            concurrency=self._about.concurrency,
            running=counts.running,
            taken=counts.taken,
            succeeded=counts.succeeded,
            failed=counts.failed,
            dropped=counts.dropped,
            released=counts.released,
            works=self._about.works,
            queues=self._about.queues,
        )

    def _round(self) -> float:
        self.record()
        return EVERY_SEC


def generate_worker_id() -> str:
    """A unique worker name: host, process and a few random digits."""
    host = sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:80] or "host"
    return f"{host}:{os.getpid()}:{os.urandom(3).hex()}"


def filter_works(
    works: Iterable[tuple[str, str]], object_types: Sequence[str], actions: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """The pairs that a worker limited to these types and actions takes, in stored form."""
    selected = [
        (kind, action)
        for kind, action in works
        if (not object_types or kind in object_types) and (not actions or action in actions)
    ]
    return fitting(selected)
