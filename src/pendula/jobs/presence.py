"""Heartbeats of workers that pull from this server, written to the store every few seconds.

So `stats`, `why` and the metrics show them like workers that work on the store directly.
"""

import logging
from threading import Lock

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls
from pendula.jobs.calls.queries import WORKERS_MOST, fitting
from pendula.jobs.messages import Pull
from pendula.jobs.store.protocol import WorkerRow

log = logging.getLogger("pendula.jobs.presence")

EVERY_SEC = 5.0


class Presence:
    """The workers that pulled here. `seen` is called with every pull, from any thread, and writes nothing."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._first: dict[str, int] = {}
        self._taken: dict[str, int] = {}
        self._waiting: dict[str, WorkerRow] = {}

    def seen(self, pull: Pull, now: int, given: int, words: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
        """Record a pull and the number of jobs it got; `words` are all object types and actions."""
        works = fitting(_works(pull, words)) if pull.object_types or pull.actions or pull.pairs else ()
        name = pull.worker_id
        with self._lock:
            if name not in self._first and len(self._first) >= WORKERS_MOST:
                return
            started = self._first.setdefault(name, now)
            taken = self._taken[name] = self._taken.get(name, 0) + given
            self._waiting[name] = WorkerRow(name, started, now, None, taken, works=works, queues=pull.queues)

    def take(self) -> list[WorkerRow]:
        """Return and clear what was recorded, by worker name."""
        with self._lock:
            rows = [self._waiting[name] for name in sorted(self._waiting)]
            self._waiting.clear()
        return rows


def _works(pull: Pull, words: tuple[tuple[str, ...], tuple[str, ...]]) -> list[tuple[str, str]]:
    types, actions = pull.object_types or words[0], pull.actions or words[1]
    pairs = pull.pairs or [(kind, action) for kind in types for action in actions]
    return [(kind, action) for kind, action in pairs if kind in types and action in actions]


class PresenceWriter:
    """Writes recorded pulls every few seconds, in the background from `start` to `close`."""

    def __init__(self, presence: Presence, calls: Calls) -> None:
        self._presence = presence
        self._calls = calls
        self._loop = BackgroundLoop(
            "pendula-jobs-presence",
            self._round,
            log=log,
            trouble="heartbeats of workers cannot be written",
            pause_sec=EVERY_SEC,
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def write(self) -> int:
        """Write what was recorded; return the number of workers."""
        rows = self._presence.take()
        if rows:
            self._calls.record_heartbeats(rows)
        return len(rows)

    def _round(self) -> float:
        self.write()
        return EVERY_SEC
