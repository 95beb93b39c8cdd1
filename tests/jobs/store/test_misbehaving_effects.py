"""Misbehaving effects: damage to the transaction, the thread or the store affects only the effect itself."""

import asyncio
import contextvars
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.messages import Job
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.protocol import (
    EffectTooLong,
    StatementRefused,
    StoreUnusable,
    TransactionGone,
    WriteInsideEffect,
    Writer,
)
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.effects import EffectFailed, Transaction, once
from pendula.jobs.worker.handlers import Context, Done
from pendula.jobs.worker.worker import Worker
from pendula.kernel.canonical import Json
from tests.jobs.stores import Clock
from tests.jobs.workers import MEMORY, decays

TABLE = "CREATE TABLE notes (key TEXT PRIMARY KEY) STRICT"
Effect = Callable[[Transaction], Json]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Scheduler]:
    with Scheduler(Calls(SqliteStore(tmp_path / "jobs.db", effect_seconds=0.2), Policy(), Clock())) as client:
        client.calls.store.write(lambda tx: tx.execute(TABLE))
        yield client


def delivered(client: Scheduler) -> Job:
    client.enqueue(**MEMORY)
    [job] = client.pull(worker_id="w").jobs
    return job


def notes(client: Scheduler) -> list[str]:
    store = client.calls.store
    assert isinstance(store, SqliteStore)
    with closing(sqlite3.connect(store.path)) as look:
        return [key for (key,) in look.execute("SELECT key FROM notes ORDER BY key")]


def note(transaction: Transaction, key: str = "good") -> None:
    transaction.execute("INSERT INTO notes VALUES (?)", [key])


def assert_nothing_of_it(client: Scheduler, job: Job) -> None:
    """Nothing was written, the job can be retried, and the store serves the next call."""
    assert notes(client) == []
    assert client.calls.store.read(lambda look: look.effect(job.idempotency_key)) is None
    assert once(client.calls, job, note) is None
    assert notes(client) == ["good"]
    assert check(client.calls.store) == []


# Values with side effects


