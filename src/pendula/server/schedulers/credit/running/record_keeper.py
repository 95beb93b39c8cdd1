"""The thread that writes to the store of runs, beside the event loop, and never in the way of a run.

Commands and questions go first, in order: the creation of a run never waits behind measurements. What is written down
of runs waits merged: of each run its newest record, bottlenecks and list of files, and everything measured since, in
one transaction for all runs. What fails is logged and counted; a run goes on without it. Without a store nothing is
written, and what could only come from there is refused.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

import structlog
from msgspec.structs import replace

from pendula.credit.served.bottlenecks import Bottleneck
from pendula.credit.served.records import Record
from pendula.credit.served.series import Measured
from pendula.credit.served.store import Artifact, Store, Unwritten
from pendula.kernel.canonical import Json
from pendula.kernel.errors import PendulaError, WorldBroken

T = TypeVar("T")

# A command waits for one transaction at most: so many rows take a few hundredths of a second.
ROWS_AT_ONCE = 5_000
# Measured values of one run that wait while the disk takes nothing: two hours of a run with one equivalent.
MEASURED_MOST = 50_000

log = structlog.get_logger("pendula.server")


class StoreDisabled(WorldBroken):
    """There is no store: SIMULATOR_DB_ENABLED is off."""

    code = "simulator_store_disabled"


class RecordKeeper:
    """Owns the one thread that touches the store."""

    def __init__(self, dropped: Callable[[int], object] = lambda _: None) -> None:
        """`dropped` hears how many measurements were given up because too many waited."""
        self._dropped = dropped
        self._changed = threading.Condition()
        self._questions: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._unwritten: dict[str, Unwritten] = {}  # the run that waits longest first
        self._open = True
        self._store: Store | None = None
        self.failures = 0
        self._failing = False
        self._thread = threading.Thread(target=self._work, name="pendula-simulator-store", daemon=True)
        self._thread.start()

    async def open(self, make: Callable[[], Store]) -> None:
        """Raises `SimulatorStoreUnusable`."""
        self._store = await self._ask(make)

    @property
    def there(self) -> bool:
        return self._store is not None

    async def ask(self, question: Callable[[Store], T], *, of: str | None = None) -> T:
        """What the store answers, before anything that waits to be written, but after what waits of the run `of`;
        raises what goes wrong."""
        store = self._store
        if store is None:
            raise StoreDisabled("Nothing is stored here, because SIMULATOR_DB_ENABLED is off")

        def answer() -> T:
            while of is not None and self._take_of(of, store):
                pass
            return question(store)

        return await self._ask(answer)

    async def delete(self, run_id: str) -> None:
        """Remove a run with everything that is kept of it, also what still waits."""
        with self._changed:
            self._unwritten.pop(run_id, None)
        await self.ask(lambda store: store.delete(run_id))

    # Written soon; what goes wrong is logged, and changes nothing else.

    def save(self, record: Record, summary: Json = None) -> None:
        """The record as it is now; a summary that waits stays unless there is another."""
        self._later(record.run_id, lambda waiting: replace(waiting, record=record, summary=summary or waiting.summary))

    def measure(self, run_id: str, found: Iterable[Measured]) -> None:
        self._later(run_id, lambda waiting: self._measured(waiting, list(found)))

    def forget_measured(self, run_id: str) -> None:
        """What the run measured so far, written or not, is not part of it any more."""
        self._later(run_id, lambda waiting: replace(waiting, forget_measured=True, measured=[]))

    def save_bottlenecks(self, run_id: str, found: dict[str, list[Bottleneck]], computed_at: str) -> None:
        self._later(run_id, lambda waiting: replace(waiting, bottlenecks=(found, computed_at)))

    def save_artifacts(self, run_id: str, found: list[Artifact]) -> None:
        self._later(run_id, lambda waiting: replace(waiting, artifacts=found))

    async def close(self) -> None:
        """Finish what waits, then close the store."""
        with self._changed:
            self._open = False
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)
        if self._store is not None:
            store, self._store = self._store, None
            await asyncio.to_thread(store.close)

    async def _ask(self, question: Callable[[], T]) -> T:
        future: Future[T] = Future()
        with self._changed:
            if not self._open:
                raise StoreDisabled("The store of runs is closed")
            self._questions.append((question, future))
            self._changed.notify()
        return await asyncio.wrap_future(future)

    def _later(self, run_id: str, merge: Callable[[Unwritten], Unwritten]) -> None:
        if self._store is None:
            return
        with self._changed:
            self._unwritten[run_id] = merge(self._unwritten.get(run_id) or Unwritten())
            self._changed.notify()

    def _measured(self, waiting: Unwritten, found: list[Measured]) -> Unwritten:
        # In place: a copy for each tick would cost the more the longer the disk takes nothing.
        waiting.measured.extend(found)
        excess = len(waiting.measured) - MEASURED_MOST
        if excess > 0:
            # The oldest, so that what is shown of a run that goes on is not old.
            del waiting.measured[:excess]
            self._dropped(excess)
        return waiting

    # On the thread

    def _work(self) -> None:
        while True:
            with self._changed:
                while self._open and not self._questions and not self._unwritten:
                    self._changed.wait()
                if not self._questions and not self._unwritten:
                    return
                question = self._questions.popleft() if self._questions else None
            if question is not None:
                _answer(*question)
            elif self._store is not None:
                self._take_some(self._store)

    def _take_some(self, store: Store) -> None:
        """Write what waits of the runs that wait longest, in one transaction."""
        taken: dict[str, Unwritten] = {}
        with self._changed:
            left = ROWS_AT_ONCE
            while self._unwritten and left > 0:
                run_id = next(iter(self._unwritten))
                taken[run_id] = self._take(run_id, left)
                left -= taken[run_id].rows
        self._write(taken, store)

    def _take_of(self, run_id: str, store: Store) -> bool:
        """Write what waits of one run, or a part of it; says whether there was anything."""
        with self._changed:
            if run_id not in self._unwritten:
                return False
            taken = self._take(run_id, ROWS_AT_ONCE)
        self._write({run_id: taken}, store)
        return True

    def _take(self, run_id: str, most: int) -> Unwritten:
        waiting = self._unwritten.pop(run_id)
        if len(waiting.measured) <= most:
            return waiting
        # The rest goes to the end of the line.
        self._unwritten[run_id] = Unwritten(measured=waiting.measured[most:])
        return replace(waiting, measured=waiting.measured[:most])

    def _write(self, taken: dict[str, Unwritten], store: Store) -> None:
        try:
            store.write(taken)
        except Exception as trouble:
            if len(taken) > 1:
                # What is wrong with one run must not cost the others.
                for run_id, one in taken.items():
                    self._write({run_id: one}, store)
                return
            self.failures += 1
            if isinstance(trouble, PendulaError):
                # One line for all writes that fail in a row: a full disk fails many a second.
                if not self._failing:
                    log.error("sim.store.failed", code=trouble.code, problem=trouble.message)
                self._failing = True
            else:
                log.exception("sim.store.failed")
        else:
            if self._failing:
                log.warning("sim.store.again", failures=self.failures)
            self._failing = False


def _answer(question: Callable[[], T], future: Future[T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(question())
    except BaseException as trouble:
        future.set_exception(trouble)
