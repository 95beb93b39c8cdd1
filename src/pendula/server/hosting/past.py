"""Threads of their own for whoever looks at the past, so that no number of slow looks holds up a command.

A lane has two threads and a short line before them; who finds the line full is told to come back. Looks that replay an
engine and looks that only read records have a lane each: a page that shows the newest records does not wait for
somebody who goes back a year.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from pendula.kernel.journal import RecordsPruned
from pendula.kernel.limits import PAST_READS
from pendula.server.errors import PastBusy

THREADS = 2

A = TypeVar("A")


class Lane:
    """One kind of look at the past, or of another long look. Belongs to the event loop."""

    def __init__(self, name: str, most_waiting: int, threads: int = THREADS) -> None:
        self._most = most_waiting
        self._room = threads + most_waiting
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self.inside = 0

    async def look(self, read: Callable[[], A]) -> A:
        """What `read` finds, once more if a segment was pruned under its eyes; raises `PastBusy`."""
        try:
            return await self._run(read)
        except (FileNotFoundError, RecordsPruned):
            return await self._run(read)

    def close(self) -> None:
        """End the threads after what they are at; whoever still waits is let down."""
        self._threads.shutdown(cancel_futures=True)

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place in the lane, for whoever has to fetch what it looks at first; raises `PastBusy`."""
        if self.inside >= self._room:
            raise PastBusy(
                f"{self._most} others are waiting; try again in a moment",
                limit=PAST_READS.name,
                allowed=self._most,
            )
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    async def at_my_place(self, read: Callable[[], A]) -> A:
        """What `read` finds, for whoever has a place."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, read)

    async def _run(self, read: Callable[[], A]) -> A:
        with self.place():
            return await self.at_my_place(read)


class Past:
    """The lanes of one server."""

    def __init__(self, most_waiting: int) -> None:
        self.replays = Lane("replays", most_waiting)
        self.records = Lane("records", most_waiting)

    def close(self) -> None:
        self.replays.close()
        self.records.close()
