"""A caller's turn in a transaction: a writer that can be taken away, and that knows whether its transaction still is.

An effect runs foreign code. It may keep its writer for too long, use it when it is over, or end the transaction with a
statement of its own (`INSERT OR ROLLBACK`, a full disk). In each case every further call of the writer is refused, so
nothing is ever written outside of the transaction.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from pendula.jobs.store.protocol import EffectTooLong, StatementRefused, TransactionGone, WriteInsideEffect, Writer
from pendula.kernel.errors import InputRefused

_inside: ContextVar["Turn | None"] = ContextVar("pendula_jobs_turn", default=None)
INTERRUPT_SEC = 0.05  # how often a statement that goes on is told to stop


class Turn:
    """One caller's time with the writer; what is not a method of its own is one of the writer's."""

    def __init__(self, writer: Writer, connection: sqlite3.Connection, path: Path, seconds: float) -> None:
        self._writer = writer
        self._connection = connection
        self._path = path
        self._seconds = seconds
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._calling: int | None = None  # the thread that is in the middle of a call
        self._over = False
        self._too_long = False
        self._gone = False

    @contextmanager
    def entered(self) -> Iterator[Writer]:
        """This thread, and whatever inherits its context, is inside until the turn is over."""
        self._thread = threading.get_ident()
        token = _inside.set(self)
        try:
            yield cast(Writer, self)
        finally:
            _inside.reset(token)
            self._thread = None

    def is_in_this_thread(self) -> bool:
        return not self._over and self._thread == threading.get_ident()

    def is_about(self, path: Path) -> bool:
        return not self._over and self._path == path

    def end(self, *, too_long: bool) -> None:
        """The writer thread's part: from here on nobody else touches the connection."""
        self._too_long = too_long
        self._over = True
        while not self._lock.acquire(timeout=INTERRUPT_SEC):
            self._connection.interrupt()
        self._lock.release()

    def trouble(self) -> InputRefused | None:
        """Why nothing of the turn can be committed, if so."""
        if self._too_long:
            return EffectTooLong(
                f"The effect held the store for more than {self._seconds:g} s; nothing of it was written",
                seconds=self._seconds,
            )
        if self._gone or not self._connection.in_transaction:
            return TransactionGone("The transaction was ended within the effect; nothing of it was written")
        return None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._writer, name)

        def called(*given: Any, **more: Any) -> Any:
            if self._calling == threading.get_ident():
                # A signal, or what is thrown away in the middle of a call, may run anything in this thread.
                raise StatementRefused("A call of the transaction cannot make another one of the same transaction")
            with self._lock:
                self._calling = threading.get_ident()
                try:
                    self._refuse()
                    return self._watched(lambda: method(*given, **more))
                finally:
                    self._calling = None

        return called

    def _watched(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except sqlite3.Error as trouble:
            if self._too_long or not self._connection.in_transaction:
                self._gone = True
                raise cast(InputRefused, self.trouble()) from trouble
            raise
        finally:
            self._gone = self._gone or not self._connection.in_transaction

    def _refuse(self) -> None:
        if self._over and not self._too_long:
            raise TransactionGone("The effect is over; its transaction cannot be used any more")
        if (trouble := self.trouble()) is not None:
            raise trouble


def refuse_inside(path: Path, current: Turn | None) -> None:
    """Raise `WriteInsideEffect` where the caller is inside an effect on the store in this file."""
    turn = _inside.get()
    if (turn is not None and turn.is_about(path)) or (current is not None and current.is_in_this_thread()):
        raise WriteInsideEffect(
            "An effect cannot call the store it is written to: everybody would wait for it. Use the transaction "
            "(transaction.enqueue), or make the call before or after the effect"
        )
