"""Thread pools for reads of past states, so that slow reads never delay a command.

A lane has a few threads and a short queue; a read that finds the queue full is refused. One caller can use only a part
of the queue, and never all threads. A read has a time limit and is cancelled when its caller disconnects. Replays,
reads of records and what-ifs have separate lanes: reading the newest records does not wait for a replay of a year.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, TypeVar

from starlette.requests import ClientDisconnect

from pendula.kernel.cancellation import Cancellation, Cancelled, cancellable
from pendula.kernel.journal import RecordsPruned
from pendula.kernel.limits import PAST_READS, PAST_READS_PER_CALLER, READ_SECONDS
from pendula.server.errors import PastBusy, ReadTooLong
from pendula.server.security.identity import Asking, asking
from pendula.server.settings import Settings

THREADS = 2

A = TypeVar("A")
B = TypeVar("B")


class Lane:
    """A bounded thread pool for one kind of long read. Used on the event loop."""

    def __init__(
        self,
        name: str,
        most_waiting: int = PAST_READS.default,
        threads: int = THREADS,
        most_of_one: int = PAST_READS_PER_CALLER.default,
        seconds: float = READ_SECONDS.default,
    ) -> None:
        self._most = most_waiting
        self._capacity = threads + most_waiting
        self._most_of_one = most_of_one
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._free = asyncio.Semaphore(threads)
        self._share = max(1, threads - 1)
        self._callers: dict[str, _Caller] = {}
        self.inside = 0

    @classmethod
    def of(cls, name: str, settings: Settings, threads: int = THREADS, times: int = 1) -> "Lane":
        """A lane with the limits of the server settings; `times` multiplies the queue for short reads."""
        allowed = settings.allowed
        waiting, of_one = times * allowed(PAST_READS), times * allowed(PAST_READS_PER_CALLER)
        return cls(name, waiting, threads, of_one, allowed(READ_SECONDS))

    async def look(self, read: Callable[[], A]) -> A:
        """The result of `read`, repeated once if a segment was pruned meanwhile.

        Raises `PastBusy`, `ReadTooLong`, and `ClientDisconnect` if the caller has left.
        """
        try:
            return await self._run(_nothing, lambda _: read())
        except (FileNotFoundError, RecordsPruned):
            return await self._run(_nothing, lambda _: read())

    async def look_at(self, fetch: Callable[[], Awaitable[B]], read: Callable[[B], A]) -> A:
        """The result of `read` for the result of `fetch`, which is large and therefore fetched once a thread is free.

        Raises as `look` does.
        """
        return await self._run(fetch, read)

    def close(self) -> None:
        """Stop the threads after their current reads and cancel queued ones."""
        self._threads.shutdown(cancel_futures=True)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place in the queue; raises `PastBusy`."""
        if self.inside >= self._capacity:
            raise PastBusy(
                f"{self._most} reads are already waiting; try again in a moment",
                limit=PAST_READS.name,
                allowed=self._most,
            )
        name = _name_of(asking.get())
        caller = self._callers.get(name) or _Caller(self._share)
        if name and caller.inside >= self._most_of_one:
            raise PastBusy(
                f"{name} has {caller.inside} reads running or waiting; the limit is {self._most_of_one}",
                limit=PAST_READS_PER_CALLER.name,
                allowed=self._most_of_one,
            )
        self._callers[name] = caller
        self.inside += 1
        caller.inside += 1
        try:
            yield
        finally:
            self.inside -= 1
            caller.inside -= 1
            if not caller.inside:
                del self._callers[name]

    async def _run(self, fetch: Callable[[], Awaitable[B]], read: Callable[[B], A]) -> A:
        with self.place():
            who = asking.get()
            work = _Work(fetch, read, Cancellation())
            if who is None:
                return await self._work(work)
            working = asyncio.ensure_future(self._in_turn(self._callers[who.caller], work))
            leaving = asyncio.ensure_future(who.left())
            try:
                await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
                if not working.done():
                    work.cancellation.cancel()
                    if not work.begun:
                        working.cancel()
                    # The place is freed together with the thread.
                    await asyncio.wait((working,))
                    raise ClientDisconnect
                return working.result()
            finally:
                for task in (working, leaving):
                    task.cancel()
                await asyncio.gather(working, leaving, return_exceptions=True)

    async def _in_turn(self, caller: "_Caller", work: "_Work[B, A]") -> A:
        async with caller.turn:
            return await self._work(work)

    async def _work(self, work: "_Work[B, A]") -> A:
        loop = asyncio.get_running_loop()
        cancellation = work.cancellation
        clock: asyncio.TimerHandle | None = None

        def begin() -> None:
            nonlocal clock
            clock = loop.call_later(self._seconds, cancellation.cancel)

        # A queued read holds nothing large and uses no engine time.
        async with self._free:
            fetched = await work.fetch()

            def read() -> A:
                # The limit starts here; time in the queue does not count.
                loop.call_soon_threadsafe(begin)
                with cancellable(cancellation):
                    return work.read(fetched)

            try:
                work.begun = True
                return await loop.run_in_executor(self._threads, read)
            except Cancelled as given_up:
                raise ReadTooLong(
                    f"This takes more than {self._seconds} s; ask for less, or for a moment nearer to a checkpoint",
                    limit=READ_SECONDS.name,
                    allowed=self._seconds,
                ) from given_up
            except asyncio.CancelledError:
                cancellation.cancel()
                raise
            finally:
                if clock is not None:
                    clock.cancel()


class _Work(Generic[B, A]):
    """A read: `fetch` and `read`; `begun` is set once a thread has started it."""

    def __init__(self, fetch: Callable[[], Awaitable[B]], read: Callable[[B], A], cancellation: Cancellation) -> None:
        self.fetch = fetch
        self.read = read
        self.cancellation = cancellation
        self.begun = False


async def _nothing() -> None: ...


class _Caller:
    """The reads of one caller in a lane."""

    def __init__(self, share: int) -> None:
        self.inside = 0
        self.turn = asyncio.Semaphore(share)


def _name_of(who: Asking | None) -> str:
    return "" if who is None else who.caller


class Past:
    """The lanes of one server."""

    def __init__(self, settings: Settings) -> None:
        self.replays = Lane.of("replays", settings)
        self.records = Lane.of("records", settings)
        self.what_ifs = Lane.of("what-ifs", settings, threads=1)

    def close(self) -> None:
        for lane in (self.replays, self.records, self.what_ifs):
            lane.close()
