"""kill -9 and SIGSTOP at any moment: no answered call is lost, no effect is applied twice, no late write succeeds.

Killing a process cannot reveal a missing flush, because the operating system keeps what was written; so the settings of
the committing connection are checked, too.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Unpack

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.messages import Pulled
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import PullMembers
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.worker.effects import Transaction, once
from pendula.jobs.worker.handlers import Context, Done
from pendula.jobs.worker.worker import Worker
from pendula.kernel.canonical import Json
from pendula.testing import over_seeds
from tests.campaigns import campaign_after
from tests.jobs.crashing import (
    TRIES,
    ReportPipe,
    SharedClock,
    assert_sound,
    assert_visible,
    counting,
    fast,
    forked,
    killed,
    made,
    random_callers,
    scheduler,
    statuses,
    store_of,
)
from tests.jobs.stores import NOON, Clock
from tests.jobs.workers import MEMORY, close_all, decays, virtual
from tests.waiting import status_of

KILLS = 200
LONG_KILLS = 2000
SHARES = 10


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_all()


# Calls at random


def kill_callers(folder: Path, seed: int) -> None:
    random = Random(seed)
    reports = ReportPipe()
    threads = random.choice((1, 1, 3))
    child = forked(lambda: random_callers(folder, reports, seed, threads), reports)
    reports.wait_for(random.randint(1, 20))
    killed(child)
    answers = reports.all()

    assert_visible(folder, answers)
    assert_sound(folder)


def finish(folder: Path) -> None:
    """One worker does all remaining jobs; none stays running, none is missing."""
    with scheduler(folder, Policy(min_retry_gap_sec=0)) as client:
        count = sum(statuses(folder).values())
        while left := client.list(status="running").jobs + client.list(status="queued", limit=1).jobs:
            for job in client.pull(worker_id="last", limit=100, lease_sec=3600, wait_ms=100).jobs:
                once(client.calls, job, counting("last"))
                client.ack(job.job_id, result="succeeded", lease_token=job.lease_token)
            assert left
    ended = statuses(folder)
    assert ended.keys() <= {"succeeded", "dead_letter"}
    assert sum(ended.values()) == count
    assert_sound(folder)


@pytest.mark.req("JOB-STO-7")
@pytest.mark.req("JOB-STO-6")
@pytest.mark.parametrize("share", campaign_after(1, range(SHARES)))
def test_a_killed_process_loses_no_answered_call(tmp_path: Path, share: int) -> None:
    folder = made(tmp_path)
    kills = KILLS // SHARES
    seeds = range(share * kills, (share + 1) * kills)

    assert over_seeds(lambda seed: kill_callers(folder, seed), seeds) == kills
    finish(folder)


@pytest.mark.long
@pytest.mark.req("JOB-STO-7")
@pytest.mark.parametrize("share", range(LONG_KILLS // 50))
def test_two_thousand_killed_processes_lose_no_answered_call(tmp_path: Path, share: int) -> None:
    folder = made(tmp_path)
    seeds = range(KILLS + share * 50, KILLS + (share + 1) * 50)

    assert over_seeds(lambda seed: kill_callers(folder, seed), seeds) == 50
    finish(folder)


# Workers


class Announced(Scheduler):
    """A scheduler that reports its first pull: from then on the worker handles signals."""

    reports: ReportPipe | None = None

    def pull(self, **members: Unpack[PullMembers]) -> Pulled:
        if self.reports is not None:
            self.reports.write(ready=True)
            self.reports = None
        return super().pull(**members)


def run_worker(folder: Path, name: str, reports: ReportPipe) -> None:
    """A worker that applies an effect for each job, sometimes slowly, until it is stopped."""
    random = Random(name)

    def decay(context: Context) -> Done:
        result = context.once(counting(name))
        if random.random() < 0.2:
            threading.Event().wait(random.random() * 0.03)
        return Done(outcome=str(result))

    with scheduler(folder, Policy(min_retry_gap_sec=0)) as opened:
        client = Announced(opened.calls)
        client.reports = reports
        options: dict[str, Any] = {"worker_id": name, "concurrency": 2, "batch": 2, "lease_sec": 3, "ticks": fast}
        Worker(client, decays(decay), **options).run(signals=True)


class WorkerPair:
    """Two workers on one file; a killed one is replaced."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.count = 0
        self.children = [self.start_worker(), self.start_worker()]

    def start_worker(self) -> tuple[int, ReportPipe]:
        self.count += 1
        name, reports = f"w{self.count}-{self.seed}", ReportPipe()
        return forked(lambda: run_worker(self.folder, name, reports), reports), reports

    def kill(self, index: int) -> None:
        child, reports = self.children[index]
        killed(child)
        reports.all()
        self.children[index] = self.start_worker()

    def freeze(self, index: int, seconds: float) -> None:
        """Stop the worker for longer than a lease, then continue it."""
        child, _ = self.children[index]
        os.kill(child, signal.SIGSTOP)
        threading.Event().wait(seconds)
        os.kill(child, signal.SIGCONT)

    def stop(self) -> list[int]:
        codes = []
        for child, reports in self.children:
            reports.wait_for(1)
            os.kill(child, signal.SIGTERM)
            codes.append(os.waitstatus_to_exitcode(status_of(child)))
            reports.all()
        self.children = []
        return codes

    def kill_all(self) -> None:
        for child, _ in self.children:
            killed(child)


