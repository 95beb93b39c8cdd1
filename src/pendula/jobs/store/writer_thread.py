"""The queue of callers and the one thread that serves it, the only one that begins and ends transactions.

Signals, such as Ctrl+C, reach the main thread only, so none can strike between BEGIN and COMMIT. A caller that is
interrupted while it waits leaves the queue; if its work has begun, the caller does not learn whether it was done.

Work that runs user code (an effect) runs in the thread of its caller, in a separate transaction, while the writer
thread waits for a limited time: its turn. It may keep its writer for too long, use it after its end, or end the
transaction with a statement (`INSERT OR ROLLBACK`, a full disk). In each case every further call of the writer is
refused, so that nothing is written outside the transaction.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, cast

from pendula.jobs.model import Actor, Job
from pendula.jobs.reasons import Reason
from pendula.jobs.store.protocol import (
    Effect,
    EffectTooLong,
    EffectWriter,
    ObjectRow,
    StatementRefused,
    StoreUnusable,
    TransactionGone,
    WriteInsideEffect,
    Writer,
)
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("pendula.jobs.store")

GROUP_MOST = 256  # callers served by one transaction
NOTHING: Mapping[str, Json] = {}

_inside: ContextVar["Turn | None"] = ContextVar("pendula_jobs_turn", default=None)
INTERRUPT_SEC = 0.05  # how often a running statement is interrupted


class Turn(EffectWriter):
    """One caller's time with the writer."""

    def __init__(self, writer: EffectWriter, connection: sqlite3.Connection, path: Path, seconds: float) -> None:
        self._writer = writer
        self._connection = connection
        self._path = path
        self._seconds = seconds
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._calling: int | None = None  # the thread that is within a call
        self._over = False
        self._too_long = False
        self._gone = False

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Mark this thread, and what inherits its context, as inside the effect until the turn ends."""
        self._thread = threading.get_ident()
        token = _inside.set(self)
        try:
            yield
        finally:
            _inside.reset(token)
            self._thread = None

    def is_in_this_thread(self) -> bool:
        return not self._over and self._thread == threading.get_ident()

    def is_about(self, path: Path) -> bool:
        return not self._over and self._path == path

    def end(self, *, too_long: bool) -> None:
        """Called by the writer thread: afterwards no other thread uses the connection."""
        self._too_long = too_long
        self._over = True
        while not self._lock.acquire(timeout=INTERRUPT_SEC):
            self._connection.interrupt()
        self._lock.release()

    def failure(self) -> InputRefused | None:
        """Why the turn cannot be committed; None where it can."""
        if self._too_long:
            return EffectTooLong(
                f"The effect ran for more than {self._seconds:g} s; nothing of it was written",
                seconds=self._seconds,
            )
        if self._gone or not self._connection.in_transaction:
            return TransactionGone("The transaction ended within the effect; nothing of it was written")
        return None

    # The calls of an effect, each guarded

    def job(self, job_id: str) -> Job | None:
        return self._guarded(self._writer.job, job_id)

    def object(self, object_type: str, object_id: str) -> ObjectRow | None:
        return self._guarded(self._writer.object, object_type, object_id)

    def is_governed(self, object_type: str, object_id: str) -> bool:
        return self._guarded(self._writer.is_governed, object_type, object_id)

    def effect(self, key: str) -> Effect | None:
        return self._guarded(self._writer.effect, key)

    def put_object(self, row: ObjectRow) -> None:
        self._guarded(self._writer.put_object, row)

    def object_event(
        self,
        job: Job,
        old: Mapping[str, Json],
        new: Mapping[str, Json],
        reason: Reason,
        actor: Actor,
        evidence: Sequence[str] = (),
    ) -> str:
        return self._guarded(self._writer.object_event, job, old, new, reason, actor, evidence=evidence)

    def put_effect(self, effect: Effect) -> None:
        self._guarded(self._writer.put_effect, effect)

    def write_back(self, body: Json) -> None:
        self._guarded(self._writer.write_back, body)

    def execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        return self._guarded(self._writer.execute, statement, values)

    def any_closed(self) -> bool:
        return self._guarded(self._writer.any_closed)

    def is_closed(self, object_type: str, object_id: str) -> bool:
        return self._guarded(self._writer.is_closed, object_type, object_id)

    def by_keys(self, keys: Sequence[str]) -> dict[str, Job]:
        return self._guarded(self._writer.by_keys, keys)

    def waiting(self, object_type: str, object_id: str, action: str) -> Job | None:
        return self._guarded(self._writer.waiting, object_type, object_id, action)

    def used(self, key_hash: bytes) -> bool:
        return self._guarded(self._writer.used, key_hash)

    def any_used(self) -> bool:
        return self._guarded(self._writer.any_used)

    def next_seq(self) -> int:
        return self._guarded(self._writer.next_seq)

    def insert(self, jobs: Sequence[Job], actor: Actor) -> bool:
        return self._guarded(self._writer.insert, jobs, actor)

    def _guarded(self, method: Callable[P, T], *given: P.args, **more: P.kwargs) -> T:
        if self._calling == threading.get_ident():
            # A signal handler or a finalizer may run anything in this thread in the middle of a call.
            raise StatementRefused("A call of the transaction cannot start within another call of it")
        with self._lock:
            self._calling = threading.get_ident()
            try:
                self._refuse()
                return self._watched(lambda: method(*given, **more))
            finally:
                self._calling = None

    def _watched(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except sqlite3.Error as error:
            if self._too_long or not self._connection.in_transaction:
                self._gone = True
                raise cast(InputRefused, self.failure()) from error
            raise
        finally:
            self._gone = self._gone or not self._connection.in_transaction

    def _refuse(self) -> None:
        if self._over and not self._too_long:
            raise TransactionGone("The effect has ended; its transaction cannot be used any more")
        if (failure := self.failure()) is not None:
            raise failure


class one_process:
    """Ends a process that `what` forked and that returns from it: the store and its threads do not work there.

    A class, since a generator would set the traceback of a passing exception, which some exceptions do not allow.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._process = os.getpid()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() == self._process:
            return
        status, message = 1, f"pendula: a process forked in {self._what} returned from it; call os._exit there\n"
        if isinstance(error, SystemExit):
            status, message = error.code if isinstance(error.code, int) else int(error.code is not None), ""
        with suppress(OSError):
            os.write(2, message.encode())
        os._exit(status)


def refuse_inside(path: Path, current: Turn | None) -> None:
    """Raise `WriteInsideEffect` where the caller is inside an effect on the store in this file."""
    turn = _inside.get()
    if (turn is not None and turn.is_about(path)) or (current is not None and current.is_in_this_thread()):
        raise WriteInsideEffect(
            "An effect cannot call the store it is written to, which waits for the effect. Use the transaction "
            "(transaction.enqueue), or make the call before or after the effect"
        )


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
        self.begun = threading.Lock()  # taken by the writer thread to begin the work, or by the caller to leave
        self.done = _held_lock()
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
