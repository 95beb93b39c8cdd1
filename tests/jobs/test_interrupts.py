"""Ctrl+C anywhere in a call leaves the store usable for the other threads of the process."""

import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.background import Gate
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.protocol import StoreUnusable
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.effects import once
from tests.jobs.stores import opened
from tests.kernel.interrupting import everywhere, interrupted_at

# An interrupt in a callback of the garbage collector is ignored, and half-open resources are released.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
numbers = count()


def defer(scheduler: Scheduler) -> None:
    scheduler.defer("memory", f"m{next(numbers)}", "verify")


def pull(scheduler: Scheduler) -> None:
    scheduler.pull(worker_id="w", limit=1, lease_sec=3600)


def pull_that_waits(scheduler: Scheduler) -> None:
    scheduler.pull(worker_id="w", actions=["decay"], wait_ms=1)


def deliver(scheduler: Scheduler) -> None:
    defer(scheduler)
    for job in scheduler.pull(worker_id="w", limit=1, lease_sec=3600).jobs:
        once(scheduler.calls, job, lambda transaction: transaction.change_object("seen", state="seen").version)
        scheduler.ack(job.job_id, result="succeeded", lease_token=job.lease_token)


@pytest.mark.req("JOB-STO-5")
@pytest.mark.parametrize(("work", "step"), [(defer, 1), (pull, 1), (pull_that_waits, 3), (deliver, 7)])
def test_after_an_interrupt_anywhere_in_a_call_later_writes_succeed(
    tmp_path: Path, work: Callable[[Scheduler], None], step: int
) -> None:
    scheduler = Scheduler.open(tmp_path / "jobs.db")

    places = everywhere(lambda: work(scheduler), lambda: defer(scheduler), step=step)

    assert places > 20
    defer(scheduler)
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-STO-5")
def test_an_interrupt_anywhere_in_a_transaction_releases_file_and_turnstile(
    tmp_path: Path,
) -> None:
    """In the writing thread: it gets no signals, but an exception can be raised in any thread from outside."""
    scheduler, _ = opened(tmp_path)
    other, _ = opened(tmp_path)
    store = scheduler.calls.store
    assert isinstance(store, SqliteStore)
    serve: Any = store._transaction

    n, interrupted = 1, True

    def transaction(calls: Any) -> None:
        nonlocal interrupted
        ends: list[BaseException | None] = []

        def work() -> None:
            try:
                serve(calls)
                ends.append(None)
            except BaseException as error:
                ends.append(error)

        interrupted = interrupted_at(n, work)
        end = ends[0] if ends else KeyboardInterrupt()
        if end is not None:
            raise end

    store._transaction = transaction  # type: ignore[method-assign]
    while interrupted:
        with suppress(StoreUnusable, KeyboardInterrupt):
            defer(scheduler)
        assert store._connection.in_transaction is False
        defer(other)
        n += 1

    assert n > 60, "the places of a transaction"
    assert check(store) == []
    scheduler.close()
    other.close()


def test_a_store_can_be_opened_after_an_interrupt_anywhere_in_its_opening(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "jobs.db").close()

    def after() -> None:
        store = SqliteStore(tmp_path / "jobs.db")
        store.write(lambda tx: tx.last_event())
        store.close()

    assert everywhere(lambda: SqliteStore(tmp_path / "jobs.db").close(), after, step=3) > 10


def test_an_opened_gate_stays_open() -> None:
    gate = Gate()
    passed: list[bool] = []
    threads = [threading.Thread(target=lambda: passed.append(gate.wait(240))) for _ in range(8)]
    for thread in threads:
        thread.start()

    assert gate.wait(0) is False
    gate.open()
    gate.open()
    for thread in threads:
        thread.join(240)

    assert passed == [True] * 8
    assert gate.wait(0) is True
