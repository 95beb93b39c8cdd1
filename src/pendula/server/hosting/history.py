"""Past states of engines, with the last one cached.

Restoring a past state takes the nearest earlier snapshot and replay, which can take seconds; a reader that plays or
steps through a journal reads one state after another and continues from the cached engine. One reader at a time uses
it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from msgspec import Struct

from pendula.kernel.cancellation import Cancelled
from pendula.kernel.engine import Engine
from pendula.kernel.journal import Journal
from pendula.kernel.replay import follow

AnyEngine = Engine[Any, Any]


class CachedEngine(Struct, frozen=True):
    """An engine as of record `n`."""

    engine: AnyEngine
    n: int


class PastEngines:
    """Past states of the engine of one journal, restored by `engine_at`. Thread-safe."""

    def __init__(self, journal: Journal, engine_at: Callable[[int], AnyEngine]) -> None:
        self._journal = journal
        self._make = engine_at
        self._lock = threading.Lock()
        self._kept: CachedEngine | None = None

    @contextmanager
    def at(self, n: int) -> Iterator[AnyEngine]:
        """The engine as of record `n`, for reading only; raises `UnknownRecord`."""
        with self._lock:
            kept, self._kept = self._kept, None
        lent = self._engine_at(kept, n)
        yield lent.engine
        with self._lock:
            # Not reached if the reader raised: its engine may have changed and is discarded.
            self._kept = lent

    def _engine_at(self, kept: CachedEngine | None, n: int) -> CachedEngine:
        journal = self._journal
        nearest = max((at for at, _ in journal.snapshots() if at <= n), default=-1)
        if kept is None or not max(nearest, journal.first_n - 1) <= kept.n <= n <= journal.durable_n:
            # At a snapshot no record is applied; without one, start at the first.
            start = nearest if nearest >= 0 else journal.first_n
            if not start <= n <= journal.durable_n:
                return CachedEngine(self._make(n), n)
            kept = CachedEngine(self._make(start), start)
        at = kept.n
        try:
            for record, _ in islice(follow(kept.engine, journal, kept.n + 1), n - kept.n):
                at = record.n
        except Cancelled:
            # The engine is between two records: the next read continues from here.
            with self._lock:
                self._kept = CachedEngine(kept.engine, at)
            raise
        return CachedEngine(kept.engine, n)
