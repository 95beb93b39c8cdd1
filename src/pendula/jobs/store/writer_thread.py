"""The line of callers, and the one thread that serves it: nobody else ever begins or ends a transaction.

Signals, and with them Ctrl+C, reach the main thread only, so none can strike between BEGIN and COMMIT. A caller that is
interrupted while it waits leaves the line; if its work has begun already, whether it was done is unknown to it.

Work that runs foreign code (an effect) is given its turn in the thread of its caller, in a transaction of its own,
while the writer waits; how long it waits is bounded by the one who serves.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from pendula.jobs.store.protocol import EffectWriter, StoreUnusable, Writer
from pendula.jobs.store.turn import Turn, one_process
from pendula.kernel.canonical import Json

log = logging.getLogger("pendula.jobs.store")

T = TypeVar("T")

TOGETHER_MOST = 256  # callers served by one transaction
NOTHING: Mapping[str, Json] = {}


class Call(Generic[T]):
    """One caller's work, `work` or `effect`, and its result. An effect runs in the caller's thread, alone in its
    transaction.
    """

    __slots__ = ("answered", "begun", "done", "effect", "error", "good", "metadata", "result", "turn", "turned", "work")

    def __init__(
        self,
        work: Callable[[Writer], T] | None,
        metadata: Mapping[str, Json] = NOTHING,
        *,
        effect: Callable[[EffectWriter], T] | None = None,
    ) -> None:
        self.work = work
        self.effect = effect
        self.metadata = metadata
        self.begun = threading.Lock()  # whoever takes it first decides: the work begins, or its caller leaves
        self.done = _held_lock()
        if effect is not None:
            self.turned = _held_lock()
            self.answered = _held_lock()
        self.turn: Turn | None = None
        self.good = False
        self.result: T | None = None
        self.error: BaseException | None = None

    @property
    def own(self) -> bool:
        """Whether it has a transaction of its own."""
        return self.effect is not None

    def give(self, turn: Turn) -> None:
        """The writer's part: let the caller run its work."""
        self.turn = turn
        self.turned.release()

    def take(self) -> None:
        """The caller's part: wait for the turn, run the work. Whatever it raises is raised here and nowhere else."""
        try:
            self.turned.acquire()
            if self.turn is not None:
                assert self.effect is not None
                with one_process("an effect"), self.turn.entered():
                    self.result = self.effect(self.turn)
                self.good = True
        finally:
            self.answered.release()

    def finish(self) -> None:
        """The writer's part: whoever waits goes on."""
        if self.own and self.turn is None:
            self.turned.release()
        self.done.release()


class WriterThread:
    """Serves whoever stands in line, many with one call of `serve`; it begins with the first and ends with `close`."""

    def __init__(self, serve: Callable[[list[Call[Any]]], None], closed: Callable[[], BaseException]) -> None:
        """`closed` makes what is raised to those who come too late."""
        self._serve = serve
        self._closed = closed
        self._line: SimpleQueue[Call[Any]] = SimpleQueue()
        self._next: Call[Any] | None = None  # taken from the line, not yet served
        self._last: Call[Any] = Call(lambda _: None, NOTHING)  # stands behind the last one who is served
        self._alone = threading.Lock()
        self._ident: int | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    def __len__(self) -> int:
        """How many stand in line."""
        return self._line.qsize() + (self._next is not None)

    @property
    def is_current(self) -> bool:
        """Whether it is this thread that asks."""
        return self._ident == threading.get_ident()

    def ask(self, call: Call[T]) -> T:
        """Stand in line, and return when the work is durable. Raises what the work raises."""
        try:
            self._put(call)
            if call.own:
                call.take()
            call.done.acquire()
        except BaseException:
            call.begun.acquire(blocking=False)
            raise
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[return-value]

    def close(self) -> None:
        """Serve all who stand in line now, and end."""
        if self._ident is None:
            self._ended = True
            return
        self._line.put(self._last)
        thread = self._thread
        if thread is not None:
            thread.join()

    # Inside

    def _put(self, call: Call[Any]) -> None:
        self._line.put(call)
        # Looked at after joining: either we see that it is over, or whoever ends it sees us.
        if self._ended and call.begun.acquire(blocking=False):
            raise self._closed()
        if self._ident is None:
            self._start()

    def _start(self) -> None:
        # An interrupt may leave a thread behind that nobody knows of, and another may be started: one of them serves.
        thread = threading.Thread(target=self._run, name="pendula-jobs-writer", daemon=True)
        thread.start()

    def _run(self) -> None:
        if not self._alone.acquire(blocking=False):
            return
        self._thread = threading.current_thread()
        self._ident = threading.get_ident()
        try:
            while not self._ended and (group := self._group()):
                self._serve_all(group)
        finally:
            self._ended = True
            self._refuse_all()

    def _serve_all(self, group: list[Call[Any]]) -> None:
        try:
            self._serve(group)
        except BaseException:
            log.exception("a transaction was broken off")
            for call in group:
                call.error = StoreUnusable("The transaction was broken off; look before you try again")
        finally:
            for call in group:
                call.finish()

    def _group(self) -> list[Call[Any]]:
        """Who is served next: one with work of its own, or as many others as stand there; nobody at the end."""
        group: list[Call[Any]] = []
        while len(group) < TOGETHER_MOST:
            call = self._taken(wait=not group)
            if call is None:
                break
            if group and (call.own or call is self._last):
                self._next = call
                break
            if call is self._last:
                break
            if call.begun.acquire(blocking=False):
                group.append(call)
                if call.own:
                    break
        return group

    def _taken(self, *, wait: bool) -> Call[Any] | None:
        if self._next is not None:
            call, self._next = self._next, None
            return call
        try:
            return self._line.get(block=wait)
        except Empty:
            return None

    def _refuse_all(self) -> None:
        while (call := self._taken(wait=False)) is not None:
            if call.begun.acquire(blocking=False):
                call.error = self._closed()
                call.finish()


def _held_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock
