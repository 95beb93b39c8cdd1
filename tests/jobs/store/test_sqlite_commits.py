"""All or nothing: callers share a commit but not their failures; a fault anywhere leaves the store unchanged."""

import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused, messages
from pendula.jobs.messages import Enqueue
from pendula.jobs.model import Actor, Job, Policy
from pendula.jobs.reasons import stated
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.protocol import Listing, ObjectRow, Writer
from pendula.jobs.store.sqlite import SqliteStore, StoreUnusable
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.effects import EffectFailed, once
from tests.jobs.stores import Clock, opened
from tests.jobs.watched_connections import everything, failing_at, trouble, watched, watching
from tests.waiting import SECONDS, joined

__all__ = ["watched"]

JOB: dict[str, Any] = {"object_type": "memory", "action": "verify"}
ANN = Actor("user", "ann")
Setup = Callable[[Scheduler, Clock], Callable[[], Any]]


def sqlite_of(scheduler: Scheduler) -> SqliteStore:
    store = scheduler.calls.store
    assert isinstance(store, SqliteStore)
    return store


# Sharing a commit


def together(store: SqliteStore, works: list[Callable[[], object]]) -> list[object]:
    """Run each work in its own thread, so that all of them queue behind one that waits for them."""
    done: list[object] = [None] * len(works)

    def run(number: int) -> None:
        try:
            done[number] = works[number]()
        except BaseException as error:
            done[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]

    def wait_for_all(tx: Writer) -> None:
        for number, thread in enumerate(threads, 1):
            thread.start()
            # No signal shows that a caller has queued, so each one queues before the next one starts.
            while len(store._writer_thread) < number:
                time.sleep(0.0005)

    store.write(wait_for_all)
    joined(*threads)
    return done


@pytest.mark.req("JOB-STO-6")
def test_sixty_four_callers_share_one_commit(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    store = sqlite_of(scheduler)

    answers = together(
        store,
        [lambda number=number: scheduler.enqueue(**JOB, object_id=f"m{number}") for number in range(64)],  # type: ignore[misc]
    )

    stored = [answer for answer in answers if isinstance(answer, messages.Enqueued)]
    assert store.commits == 1
    assert [answer.job.object_id for answer in stored] == [f"m{number}" for number in range(64)]
    assert len({answer.job.job_id for answer in stored}) == 64
    assert check(store) == []
    scheduler.close()


class Spoiled(Exception):
    pass


def part(scheduler: Scheduler, number: int, *, spoiled: bool) -> Callable[[], object]:
    """A part of a commit that touches everything it can, and optionally fails at its end."""

    def work(tx: Writer) -> Job:
        found = scheduler.calls.store_in(
            tx, Enqueue("memory", f"m{number}", "verify", None, number % 3, 3, None, None, "default"), ANN
        )
        assert isinstance(found, tuple)
        job = found[0]
        tx.put_object(ObjectRow("memory", f"m{number}", None, 1, None))
        tx.object_event(job, {"next_action_at": None}, {"next_action_at": None}, stated("touched"), ANN)
        tx.alert(f"alert:{number}", {"number": number})
        old = tx.job(f"job_{1:012d}")
        assert old is not None
        tx.change(old, old, ("status",), stated(f"seen by {number}"), ANN)
        if spoiled:
            raise Spoiled
        return job

    return lambda: scheduler.calls.store.write(work, metadata={"request_id": f"r{number}"})


@pytest.mark.req("JOB-API-4", "JOB-AUD-1")
@pytest.mark.parametrize("spoiled", [{0}, {5}, {2, 3}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5}, set()], ids=str)
def test_the_failure_of_one_caller_rolls_back_only_its_own_part(tmp_path: Path, spoiled: set[int]) -> None:
    scheduler, _ = opened(tmp_path)
    store = sqlite_of(scheduler)
    scheduler.enqueue(**JOB, object_id="first")
    commits = store.commits

    answers = together(store, [part(scheduler, number, spoiled=number in spoiled) for number in range(6)])

    good = [number for number in range(6) if number not in spoiled]
    jobs = [job for job in answers if isinstance(job, Job)]
    events = scheduler.audit().events
    assert [isinstance(answer, Spoiled) for answer in answers] == [number in spoiled for number in range(6)]
    assert [job.object_id for job in jobs] == [f"m{number}" for number in good]
    assert [job.seq for job in jobs] == list(range(2, 2 + len(good)))
    assert [event.metadata.get("request_id") for event in events[1:]] == [f"r{n}" for n in good for _ in range(3)]
    assert scheduler.metrics().alerts_waiting == len(good)
    for number in range(6):
        row = store.read(lambda look, name=f"m{number}": look.object("memory", name))  # type: ignore[misc]
        assert (row is not None) == (number in good)
    assert store.commits - commits == (1 if good else 0)
    assert check(store) == []
    scheduler.close()


