"""Engines as they were: one is kept where somebody last looked, and goes on from there.

Looking at a moment means the nearest snapshot before it and then replay, which may take seconds; whoever plays a
journal, or steps through it, looks at one moment after another. An engine is lent to one reader at a time.
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


class Kept(Struct, frozen=True):
    """An engine as it was after record `n`."""

    engine: AnyEngine
    n: int


class PastEngines:
    """The past of the engine of one journal, made by `engine_at`. May be called by any thread."""

    def __init__(self, journal: Journal, engine_at: Callable[[int], AnyEngine]) -> None:
        self._journal = journal
        self._make = engine_at
        self._lock = threading.Lock()
        self._kept: Kept | None = None

    @contextmanager
    def at(self, n: int) -> Iterator[AnyEngine]:
        """The engine as it was after record `n`, to be read and not changed; raises `UnknownRecord`."""
        with self._lock:
            kept, self._kept = self._kept, None
        lent = self._engine_at(kept, n)
        yield lent.engine
        with self._lock:
            # Whoever failed while reading does not come here: that engine may not be what it was.
            self._kept = lent

    def _engine_at(self, kept: Kept | None, n: int) -> Kept:
        journal = self._journal
        nearest = max((at for at, _ in journal.snapshots() if at <= n), default=-1)
        if kept is None or not max(nearest, journal.first_n - 1) <= kept.n <= n <= journal.durable_n:
            # From a snapshot no record is applied; without one, the first.
            start = nearest if nearest >= 0 else journal.first_n
            if not start <= n <= journal.durable_n:
                return Kept(self._make(n), n)
            kept = Kept(self._make(start), start)
        at = kept.n
        try:
            for record, _ in islice(follow(kept.engine, journal, kept.n + 1), n - kept.n):
                at = record.n
        except Cancelled:
            # It stands between two records: whoever asks again goes on from here.
            with self._lock:
                self._kept = Kept(kept.engine, at)
            raise
        return Kept(kept.engine, n)