class Made:
    """A value that is computed when it is stored."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make

    def __conform__(self, _: object) -> str:
        return str(self._make())


@pytest.mark.req("JOB-POL-4")
def test_a_slow_value_does_not_block_the_store(client: Scheduler) -> None:
    job = delivered(client)
    served = threading.Event()
    stored: list[bool] = []

    def write() -> None:
        client.calls.store.write(lambda _: None)
        served.set()

    def effect(transaction: Transaction) -> Json:
        threading.Thread(target=write).start()
        with suppress(EffectTooLong):
            transaction.execute("INSERT INTO notes VALUES (?)", [Made(lambda: stored.append(served.wait(240)))])
        return None

    with pytest.raises(EffectTooLong):
        once(client.calls, job, effect)

    assert stored == [True]
    assert_nothing_of_it(client, job)


def test_a_value_can_be_computed_from_the_transaction(client: Scheduler) -> None:
    def effect(transaction: Transaction) -> Json:
        count = Made(lambda: transaction.execute("SELECT count(*) FROM notes")[0][0])
        transaction.execute("INSERT INTO notes VALUES (:key)", {"key": count})
        return None

    once(client.calls, delivered(client), effect)

    assert notes(client) == ["0"]


@pytest.mark.req("JOB-POL-4")
def test_a_nested_call_on_one_transaction_is_rejected_and_does_not_deadlock(client: Scheduler) -> None:
    job = delivered(client)

    def effect(transaction: Transaction) -> Json:
        within = Made(lambda: transaction._tx.execute("SELECT 1"))
        transaction._tx.execute("INSERT INTO notes VALUES (?)", [within])
        return None

    with pytest.raises(StatementRefused):
        once(client.calls, job, effect)

    assert_nothing_of_it(client, job)


def test_an_effect_cannot_read_settings_of_the_writing_connection(client: Scheduler) -> None:
    store = client.calls.store
    assert isinstance(store, SqliteStore)
    job = delivered(client)

    with pytest.raises(WriteInsideEffect):
        once(client.calls, job, lambda _: store.settings())

    assert_nothing_of_it(client, job)


def test_a_value_that_cannot_be_stored_is_rejected(client: Scheduler) -> None:
    job = delivered(client)

    with pytest.raises(StatementRefused, match="A value of type object cannot be stored"):
        once(client.calls, job, lambda transaction: note(transaction, object()))  # type: ignore[arg-type]

    assert_nothing_of_it(client, job)


# Effects that end the transaction


def ends_it(transaction: Transaction) -> Json:
    note(transaction, "a")
    with suppress(TransactionGone):
        transaction.execute("INSERT OR ROLLBACK INTO notes VALUES ('a')")
    return "as if nothing were wrong"


def ends_it_and_goes_on(transaction: Transaction) -> Json:
    ends_it(transaction)
    with suppress(TransactionGone):
        note(transaction, "outside of any transaction")
    with suppress(TransactionGone):
        transaction.change_object("outside", state="stale")
    with suppress(TransactionGone):
        transaction.enqueue(**MEMORY, idempotency_key="outside")
    return "as if nothing were wrong"


@pytest.mark.req("JOB-POL-4")
@pytest.mark.parametrize("effect", [ends_it, ends_it_and_goes_on])
def test_an_effect_that_ends_its_transaction_is_not_applied_even_if_it_continues(
    client: Scheduler, effect: Effect
) -> None:
    job = delivered(client)
    before = client.audit().events

    with pytest.raises(TransactionGone):
        once(client.calls, job, effect)

    assert client.audit().events == before
    assert client.metrics().jobs.queued == 0
    assert_nothing_of_it(client, job)


@pytest.mark.req("JOB-POL-4")
def test_a_full_disk_within_an_effect_cannot_be_swallowed(client: Scheduler) -> None:
    job = delivered(client)
    store = client.calls.store
    assert isinstance(store, SqliteStore)
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 4}")

    def fills(transaction: Transaction) -> Json:
        note(transaction, "a")
        for number in range(100):
            with suppress(sqlite3.Error, TransactionGone):
                note(transaction, f"{number}" * 9000)
        return "as if nothing were wrong"

    with pytest.raises((EffectFailed, TransactionGone)):
        once(client.calls, job, fills)
    store._connection.execute(f"PRAGMA max_page_count = {1 << 30}")

    assert_nothing_of_it(client, job)


# Effects that call the store


@pytest.mark.req("JOB-POL-4")
@pytest.mark.parametrize(
    "call",
    [
        lambda client, job: client.defer("memory", "m", "verify"),
        lambda client, job: client.pull(worker_id="w"),
        lambda client, job: client.pull(worker_id="w", wait_ms=60_000),
        lambda client, job: client.ack(job.job_id, result="succeeded"),
        lambda client, job: client.renew(job.job_id, worker_id="w", lease_token=job.lease_token),
        lambda client, job: once(client.calls, job, lambda _: None),
        lambda client, job: contextvars.Context().run(client.defer, "memory", "m", "verify"),
        lambda client, job: asyncio.run(asyncio.to_thread(client.defer, "memory", "m", "verify")),
        lambda client, job: client.close(),
    ],
    ids=["defer", "pull", "waiting", "ack", "renew", "once", "no context", "inherited context", "close"],
)
def test_a_store_call_inside_an_effect_is_rejected_at_once(
    client: Scheduler, call: Callable[[Scheduler, Job], object]
) -> None:
    job = delivered(client)
    codes: list[str] = []

    def effect(transaction: Transaction) -> Json:
        with pytest.raises(WriteInsideEffect) as refused:
            call(client, job)
        codes.append(refused.value.code)
        note(transaction, "good")
        return len(client.list().jobs)

    assert once(client.calls, job, effect) == 1
    assert codes == ["write_inside_effect"]
    assert notes(client) == ["good"]
    assert check(client.calls.store) == []


def test_another_store_on_the_same_file_is_the_same_store(client: Scheduler) -> None:
    job = delivered(client)
    store = client.calls.store
    assert isinstance(store, SqliteStore)
    other = Scheduler(Calls(SqliteStore(store.path), Policy(), Clock()))

    def effect(_: Transaction) -> Json:
        with pytest.raises(WriteInsideEffect):
            other.defer("memory", "m", "verify")
        return None

    once(client.calls, job, effect)
    other.defer("memory", "m", "verify")
    other.close()


def test_a_heartbeat_inside_an_effect_does_not_cost_the_lease(client: Scheduler) -> None:
    client.enqueue(**MEMORY)

    def decay(context: Context) -> Done:
        def effect(transaction: Transaction) -> Json:
            with pytest.raises(WriteInsideEffect):
                context.heartbeat()
            return "done"

        return Done(outcome=str(context.once(effect)))

    tally = Worker(client, decays(decay), worker_id="w", max_jobs=1).run()

    assert tally.succeeded == 1
    assert client.list().jobs[0].outcome == "done"


# Effects that are slow or never return


@pytest.mark.req("JOB-STO-5")
def test_an_effect_that_sleeps_loses_its_transaction_and_others_continue(client: Scheduler) -> None:
    job = delivered(client)
    asleep, wake = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def sleeps(transaction: Transaction) -> Json:
        note(transaction, "a")
        asleep.set()
        wake.wait(240)
        with pytest.raises(EffectTooLong):
            note(transaction, "b")
        return "as if nothing were wrong"

    def slow() -> None:
        try:
            once(client.calls, job, sleeps)
        except BaseException as error:
            raised.append(error)

    sleeping = threading.Thread(target=slow)
    sleeping.start()
    assert asleep.wait(240)
    client.defer("memory", "other", "verify")
    wake.set()
    sleeping.join(240)

    assert [type(error) for error in raised] == [EffectTooLong]
    assert_nothing_of_it(client, job)


def test_an_endless_statement_is_interrupted(client: Scheduler) -> None:
    job = delivered(client)
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    with pytest.raises(EffectTooLong):
        once(client.calls, job, lambda transaction: str(transaction.execute(endless)))

    assert_nothing_of_it(client, job)


def test_a_transaction_cannot_be_used_after_its_effect(client: Scheduler) -> None:
    job = delivered(client)
    kept: list[Transaction] = []

    once(client.calls, job, kept.append)

    with pytest.raises(TransactionGone):
        note(kept[0], "late")
    assert notes(client) == []


# Effects that raise


@pytest.mark.parametrize(
    "raised", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), MemoryError(), ValueError("x")]
)
def test_an_exception_of_an_effect_is_raised_to_its_caller_only(client: Scheduler, raised: BaseException) -> None:
    job = delivered(client)
    inside, go_on = threading.Event(), threading.Event()
    answers: list[Any] = []

    def effect(transaction: Transaction) -> Json:
        note(transaction, "a")
        inside.set()
        go_on.wait(240)
        raise raised

    def tried() -> None:
        try:
            once(client.calls, job, effect)
        except BaseException as error:
            answers.append(error)

    threads = [threading.Thread(target=tried)]
    threads[0].start()
    assert inside.wait(240)
    threads += [threading.Thread(target=client.defer, args=("memory", f"m{n}", "verify")) for n in range(3)]
    for thread in threads[1:]:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join(240)

    assert answers == [raised]
    assert client.metrics().jobs.queued == 3
    assert_nothing_of_it(client, job)


def test_an_effect_that_swallows_an_interrupt_is_not_applied(
    client: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pendula.jobs.store.tables.writer import SqliteWriter

    job = delivered(client)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    def swallows(transaction: Transaction) -> Json:
        with suppress(KeyboardInterrupt):
            transaction.change_object("half", state="stale")
        return "as if nothing were wrong"

    with monkeypatch.context() as patched:
        patched.setattr(SqliteWriter, "put_object", interrupted)
        with pytest.raises(EffectFailed):
            once(client.calls, job, swallows)

    assert_nothing_of_it(client, job)


# The thread of an effect


def test_an_effect_sees_context_variables_and_thread_locals_of_its_job(client: Scheduler) -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")
    local = threading.local()
    started = threading.Barrier(8, timeout=240)
    seen: list[tuple[str, str, int]] = []

    def work(job: Job) -> None:
        mine = job.job_id
        name.set(mine)
        local.name = mine
        with closing(sqlite3.connect(":memory:")) as own:
            started.wait(240)
            once(client.calls, job, lambda _: seen.append((name.get(), local.name, len(list(own.iterdump())))))

    for number in range(8):
        client.defer("memory", f"m{number}", "verify")
    jobs = client.pull(worker_id="w", limit=8).jobs
    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)

    assert sorted(seen) == sorted((job.job_id, job.job_id, 2) for job in jobs)


# Closing the store


def test_close_serves_the_queued_callers(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "jobs.db")
    inside, go_on = threading.Event(), threading.Event()
    answers: list[object] = []

    def hold(_: Writer) -> str:
        inside.set()
        go_on.wait(240)
        return "first"

    threads = [threading.Thread(target=lambda: answers.append(store.write(hold)))]
    threads[0].start()
    assert inside.wait(240)
    threads += [threading.Thread(target=lambda: answers.append(store.write(lambda _: "second"))) for _ in range(3)]
    for thread in threads[1:]:
        thread.start()
    while len(store._writer_thread) < 3:
        pass
    closing_it = threading.Thread(target=store.close)
    closing_it.start()
    go_on.set()
    for thread in (*threads, closing_it):
        thread.join(240)

    assert sorted(map(str, answers)) == ["first", "second", "second", "second"]
    with pytest.raises(StoreUnusable):
        store.write(lambda _: None)
