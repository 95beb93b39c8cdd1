"""The worker: polling, leases it holds, stopping, and retries while the store is lost."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused
from pendula.jobs.messages import Job
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.delivery import Delivery, Ending, Failed
from pendula.jobs.worker.handlers import (
    Context,
    Done,
    EffectMisused,
)
from pendula.jobs.worker.heartbeats import generate_worker_id
from pendula.jobs.worker.worker import Worker
from pendula.kernel.errors import WrongUsage
from pendula.kernel.time import parse_utc
from tests.forking import forked
from tests.jobs.workers import MEMORY, Rested, Silent, close_all, decays, shaky, virtual, worked
from tests.waiting import read, status_of

SECOND = 1_000_000


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_all()


def only(client: Scheduler) -> Job:
    [job] = client.list().jobs
    return job


# The loop


@pytest.mark.req("JOB-WRK-1")
@pytest.mark.req("JOB-WRK-2")
def test_worker_sleeps_until_the_next_job_is_due(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    for seconds in (90, 10, 3600):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{seconds}"}, run_at=client.clock.text(seconds))
    begun: list[tuple[str, int]] = []

    worked(client, decays(lambda context: begun.append((context.job.run_at, client.clock.now))), 3)

    assert [job.status for job in client.list().jobs] == ["succeeded"] * 3
    assert [run_at for run_at, _ in begun] == sorted(run_at for run_at, _ in begun)
    assert all(0 <= at - parse_utc(run_at) < 1000 for run_at, at in begun)
    assert check(client.calls.store) == []


@pytest.mark.req("JOB-WRK-2")
def test_with_a_fixed_interval_the_worker_sleeps_except_after_a_full_batch(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    for number in range(3):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{number}"})
    client.enqueue(**{**MEMORY, "object_id": "mem_later"}, run_at=client.clock.text(12))

    worker = worked(client, decays(lambda context: None), 4, wake_up=False)

    assert worker.rests == [5.0, 5.0, 5.0]
    assert all("wait_ms" not in members for members in client.pulls)


@pytest.mark.req("JOB-WRK-10")
def test_once_does_one_round_with_or_without_jobs(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    for number in range(3):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{number}"})
    worker = Worker(client, decays(lambda context: None), concurrency=2, once=True, ticks=client.clock)

    first = worker.run()
    empty = Worker(client, decays(lambda context: None), concurrency=2, once=True).run()
    none = Worker(client, decays(lambda context: None), once=True).run()

    assert (first.taken, first.succeeded) == (2, 2)
    assert (empty.taken, none.taken) == (1, 0)
    assert len(client.pulls) == 3


@pytest.mark.req("JOB-WRK-10")
def test_max_jobs_ends_the_worker_after_that_many_jobs(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    for number in range(5):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{number}"})

    tally = worked(client, decays(lambda context: None), 3, concurrency=2, batch=5).tally

    assert (tally.taken, tally.succeeded) == (3, 3)
    assert len(client.list(status="queued").jobs) == 2


@pytest.mark.req("JOB-WRK-11")
def test_the_worker_holds_at_most_one_lease_per_handler_and_one_batch(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    for number in range(12):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{number}"})
    held: list[int] = []

    def decay(context: Context) -> None:
        if len(held) < 2:
            threading.Event().wait(0.1)  # time for an unwanted pull
        held.append(client.running())

    worked(client, decays(decay), 12, concurrency=2, batch=3)

    assert len(held) == 12
    assert 2 < max(held) <= 5
    assert max(members["limit"] for members in client.pulls) <= 5


@pytest.mark.req("JOB-WRK-11")
def test_concurrency_limits_the_running_handlers(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    for number in range(3):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{number}"})
    together = threading.Barrier(3, timeout=300)

    tally = worked(client, decays(lambda context: together.wait() * 0 or None), 3, concurrency=3).tally

    assert tally.succeeded == 3


def test_filters_are_passed_to_the_pull(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY, queue="slow")
    client.enqueue(**{**MEMORY, "object_id": "mem_2"}, queue="fast")

    worked(client, decays(lambda context: None), 1, queues=["fast"], actions=["decay"], lease_sec=7)

    assert client.pulls[0] == {
        "worker_id": "w1",
        "queues": ["fast"],
        "object_types": None,
        "actions": ["decay"],
        "pairs": [["memory", "decay"]],
        "lease_sec": 7,
        "limit": 1,
        "wait_ms": 500,
    }
    assert [job.queue for job in client.list(status="succeeded").jobs] == ["fast"]


@pytest.mark.parametrize("options", [{"concurrency": 0}, {"batch": -1}, {"max_jobs": 0}, {"interval_sec": 0}])
def test_invalid_options_are_rejected(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(WrongUsage):
        Worker(virtual(tmp_path), decays(lambda _: None), **options)


def test_a_rejected_pull_ends_the_worker_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(JobRefused, match="worker_id"):
        Worker(virtual(tmp_path), decays(lambda _: None), worker_id="no blanks").run()


def test_two_workers_have_different_names() -> None:
    assert generate_worker_id() != generate_worker_id()


# Steps


@pytest.mark.req("JOB-WRK-4")
def test_gates_and_budget_are_checked_before_the_handler_runs(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    client.enqueue(**{**MEMORY, "object_id": "mem_blocked"})
    seen: list[str] = []

    def gate(delivery: Delivery) -> Ending | None:
        seen.append("gate")
        blocked = delivery.lease.job.object_id == "mem_blocked"
        return Failed({"error": "gate_blocked: risk_gate", "retryable": False}) if blocked else None

    def budget(delivery: Delivery) -> Ending | None:
        seen.append("budget")
        return None

    worked(client, decays(lambda context: seen.append("handler")), 2, gates=[gate], budget=[budget])

    assert seen == ["gate", "budget", "handler", "gate"]
    assert client.list(status="failed").jobs[0].last_error == "gate_blocked: risk_gate"


# Stopping


@pytest.mark.req("JOB-WRK-6")
def test_stop_lets_running_handlers_finish_and_releases_other_jobs(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    for number in range(6):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{number}"})

    def decay(context: Context) -> None:
        if context.job.object_id == "mem_1":
            worker.stop()

    worker = Worker(client, decays(decay), batch=3, ticks=client.clock)
    tally = worker.run()

    statuses = [(job.status, job.attempt) for job in reversed(client.list().jobs)]
    assert statuses == [("succeeded", 0)] * 2 + [("queued", 0)] * 4
    assert tally.released >= 2
    assert client.running() == 0
    assert check(client.calls.store) == []


@pytest.mark.req("JOB-WRK-6")
def test_after_the_grace_period_a_running_handler_is_cancelled_and_its_result_discarded(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    release, over = threading.Event(), threading.Event()
    cancelled: list[bool] = []

    def stays(context: Context) -> None:
        worker.stop()
        release.wait(240)
        cancelled.append(context.cancelled())
        over.set()

    worker = Worker(client, decays(stays), grace_sec=0.02, ticks=client.clock)
    worker.run()
    release.set()

    assert over.wait(240)
    assert cancelled == [True]
    assert only(client).status == "running"


@pytest.mark.req("JOB-WRK-6")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_worker_and_its_handler_is_restored(tmp_path: Path, number: int) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    before = signal.getsignal(number)

    worker = Worker(client, decays(lambda context: os.kill(os.getpid(), number)), ticks=client.clock)
    tally = worker.run(signals=True)

    assert tally.succeeded == 1
    assert signal.getsignal(number) is before


def child_with_two_signals(folder: Path, started: int) -> None:
    """Runs a handler that never ends, until killed."""
    client = Scheduler.open(folder / "jobs.db")

    def stays(context: Context) -> None:
        os.write(started, b"x")
        threading.Event().wait()

    try:
        Worker(client, decays(stays), grace_sec=3600).run(signals=True)
    except KeyboardInterrupt:
        os._exit(9)
    os._exit(1)


@pytest.mark.req("JOB-WRK-6")
def test_a_second_signal_ends_the_worker_at_once(tmp_path: Path) -> None:
    with Scheduler.open(tmp_path / "jobs.db") as client:
        client.enqueue(**MEMORY)
    reading, writing = os.pipe()
    child = forked(lambda: child_with_two_signals(tmp_path, writing))
    read(reading, 1)
    os.kill(child, signal.SIGTERM)
    os.kill(child, signal.SIGINT)
    status = status_of(child)
    os.close(reading)
    os.close(writing)

    assert os.waitstatus_to_exitcode(status) == 9
    with Scheduler.open(tmp_path / "jobs.db") as client:
        assert only(client).status == "running"


# Lost stores


@pytest.mark.req("JOB-WRK-12")
def test_a_lost_store_is_retried_with_backoff(tmp_path: Path) -> None:
    client = shaky(tmp_path)
    client.enqueue(**MEMORY)
    client.lost = lambda call: call == "pull" and client.asked.count("pull") <= 8

    worker = worked(client, decays(lambda context: None), 1)

    assert worker.rests == [1, 2, 4, 8, 16, 32, 60, 60]
    assert worker.tally.succeeded == 1


@pytest.mark.req("JOB-WRK-12")
def test_the_backoff_restarts_after_the_store_returns(tmp_path: Path) -> None:
    client = shaky(tmp_path)
    client.enqueue(**MEMORY)
    client.enqueue(**{**MEMORY, "object_id": "mem_2"})
    client.lost = lambda call: call == "pull" and client.asked.count("pull") in (1, 2, 4)

    worker = worked(client, decays(lambda context: None), 2)

    assert worker.rests == [1, 2, 1]


def test_once_does_not_wait_for_a_lost_store(tmp_path: Path) -> None:
    client = shaky(tmp_path)
    client.lost = lambda call: True

    with pytest.raises(Silent):
        Rested(client, decays(lambda _: None), once=True).run()


@pytest.mark.req("JOB-WRK-12")
@pytest.mark.parametrize("fault", ["lost", "late"])
def test_the_end_of_a_job_is_reported_until_answered_and_counts_once(tmp_path: Path, fault: str) -> None:
    client = shaky(tmp_path)
    client.enqueue(**MEMORY)
    setattr(client, fault, lambda call: call == "ack" and client.asked.count("ack") <= 2)

    worker = worked(client, decays(lambda context: Done(outcome="done")), 1)

    job = only(client)
    assert (job.status, job.outcome, worker.tally.succeeded) == ("succeeded", "done", 1)
    assert client.asked.count("ack") == 3
    assert len(client.history(job.job_id).events) == 3
    assert check(client.calls.store) == []


def test_reporting_ends_with_the_lease(tmp_path: Path) -> None:
    client = shaky(tmp_path)
    client.enqueue(**MEMORY)
    client.lost = lambda call: call in ("ack", "renew") and client.clock.now < parse_utc("2026-02-20T12:05:00Z")

    worker = worked(client, decays(lambda context: None), 1)

    assert worker.tally.dropped == 1
    assert only(client).status == "running"


# Over HTTP


class Distant:
    """A client without a store, as a worker on a server has."""

    def __init__(self, client: Scheduler) -> None:
        self.pull = client.pull
        self.ack = client.ack
        self.fail = client.fail
        self.renew = client.renew
        self.release = client.release


def test_a_remote_worker_runs_handlers_and_rejects_effects(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    refusals: list[str] = []

    def decay(context: Context) -> None:
        with pytest.raises(EffectMisused) as refused:
            context.once(lambda transaction: None)
        refusals.append(refused.value.code)

    tally = Worker(Distant(client), decays(decay), max_jobs=1, ticks=client.clock).run()

    assert (tally.succeeded, refusals) == (1, ["effect_misused"])


@pytest.mark.req("JOB-WRK-6")
def test_a_stop_logs_the_handlers_still_running(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    client = virtual(tmp_path)
    job_id = client.enqueue(**MEMORY).job.job_id
    logged = threading.Event()

    class StopLogged(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("stopping"):
                logged.set()

    def decay(context: Context) -> None:
        worker.stop()
        assert logged.wait(240)

    worker = Worker(client, decays(decay), ticks=client.clock)
    log, log_handler = logging.getLogger("pendula.jobs.worker"), StopLogged()
    log.addHandler(log_handler)
    worker.run()
    log.removeHandler(log_handler)

    [line] = [message for message in caplog.messages if message.startswith("stopping")]
    assert line == f"stopping: waiting at most 30 s for 1 handler: decay memory mem_1 ({job_id})"
