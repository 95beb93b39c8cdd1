"""The queue of callers and the one thread that serves it, the only one that begins and ends transactions.

Signals, such as Ctrl+C, reach the main thread only, so none can strike between BEGIN and COMMIT. A caller that is
interrupted while it waits leaves the queue; if its work has begun, the caller does not learn whether it was done.

Work that runs user code (an effect) runs in the thread of its caller, in a separate transaction, while the writer
thread waits for a limited time.
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

GROUP_MOST = 256  # callers served by one transaction
NOTHING: Mapping[str, Json] = {}


class Call(Generic[T]):
    """One caller's work, `work` or `effect`, and its result. An effect runs in the caller's thread, alone in its
    transaction.
    """

    __slots__ = (
        "answered", "begun", "done", "effect", "error", "good", "metadata", "result", "told", "turn", "turned", "work",
    )  # fmt: skip

    def __init__(
        self,
        work: Callable[[Writer], T] | None,
        metadata: Mapping[str, Json] = NOTHING,
        *,
        effect: Callable[[EffectWriter], T] | None = None,
        told: Callable[["Call[T]"], None] | None = None,
    ) -> None:
        """`told` is called in the writer thread at the end, for a caller that does not wait."""
        self.work = work
        self.effect = effect
        self.metadata = metadata
        self.begun = threading.Lock()  # taken by the writer thread to begin the work, or by the caller to leave
        self.done = _held_lock()
        self.told = told
        if effect is not None:
            self.turned = _held_lock()
            self.answered = _held_lock()
        self.turn: Turn | None = None
        self.good = False
        self.result: T | None = None
        self.error: BaseException | None = None

    @property
    def is_effect(self) -> bool:
        """Whether it runs in the caller's thread, in a separate transaction."""
        return self.effect is not None

    def give(self, turn: Turn) -> None:
        """Called by the writer thread: let the caller run its effect."""
        self.turn = turn
        self.turned.release()

    def take(self) -> None:
        """Called by the caller: wait for the turn and run the effect, whose exceptions are raised here only."""
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
        """Called by the writer thread: release the caller."""
        if self.is_effect and self.turn is None:
            self.turned.release()
        self.done.release()
        if self.told is not None:
            self.told(self)


class WriterThread:
    """Serves queued callers, many with one call of `serve`; starts with the first call and ends with `close`."""

    def __init__(self, serve: Callable[[list[Call[Any]]], None], closed: Callable[[], BaseException]) -> None:
        """`closed` makes the exception for callers after `close`."""
        self._serve = serve
        self._closed = closed
        self._queue: SimpleQueue[Call[Any]] = SimpleQueue()
        self._next: Call[Any] | None = None  # taken from the queue, not yet served
        self._last: Call[Any] = Call(lambda _: None, NOTHING)  # marks the end of the queue
        self._alone = threading.Lock()
        self._ident: int | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    def __len__(self) -> int:
        """How many callers are queued."""
        return self._queue.qsize() + (self._next is not None)

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread."""
        return self._ident == threading.get_ident()

    def submit(self, call: Call[T]) -> T:
        """Queue the call and return when its work is durable. Raises what the work raises."""
        try:
            self._put(call)
            if call.is_effect:
                call.take()
            call.done.acquire()
        except BaseException:
            call.begun.acquire(blocking=False)
            raise
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[return-value]

    def queue(self, call: Call[Any]) -> None:
        """Queue a call whose caller does not wait."""
        self._put(call)

    def close(self) -> None:
        """Serve all queued callers, and end."""
        if self._ident is None:
            self._ended = True
            return
        self._queue.put(self._last)
        thread = self._thread
        if thread is not None:
            thread.join()

    # Inside

    def _put(self, call: Call[Any]) -> None:
        self._queue.put(call)
        # Checked after queueing: either this sees the end, or the ending thread sees this call.
        if self._ended and call.begun.acquire(blocking=False):
            raise self._closed()
        if self._ident is None:
            self._start()

    def _start(self) -> None:
        # An interrupt may leave an unknown thread behind, and another may be started: only one of them serves.
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
            log.exception("a transaction was aborted")
            for call in group:
                call.error = StoreUnusable("The transaction was aborted; check what was stored before you try again")
        finally:
            for call in group:
                call.finish()

    def _group(self) -> list[Call[Any]]:
        """The calls to serve next: one effect, or as many others as are queued; none at the end."""
        group: list[Call[Any]] = []
        while len(group) < GROUP_MOST:
            call = self._taken(wait=not group)
            if call is None:
                break
            if group and (call.is_effect or call is self._last):
                self._next = call
                break
            if call is self._last:
                break
            if call.begun.acquire(blocking=False):
                group.append(call)
                if call.is_effect:
                    break
        return group

    def _taken(self, *, wait: bool) -> Call[Any] | None:
        if self._next is not None:
            call, self._next = self._next, None
            return call
        try:
            return self._queue.get(block=wait)
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
