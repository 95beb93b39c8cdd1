"""Group commit: one thread runs all queued commands, flushes once, and then acknowledges them.

Commands that arrive during a flush are covered by the next one. Nothing is acknowledged before the flush that makes it
durable. Only this thread touches the engine. Commands go before questions: a command waits for at most one question,
however many are queued.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

from pendula.kernel.errors import WorldBroken
from pendula.kernel.limits import WAITING_COMMANDS

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")
Loop: TypeAlias = asyncio.AbstractEventLoop


class Busy(WorldBroken):
    """The queue is full; try again."""

    code = "busy"


class Closed(WorldBroken):
    """The thread has ended and accepts no more work."""

    code = "closed"


class GroupCommit(Generic[T, R]):
    """Owns one thread. `do` is called for each item in order of arrival, then `flush` once for the batch. At most
    `limit` commands and `limit` questions may be queued."""

    def __init__(
        self,
        do: Callable[[T], R],
        flush: Callable[[], object],
        limit: int = WAITING_COMMANDS.default,
        name: str = "engine",
    ) -> None:
        self._do = do
        self._flush = flush
        self._limit = limit
        self._name = name
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        # Questions taken from the queue that wait for a pause in the commands; `_asking` counts those in the queue too.
        self._questions: deque[_Work] = deque()
        self._asking = 0
        self._closed = False
        self._failure: Exception | None = None  # of a flush; no flush is tried after it
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of queued commands and questions."""
        return self._queue.qsize() + len(self._questions)

    async def submit(self, item: T) -> R:
        """The result of `do(item)`, once durable; raises its exception, `Busy` or `Closed`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._put(_Work(self._do, item, future, loop))
        return await future

    def post(self, item: T) -> Future[R]:
        """Queue `do(item)`, from any thread and without waiting; raises `Busy` or `Closed`."""
        future: Future[R] = Future()
        self._put(_Work(self._do, item, future, None))
        return future

    def call(self, item: T) -> R:
        """Like `submit`, for threads."""
        return self.post(item).result()

    async def ask(self, question: Callable[[], A]) -> A:
        """Run a read-only function on the engine's thread, between commands."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        self._put(_Work(None, question, future, loop))
        return await future

    def close(self) -> None:
        """Finish the queued work, then end the thread."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _put(self, work: "_Work") -> None:
        with self._closing:
            if self._closed:
                raise Closed(f"{self._name} has stopped")
            asks = work.do is None
            waiting = self._asking if asks else self._queue.qsize() + len(self._questions) - self._asking
            if waiting >= self._limit:
                what = "questions" if asks else "commands"
                raise Busy(f"{self._limit} {what} are already waiting for {self._name}; try again", limit=self._limit)
            self._asking += asks
            self._queue.put(work)

    def _run(self) -> None:
        open_ = True
        while open_ or self._questions:
            commands, ended = self._gather()
            open_ = open_ and not ended
            if commands:
                self._carry_out(commands)
            self._answer()

    def _carry_out(self, batch: list["_Work"]) -> None:
        if self._failure is None:
            for work in batch:
                work.run()
            try:
                self._flush()
            except Exception as trouble:
                self._failure = trouble
        if self._failure is not None:
            # After a failed flush the whole batch may not be durable: neither results nor answers are returned.
            for work in batch:
                work.error = work.error or self._failure
        _acknowledge(batch)

    def _answer(self) -> None:
        """Answer questions until a command arrives, at least one; everything they see is durable."""
        answered: list[_Work] = []
        while self._questions and (not answered or self._queue.empty()):
            work = self._questions.popleft()
            with self._closing:
                self._asking -= 1
            work.error = self._failure
            # A caller that has left needs no answer.
            if self._failure is None and not work.future.done():
                work.run()
            answered.append(work)
        _acknowledge(answered)

    def _gather(self) -> tuple[list["_Work"], bool]:
        """The queued commands; blocks while there is neither a command nor a question. The flag is True when the queue
        is closed."""
        commands: list[_Work] = []
        try:
            while len(commands) < self._limit:
                idle = not commands and not self._questions
                entry = self._queue.get(block=idle)
                if entry is None:
                    return commands, True
                (self._questions if entry.do is None else commands).append(entry)
        except Empty:
            pass
        return commands, False


class _Work:
    __slots__ = ("do", "error", "future", "item", "loop", "result")

    def __init__(self, do: Callable[[Any], Any] | None, item: Any, future: Any, loop: Loop | None) -> None:
        self.do = do
        self.item = item
        self.future = future
        self.loop = loop
        self.result: Any = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.result = self.item() if self.do is None else self.do(self.item)
        except Exception as error:
            self.error = error
        except BaseException as end:  # SystemExit out of user code ends only its own command
            self.error = WorldBroken(f"A command ended with {end!r}")

    def resolve(self) -> None:
        # A cancelled waiter gets no result; its command was applied nevertheless.
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


def _acknowledge(batch: list[_Work]) -> None:
    by_loop: dict[Loop, list[_Work]] = {}
    for work in batch:
        if work.loop is None:
            work.resolve()
        else:
            by_loop.setdefault(work.loop, []).append(work)
    for loop, works in by_loop.items():
        # One wake-up per loop: one per waiter would cost more than the flush.
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_resolve_all, works)


def _resolve_all(works: list[_Work]) -> None:
    for work in works:
        work.resolve()
