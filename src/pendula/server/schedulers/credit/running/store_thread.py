"""The thread of the store, so that neither the event loop nor a run waits for a disk.

Queries come first, in order: creating a run never waits for measurements. Pending writes are merged per run (newest
record, bottlenecks, file list, and all measurements) and written for all runs in one transaction. A failed write is
logged and counted; the run continues. With the store disabled nothing is written, and queries are rejected.
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

# A query waits for at most one transaction; 5 000 rows take a few hundredths of a second.
ROWS_AT_ONCE = 5_000
# Pending measurements of one run while the disk is blocked: two hours of a run with one equivalent.
MEASURED_MOST = 50_000

log = structlog.get_logger("pendula.server")


class StoreDisabled(WorldBroken):
    """The store is disabled (SIMULATOR_DB_ENABLED) or closed."""

    code = "simulator_store_disabled"


class StoreThread:
    """The only thread that uses the store."""

    def __init__(self, on_dropped: Callable[[int], object] = lambda _: None) -> None:
        """`on_dropped` gets the number of measurements that were dropped because too many were pending."""
        self._on_dropped = on_dropped
        self._changed = threading.Condition()
        self._questions: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._unwritten: dict[str, Unwritten] = {}  # longest waiting first
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
    def has_store(self) -> bool:
        return self._store is not None

    async def ask(self, question: Callable[[Store], T], *, of: str | None = None) -> T:
        """Query the store before any pending writes, except those of the run `of`; raises what `question` raises."""
        store = self._store
        if store is None:
            raise StoreDisabled("The store is disabled; set SIMULATOR_DB_ENABLED to enable it")

        def answer() -> T:
            while of is not None and self._write_run(of, store):
                pass
            return question(store)

        return await self._ask(answer)

    async def delete(self, run_id: str) -> None:
        """Delete a run and its pending writes."""
        with self._changed:
            self._unwritten.pop(run_id, None)
        await self.ask(lambda store: store.delete(run_id))

    # Deferred writes: errors are only logged

    def save(self, record: Record, summary: Json = None) -> None:
        """Save the record; without a new summary a pending one stays."""
        self._defer(record.run_id, lambda pending: replace(pending, record=record, summary=summary or pending.summary))

    def measure(self, run_id: str, values: Iterable[Measured]) -> None:
        self._defer(run_id, lambda pending: self._add_measured(pending, list(values)))

    def forget_measured(self, run_id: str) -> None:
        """Delete all measurements of the run, stored or pending."""
        self._defer(run_id, lambda pending: replace(pending, forget_measured=True, measured=[]))

    def save_bottlenecks(self, run_id: str, bottlenecks: dict[str, list[Bottleneck]], computed_at: str) -> None:
        self._defer(run_id, lambda pending: replace(pending, bottlenecks=(bottlenecks, computed_at)))

    def save_artifacts(self, run_id: str, artifacts: list[Artifact]) -> None:
        self._defer(run_id, lambda pending: replace(pending, artifacts=artifacts))

    async def close(self) -> None:
        """Write everything pending, then close the store."""
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

    def _defer(self, run_id: str, merge: Callable[[Unwritten], Unwritten]) -> None:
        if self._store is None:
            return
        with self._changed:
            self._unwritten[run_id] = merge(self._unwritten.get(run_id) or Unwritten())
            self._changed.notify()

    def _add_measured(self, pending: Unwritten, values: list[Measured]) -> Unwritten:
        # In place: copying on each tick would take quadratic time while the disk is blocked.
        pending.measured.extend(values)
        excess = len(pending.measured) - MEASURED_MOST
        if excess > 0:
            # Drop the oldest: pages show the newest.
            del pending.measured[:excess]
            self._on_dropped(excess)
        return pending

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
                self._write_batch(self._store)

    def _write_batch(self, store: Store) -> None:
        """Write the runs that have waited longest, in one transaction."""
        taken: dict[str, Unwritten] = {}
        with self._changed:
            rows = ROWS_AT_ONCE
            while self._unwritten and rows > 0:
                run_id = next(iter(self._unwritten))
                taken[run_id] = self._take(run_id, rows)
                rows -= taken[run_id].rows
        self._write(taken, store)

    def _write_run(self, run_id: str, store: Store) -> bool:
        """Write one batch of a run; returns whether anything was pending."""
        with self._changed:
            if run_id not in self._unwritten:
                return False
            taken = self._take(run_id, ROWS_AT_ONCE)
        self._write({run_id: taken}, store)
        return True

    def _take(self, run_id: str, most: int) -> Unwritten:
        pending = self._unwritten.pop(run_id)
        if len(pending.measured) <= most:
            return pending
        # The rest goes to the end of the queue.
        self._unwritten[run_id] = Unwritten(measured=pending.measured[most:])
        return replace(pending, measured=pending.measured[:most])

    def _write(self, taken: dict[str, Unwritten], store: Store) -> None:
        try:
            store.write(taken)
        except Exception as error:
            if len(taken) > 1:
                # One by one: a fault of one run must not lose the writes of others.
                for run_id, unwritten in taken.items():
                    self._write({run_id: unwritten}, store)
                return
            self.failures += 1
            if isinstance(error, PendulaError):
                # One log line for consecutive failures: a full disk causes many a second.
                if not self._failing:
                    log.error("sim.store.failed", code=error.code, problem=error.message)
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
    except BaseException as error:
        future.set_exception(error)
