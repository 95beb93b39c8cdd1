"""An effect's turn in a transaction: a writer with a time limit, which knows whether its transaction is still open.

An effect runs user code. It may keep its writer for too long, use it after its end, or end the transaction with a
statement (`INSERT OR ROLLBACK`, a full disk). In each case every further call of the writer is refused, so that nothing
is written outside the transaction.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from pendula.jobs.model import Actor, Job
from pendula.jobs.reasons import Reason
from pendula.jobs.store.protocol import (
    Effect,
    EffectTooLong,
    EffectWriter,
    ObjectRow,
    StatementRefused,
    TransactionGone,
    WriteInsideEffect,
)
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused

P = ParamSpec("P")
T = TypeVar("T")

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