@pytest.mark.usefixtures("watched")
def test_a_file_error_is_raised_to_every_caller_of_the_commit(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    store = sqlite_of(scheduler)
    failing = True

    def watcher(connection: sqlite3.Connection, sql: str, parameters: Any) -> None:
        nonlocal failing
        if sql == "COMMIT" and failing and connection.total_changes:
            failing = False
            raise trouble()

    with watching(watcher):
        answers = together(
            store,
            [lambda number=number: scheduler.enqueue(**JOB, object_id=f"m{number}") for number in range(3)],  # type: ignore[misc]
        )

    assert [type(answer) for answer in answers] == [StoreUnusable] * 3
    assert store.read(lambda look: look.jobs(Listing(10))) == []
    assert scheduler.enqueue(**JOB, object_id="later").deduplicated is False
    assert check(store) == []
    scheduler.close()


@pytest.mark.usefixtures("interruptible")
def test_a_caller_interrupted_in_the_queue_does_not_stop_the_queue(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    store = sqlite_of(scheduler)
    leading, go_on = threading.Event(), threading.Event()
    waiting = threading.get_ident()

    def lead(tx: Writer) -> None:
        leading.set()
        assert go_on.wait(SECONDS)

    def interrupt() -> None:
        assert leading.wait(SECONDS)
        while not store._writer_thread:
            time.sleep(0.0005)
        # To the waiting thread itself: a signal to the process can reach another thread, and come too late.
        signal.pthread_kill(waiting, signal.SIGINT)
        time.sleep(0.01)  # the signal may still be pending; both orders are valid cases
        go_on.set()

    threads = [threading.Thread(target=lambda: store.write(lead)), threading.Thread(target=interrupt)]
    for thread in threads:
        thread.start()
    assert leading.wait(SECONDS)

    with pytest.raises(KeyboardInterrupt):
        scheduler.enqueue(**JOB, object_id="interrupted")
    joined(*threads)
    later = threading.Thread(target=lambda: scheduler.enqueue(**JOB, object_id="later"), daemon=True)
    later.start()
    later.join(240)

    assert not later.is_alive(), "the queue is no longer served"
    assert "later" in {job.object_id for job in scheduler.list().jobs}
    assert check(store) == []
    scheduler.close()


# A fault at every statement


def enqueuing(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    return lambda: scheduler.enqueue(**JOB, object_id="m")


def a_batch(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    scheduler.enqueue(**JOB, object_id="a", idempotency_key="a")
    jobs = [{**JOB, "object_id": name, "idempotency_key": name} for name in "abcb"]
    return lambda: scheduler.enqueue_batch([*jobs, {"object_id": "faulty"}])


def an_atomic_batch(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    return lambda: scheduler.enqueue_batch([{**JOB, "object_id": name} for name in "abc"], atomic=True)


def pulling(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    """The setup includes a lease to reclaim and a job that becomes a dead letter by it."""
    for name, attempts in (("a", 1), ("b", 3)):
        scheduler.enqueue(**JOB, object_id=name, max_attempts=attempts)
    scheduler.pull(worker_id="gone", lease_sec=1)
    scheduler.enqueue(**JOB, object_id="c")
    clock.pass_by(5)
    return lambda: scheduler.pull(worker_id="w")


def held(scheduler: Scheduler, **members: Any) -> dict[str, Any]:
    scheduler.enqueue(**JOB, object_id="m", **members)
    [job] = scheduler.pull(worker_id="w").jobs
    return {"job_id": job.job_id, "worker_id": "w", "lease_token": job.lease_token}


def acking(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    proof = held(scheduler)
    return lambda: scheduler.ack(**proof, result="succeeded", next_action_at=clock.text(3600))


def acking_many(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    entry = {**held(scheduler), "result": "succeeded", "next_action_at": clock.text(3600)}
    return lambda: scheduler.ack_batch([{"job_id": "job_nope", "result": "succeeded"}, entry])


def failing(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    proof = held(scheduler)
    return lambda: scheduler.fail(**proof, error="x")


def dying(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    proof = held(scheduler, max_attempts=1)
    return lambda: scheduler.fail(**proof, error="x")


def renewing(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    proof = held(scheduler)
    return lambda: scheduler.renew(**proof, lease_sec=3600)


def releasing(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    proof = held(scheduler)
    return lambda: scheduler.release(**proof)


def cancelling(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    job_id = scheduler.enqueue(**JOB, object_id="m").job.job_id
    return lambda: scheduler.cancel(job_id, reason="x")


def requeuing(scheduler: Scheduler, clock: Clock) -> Callable[[], Any]:
    proof = held(scheduler, max_attempts=1)
    scheduler.fail(**proof, error="x")
    return lambda: scheduler.requeue(proof["job_id"], reason="x")


CALLS: list[Setup] = [
    enqueuing, a_batch, an_atomic_batch, pulling, acking, acking_many, failing, dying, renewing, releasing, cancelling,
    requeuing,
]  # fmt: skip


@pytest.mark.req("JOB-API-4", "JOB-AUD-1", "JOB-STO-7")
@pytest.mark.parametrize("setup", CALLS, ids=lambda setup: setup.__name__)
@pytest.mark.usefixtures("watched")
def test_a_fault_at_any_statement_changes_nothing(tmp_path: Path, setup: Setup) -> None:
    scheduler, clock = opened(tmp_path)
    path = str(tmp_path / "jobs.db")
    call = setup(scheduler, clock)
    before = everything(path)
    tried = 0
    while True:
        tried += 1
        try:
            with watching(failing_at(tried)):
                call()
        except StoreUnusable:
            assert everything(path) == before
            assert check(sqlite_of(scheduler)) == []
        else:
            break

    assert tried > 5
    assert everything(path) != before
    assert check(sqlite_of(scheduler)) == []
    scheduler.close()


@pytest.mark.req("JOB-AUD-1")
@pytest.mark.parametrize("setup", [setup for setup in CALLS if setup is not renewing], ids=lambda setup: setup.__name__)
@pytest.mark.usefixtures("watched")
def test_a_change_that_cannot_be_audited_does_not_happen(tmp_path: Path, setup: Setup) -> None:
    scheduler, clock = opened(tmp_path)
    path = str(tmp_path / "jobs.db")
    call = setup(scheduler, clock)
    before = everything(path)

    def watcher(connection: sqlite3.Connection, sql: str, parameters: Any) -> None:
        if sql.startswith("INSERT INTO audit"):
            raise trouble()

    with watching(watcher), pytest.raises(StoreUnusable):
        call()

    assert everything(path) == before
    scheduler.close()


# Rejections


@pytest.mark.req("JOB-ENQ-10", "JOB-AUD-5")
def test_an_atomic_batch_with_a_fault_stores_nothing_and_uses_no_number(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    before = everything(str(tmp_path / "jobs.db"))
    jobs: list[Any] = [{**JOB, "object_id": "a"}, {**JOB, "object_id": "b", "priority": "urgent"}]

    with pytest.raises(JobRefused) as refused:
        scheduler.enqueue_batch(jobs, atomic=True)

    assert (refused.value.code, refused.value.status) == ("batch_rejected", 422)
    assert [one["status"] for one in refused.value.refused.details["results"]] == [422, 422]  # type: ignore[union-attr,index,call-overload]
    assert everything(str(tmp_path / "jobs.db")) == before
    scheduler.close()


@pytest.mark.req("JOB-AUD-5", "JOB-PULL-8", "JOB-ENQ-2")
def test_a_call_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, Policy())
    proof = held(scheduler)
    scheduler.ack(**proof, result="succeeded")
    dead = held(scheduler, idempotency_key="k", max_attempts=1)
    scheduler.fail(**dead, error="x")
    later = clock.text(3600)
    scheduler.enqueue(**JOB, object_id="later", run_at=later)
    store = sqlite_of(scheduler)
    commits, before = store.commits, everything(str(tmp_path / "jobs.db"))

    scheduler.pull(worker_id="w")
    scheduler.enqueue(**JOB, object_id="later", run_at=later)
    scheduler.ack(**proof, result="succeeded")
    scheduler.fail(**dead, error="x")
    refusals: list[Callable[[], Any]] = [
        lambda: scheduler.release(**proof),
        lambda: scheduler.renew(**proof),
        lambda: scheduler.cancel(proof["job_id"], reason="x"),
        lambda: scheduler.requeue(proof["job_id"]),
        lambda: scheduler.fail(**proof, error="x"),
        lambda: scheduler.enqueue(**JOB, object_id="other", idempotency_key="k"),
        lambda: scheduler.enqueue(**JOB, object_id="past", run_at="2026-01-01T00:00:00Z"),
    ]
    for refused in refusals:
        with pytest.raises(JobRefused):
            refused()

    assert everything(str(tmp_path / "jobs.db")) == before
    assert store.commits == commits
    scheduler.close()


@pytest.mark.req("JOB-STO-6")
@pytest.mark.parametrize(
    "raised", [sqlite3.ProgrammingError("of another thread"), sqlite3.OperationalError("no such table: mine")]
)
def test_an_error_of_an_effects_own_database_fails_no_other_caller(tmp_path: Path, raised: sqlite3.Error) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.enqueue(object_type="memory", object_id="m", action="verify")
    [job] = scheduler.pull(worker_id="w").jobs
    calls = scheduler.calls
    entered, go_on = threading.Event(), threading.Event()
    answers: list[Any] = []

    def hold(_: Any) -> None:
        entered.set()
        go_on.wait(240)

    def effect(_: Any) -> None:
        raise raised

    def tried() -> None:
        try:
            answers.append(once(calls, job, effect))
        except Exception as error:
            answers.append(error)

    def enqueued(number: int) -> None:
        answers.append(calls.enqueue({"object_type": "memory", "object_id": f"n{number}", "action": "verify"}))

    threads = [threading.Thread(target=lambda: calls.store.write(hold))]
    threads[0].start()
    entered.wait(240)
    threads += [threading.Thread(target=tried), *(threading.Thread(target=enqueued, args=(n,)) for n in range(3))]
    for thread in threads[1:]:
        thread.start()
    while len(calls.store._writer_thread) < 4:  # type: ignore[attr-defined]
        pass
    go_on.set()
    for thread in threads:
        thread.join(240)

    failed = [answer for answer in answers if isinstance(answer, Exception)]
    assert [type(answer) for answer in failed] == [EffectFailed]
    stored = [answer for answer in answers if isinstance(answer, messages.Enqueued)]
    assert [answer.deduplicated for answer in stored] == [False] * 3
    assert len(scheduler.list().jobs) == 4
    assert scheduler.calls.store.read(lambda look: look.effect(job.idempotency_key)) is None
    scheduler.close()


def test_a_transaction_that_ends_unexpectedly_fails_for_every_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "jobs.db")

    def lost(_: object) -> None:
        raise AttributeError("a mistake of ours")

    monkeypatch.setattr(store, "_transaction", lost)
    with pytest.raises((AttributeError, StoreUnusable)):
        store.write(lambda _: "done")
    monkeypatch.undo()

    assert store.write(lambda _: "done") == "done"
    store.close()