def kill_and_freeze_workers(folder: Path, seed: int, jobs: int = 60) -> int:
    """The number of kills and freezes while the workers did the jobs; limited, so that they finish."""
    made(folder)
    with scheduler(folder) as client:
        for number in range(jobs):
            name: dict[str, Any] = {"object_id": f"mem_{number}", "idempotency_key": f"k{number}"}
            client.enqueue(**{**MEMORY, **name}, max_attempts=TRIES)
    workers = WorkerPair(folder, seed)
    try:
        attacks = attack(workers, Random(seed), jobs)
        while statuses(folder).get("succeeded", 0) < jobs:
            threading.Event().wait(0.02)
        codes = workers.stop()
    finally:
        workers.kill_all()

    assert codes == [0, 0]
    assert statuses(folder) == {"succeeded": jobs}
    assert_sound(folder)
    with scheduler(folder) as client:
        assert len(client.calls.store.write(lambda tx: tx.execute("SELECT key FROM counted"))) == jobs
    return attacks


def attack(workers: WorkerPair, random: Random, jobs: int, most: int = 12) -> int:
    for attack_number in range(most):
        if statuses(workers.folder).get("succeeded", 0) == jobs:
            return attack_number
        threading.Event().wait(random.random() * 0.06)
        if random.random() < 0.7:
            workers.kill(random.randrange(2))
        else:
            workers.freeze(random.randrange(2), 0.1)
    return most


@pytest.mark.req("JOB-WRK-13")
@pytest.mark.req("JOB-POL-4")
@pytest.mark.req("JOB-ACK-8")
@pytest.mark.parametrize("seed", campaign_after(2, range(4)))
def test_killed_and_frozen_workers_leave_every_effect_once_and_no_job_running(tmp_path: Path, seed: int) -> None:
    assert kill_and_freeze_workers(tmp_path, seed) > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_killed_and_frozen_workers_leave_every_effect_once(tmp_path: Path, seed: int) -> None:
    assert kill_and_freeze_workers(tmp_path, seed, jobs=200) > 0


@pytest.mark.req("JOB-WRK-13")
@pytest.mark.req("JOB-PULL-13")
def test_with_default_settings_all_jobs_of_a_killed_worker_are_delivered_again(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    for number in range(5):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{number}"})
    now = client.clock.now
    close_all()
    reports = ReportPipe()

    def work() -> None:
        def begins(context: Context) -> None:
            reports.write(job_id=context.job.job_id)
            threading.Event().wait()

        held = Scheduler(Calls(SqliteStore(store_of(tmp_path)), Policy(), Clock(now)))
        Worker(held, decays(begins), concurrency=5).run()

    child = forked(work, reports)
    reports.wait_for(5)
    killed(child)
    lost = {answer["job_id"] for answer in reports.all()}
    client = virtual(tmp_path)
    client.clock.now = now + 1_000_000
    done: list[str] = []

    tally = Worker(
        client, decays(lambda context: done.append(context.job.job_id)), max_jobs=5, ticks=client.clock
    ).run()

    assert set(done) == lost
    assert tally.succeeded == 5
    ended = [(job.status, job.attempt, job.delivery_count) for job in client.list().jobs]
    assert ended == [("succeeded", 1, 2)] * 5
    assert client.clock.now < NOON + 66 * 1_000_000, "within the lease and one interval"


def counted_change(by: str) -> Callable[[Transaction], Json]:
    """An effect in its own table, and a state change of the object."""

    def effect(transaction: Transaction) -> Json:
        transaction.change_object("by hand", state=by)
        return counting(by)(transaction)

    return effect


@pytest.mark.req("JOB-POL-4")
def test_a5_a_kill_between_effect_and_ack_leaves_one_effect(tmp_path: Path) -> None:
    folder, clock, reports = made(tmp_path), SharedClock(), ReportPipe()
    with scheduler(folder, clock=clock) as client:
        client.enqueue(**MEMORY, idempotency_key="k")

    def work() -> None:
        def decay(context: Context) -> None:
            context.once(counted_change("first"))
            reports.write(done=True)
            threading.Event().wait()

        with scheduler(folder, clock=clock) as client:
            Worker(client, decays(decay), ticks=clock).run()

    child = forked(work, reports)
    reports.wait_for(1)
    killed(child)
    reports.all()
    clock.pass_by(61)
    with scheduler(folder, clock=clock) as client:
        again = decays(lambda context: Done(outcome=str(context.once(counted_change("second")))))
        Worker(client, again, max_jobs=1, ticks=clock).run()
        [job] = client.list().jobs
        [change] = client.audit(event_type="state_transition").events
        changed = client.object("memory", "mem_1")

    assert (job.status, job.outcome, job.delivery_count) == ("succeeded", "first", 2)
    assert (change.after, change.job_id) == ({"state": "first"}, job.job_id)
    assert (changed.state, changed.version) == ("first", 1)
    assert_sound(folder)
