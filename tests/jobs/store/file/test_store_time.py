"""The time of a store never goes back, even if the clock of a process does."""

from pathlib import Path

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.model import SECOND, Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.file.store_time import StoreTime, time_of_event
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.kernel.time import parse_utc
from tests.jobs.stores import NOON, Clock

HOUR = 3600


def on(folder: Path, clock: Clock) -> Scheduler:
    """A scheduler as in a separate process, with its own clock."""
    return Scheduler(Calls(SqliteStore(folder / "jobs.db"), Policy(), clock))


@pytest.mark.req("JOB-PULL-9")
def test_a_clock_set_back_an_hour_expires_no_lease(tmp_path: Path) -> None:
    """The old process keeps the old time; a process started after the clock was set has the new one."""
    old, new = on(tmp_path, Clock()), on(tmp_path, Clock(NOON - HOUR * SECOND))
    old.defer("memory", "m", "verify", max_attempts=2)

    [job] = new.pull(worker_id="new").jobs
    for _ in range(5):
        old.pull(worker_id="old")
    done = new.ack(job.job_id, result="succeeded", worker_id="new", lease_token=job.lease_token)

    assert done.job.attempt == 0
    assert done.job.delivery_count == 1
    assert check(new.calls.store) == []
    for scheduler in (old, new):
        scheduler.close()


def test_a_job_due_for_one_process_is_due_for_all(tmp_path: Path) -> None:
    late, early = on(tmp_path, Clock(NOON - HOUR * SECOND)), on(tmp_path, Clock())

    early.defer("memory", "m", "verify")

    assert late.pull(worker_id="w").count == 1
    for scheduler in (late, early):
        scheduler.close()


@pytest.mark.req("JOB-AUD-1")
def test_events_of_a_store_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    clocks = [Clock(NOON + offset * SECOND) for offset in (0, -HOUR, 30, -5)]
    schedulers = [on(tmp_path, clock) for clock in clocks]

    for number in range(40):
        scheduler, clock = schedulers[number % 4], clocks[number % 4]
        clock.pass_by((number * 7919) % 41 - 20)
        scheduler.defer("memory", f"m{number}", "verify")
        for job in scheduler.pull(worker_id=f"w{number}", lease_sec=3600).jobs:
            scheduler.ack(job.job_id, result="succeeded", lease_token=job.lease_token)
    times = [parse_utc(event.timestamp) for event in schedulers[0].audit(limit=1000).events]

    assert len(times) >= 120
    assert times == sorted(times)
    assert check(schedulers[0].calls.store) == []
    for scheduler in schedulers:
        scheduler.close()


def test_a_delay_counts_from_the_time_of_the_store(tmp_path: Path) -> None:
    early, late = on(tmp_path, Clock()), on(tmp_path, Clock(NOON - HOUR * SECOND))
    early.defer("memory", "m", "verify")
    late.pull(worker_id="w")

    job = late.defer("memory", "n", "verify", in_sec=60)

    assert parse_utc(job.run_at) >= NOON + 60 * SECOND
    for scheduler in (early, late):
        scheduler.close()


def test_store_time_advances_at_half_speed_while_the_clock_is_behind() -> None:
    time = StoreTime()
    time.observe(1000)

    times = [time.now(lambda reading=reading: reading) for reading in (100, 300, 200, 400, 999, 1500, 1700)]  # type: ignore[misc]

    assert times == [1000, 1100, 1100, 1200, 1499, 1500, 1700]


def test_times_stored_by_others_do_not_make_the_store_run_ahead() -> None:
    """A process that was idle for long and reads a later time from the store does not add its idle time to it."""
    time = StoreTime()
    time.now(lambda: 100)

    time.observe(1_000_000)

    assert time.now(lambda: 999_990) == 1_000_000
    assert time.ahead_of(lambda: 999_990) == 10


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ('{"a":1,"timestamp":"1970-01-01T00:00:00.000007Z"}', 7),
        ('{"a":1,"timestamp":"nonsense"}', 0),
        ("", 0),
    ],
)
def test_the_time_is_the_last_field_of_an_event(body: str, at: int) -> None:
    assert time_of_event(body) == at
