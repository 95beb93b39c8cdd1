"""Edge cases of pull: two readings of the clock, waiting for the file, a queue full of poisoned jobs."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.jobs import JobRefused, Policy, Scheduler
from pendula.jobs.calls import Calls, pull
from pendula.jobs.messages import Pull, Pulled
from pendula.jobs.model import Durability, PullClock
from pendula.jobs.store.protocol import Writer
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.canonical import Json
from pendula.kernel.time import parse_utc
from tests.jobs.stores import Clock, opened

T = TypeVar("T")
JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}


class SlowStore(SqliteStore):
    """A store whose file another writer holds for two seconds before each write."""

    clock: Clock | None = None

    def write(self, work: Callable[[Writer], T], *, metadata: Mapping[str, Json] | None = None) -> T:
        if self.clock is not None:
            self.clock.pass_by(2)
        return super().write(work, metadata=metadata)


@pytest.mark.req("JOB-PULL-9")
def test_waiting_for_the_file_does_not_shorten_a_lease(tmp_path: Path) -> None:
    clock = Clock()
    store = SlowStore(tmp_path / "jobs.db")
    scheduler = Scheduler(Calls(store, Policy(), clock))
    scheduler.enqueue(**JOB)
    store.clock = clock

    [job] = scheduler.pull(worker_id="w", lease_sec=1).jobs
    store.clock = None

    assert parse_utc(job.lease_expires_at) > clock.now
    assert scheduler.ack(job.job_id, result="succeeded").already_acked is False
    scheduler.close()


@pytest.mark.req("JOB-PULL-2")
def test_leases_and_times_of_a_pull_come_from_the_server_clock_not_from_now(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    scheduler.enqueue(**JOB, run_at=clock.text(200))

    reply = scheduler.pull(worker_id="w", now=clock.text(290), lease_sec=10)

    [job] = reply.jobs
    assert parse_utc(job.lease_expires_at) - parse_utc(job.updated_at) == 10_000_000
    assert abs(parse_utc(job.updated_at) - clock.now) < 100
    scheduler.close()


@pytest.mark.req("JOB-PULL-2")
def test_with_the_server_clock_a_later_now_is_rejected(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, Policy(pull_clock=PullClock.SERVER))

    with pytest.raises(JobRefused) as refused:
        scheduler.pull(worker_id="w", now=clock.text(1))

    assert (refused.value.code, refused.value.status) == ("now_in_future", 422)
    scheduler.close()


@pytest.mark.req("JOB-FAIL-10", "JOB-POL-5")
def test_a_thousand_poisoned_jobs_do_not_delay_a_good_one(tmp_path: Path) -> None:
    clock = Clock()
    scheduler = Scheduler(Calls(SqliteStore(tmp_path / "jobs.db", durability=Durability.NORMAL), Policy(), clock))
    scheduler.enqueue_batch([{**JOB, "object_id": f"bad{number}"} for number in range(1000)])
    good = scheduler.enqueue(**JOB).job.job_id
    for _ in range(3):
        for job in scheduler.pull(worker_id="w", limit=1000).jobs:
            if job.job_id == good:
                scheduler.ack(good, result="succeeded")
            else:
                scheduler.fail(job.job_id, error="poison", retry_delay_sec=0)
        clock.pass_by(1)

    assert scheduler.show(good).job.status == "succeeded"
    scheduler.close()


# Waiting


def pulled_by_thread(scheduler: Scheduler, **members: Any) -> tuple[threading.Thread, list[Pulled]]:
    got: list[Pulled] = []
    thread = threading.Thread(target=lambda: got.append(scheduler.pull(worker_id="w", wait_ms=30_000, **members)))
    thread.start()
    return thread, got


@pytest.mark.req("JOB-PULL-12")
def test_a_waiting_pull_is_woken_by_a_write_of_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Polling for writes of others would be far too late.
    monkeypatch.setattr(pull, "POLL_SECONDS", 3600)
    with Scheduler.open(tmp_path / "jobs.db") as scheduler:
        thread, got = pulled_by_thread(scheduler)
        job = scheduler.enqueue(**JOB).job
        thread.join(25)

    assert [given.job_id for given in got[0].jobs] == [job.job_id]


@pytest.mark.req("JOB-PULL-12")
def test_a_waiting_pull_finds_a_job_written_by_another_connection(tmp_path: Path) -> None:
    with Scheduler.open(tmp_path / "jobs.db") as scheduler, Scheduler.open(tmp_path / "jobs.db") as other:
        thread, got = pulled_by_thread(scheduler)
        job = other.enqueue(**JOB).job
        thread.join(25)

    assert [given.job_id for given in got[0].jobs] == [job.job_id]


@pytest.mark.req("JOB-PULL-12")
@given(coming=st.none() | st.integers(0, 10**9), now=st.integers(0, 10**9), left=st.integers(0, 30_000_000))
def test_a_waiting_pull_sleeps_at_most_50_ms_and_not_past_the_next_due_time(
    coming: int | None, now: int, left: int
) -> None:
    rest = pull.seconds_to_wait(Pull("w", 1), coming, now, now + left)

    assert 0 <= rest <= 0.05
    assert now + rest * 1_000_000 <= now + left
    assert coming is None or coming <= now or now + rest * 1_000_000 <= coming + 1
