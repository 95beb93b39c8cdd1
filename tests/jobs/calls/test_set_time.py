"""A wrong clock is rejected where it can be detected; elsewhere an operator corrects the time of the store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.messages import Job, JobRefused
from pendula.jobs.model import SECOND, Actor, ClockAhead, Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.file.store_time import MachineTime
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.transaction import Caller
from pendula.jobs.upkeep.verification import check
from pendula.kernel.time import format_utc, parse_utc
from tests.jobs.stores import NOON, opened

DAY = 86_400
TEN_YEARS = 3653 * DAY


class Machine:
    """A machine: a clock that counts since boot, and processes whose clocks are wrong by some seconds."""

    def __init__(self, folder: Path, boot_id: str = "boot-1", *, right: int = NOON, steady: int = 5_000_000) -> None:
        self.folder = folder
        self.boot_id = boot_id
        self.right = right
        self.steady = steady
        self.opened: list[Scheduler] = []

    def pass_by(self, seconds: int) -> None:
        self.right += seconds * SECOND
        self.steady += seconds * SECOND

    def process(self, wrong_by: int = 0, *, held: bool = True, step_sec: int = 300) -> Scheduler:
        store = SqliteStore(self.folder / "jobs.db")

        def clock() -> int:
            self.right += 1
            self.steady += 1
            return self.right + wrong_by * SECOND

        if held:
            store.hold_clock(MachineTime(clock, lambda: self.steady, self.boot_id, step_sec * SECOND))
        calls = Calls(store, Policy(max_clock_step_sec=step_sec), clock)
        self.opened.append(Scheduler(calls, Caller(Actor("user", "ann"))))
        return self.opened[-1]

    def text(self, seconds: int = 0) -> str:
        return format_utc(self.right + seconds * SECOND)


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    machine = Machine(tmp_path)
    yield machine
    for scheduler in machine.opened:
        scheduler.close()


def defer(scheduler: Scheduler, object_id: str = "m", **members: Any) -> Job:
    return scheduler.defer("memory", object_id, "verify", **members)


# Detection


@pytest.mark.req("JOB-V2-7")
@pytest.mark.parametrize("ahead", [DAY, TEN_YEARS, 302])
def test_a_process_whose_clock_is_ahead_is_rejected_and_changes_nothing(machine: Machine, ahead: int) -> None:
    right = machine.process()
    later = defer(right, "later", run_at=machine.text(ahead // 2))
    wrong = machine.process(ahead)

    calls: list[Callable[[], object]] = [
        lambda: defer(wrong),
        lambda: wrong.pull(worker_id="w"),
        lambda: wrong.cancel(later.job_id),
        wrong.metrics,
        lambda: wrong.put_plan("p", cron="0 0 * * *", object_type="memory", object_id="m", action="verify"),
    ]
    for call in calls:
        with pytest.raises(ClockAhead) as refused:
            call()
        assert refused.value.code == "clock_ahead"

    assert right.pull(worker_id="w").count == 0, "what is due later is not handed out"
    assert defer(right, "now", run_at=machine.text(1)).status == "queued"
    assert check(right.calls.store, machine.right) == []


@pytest.mark.req("JOB-V2-7")
def test_a_clock_within_the_step_is_accepted_but_cannot_drift_further(machine: Machine) -> None:
    defer(machine.process())
    for n in range(20):
        defer(machine.process(295), f"m{n}")

    with pytest.raises(ClockAhead):
        defer(machine.process(600))


@pytest.mark.req("JOB-V2-7")
def test_a_clock_jump_in_a_running_process_is_rejected(machine: Machine) -> None:
    scheduler = machine.process()
    defer(scheduler)
    machine.right += DAY * SECOND  # the clock is set; the boot clock continues

    with pytest.raises(ClockAhead):
        scheduler.pull(worker_id="w")

    machine.right -= DAY * SECOND
    assert scheduler.pull(worker_id="w").count == 1, "the clock is right again"


@pytest.mark.parametrize("away", [3600, 40 * DAY])
def test_idle_time_is_not_a_clock_jump(machine: Machine, away: int) -> None:
    defer(machine.process())

    machine.pass_by(away)

    assert machine.process().pull(worker_id="w").count == 1


def test_after_a_reboot_the_clock_is_read_again(machine: Machine, tmp_path: Path) -> None:
    defer(machine.process())
    started = Machine(tmp_path, "boot-2", right=machine.right + 40 * DAY * SECOND, steady=1000)

    first, wrong = started.process(), started.process(DAY)

    assert first.pull(worker_id="w").count == 1
    with pytest.raises(ClockAhead):
        defer(wrong)
    for scheduler in started.opened:
        scheduler.close()


def test_a_process_whose_clock_is_behind_does_not_slow_down_others(machine: Machine) -> None:
    defer(machine.process())
    behind = machine.process(-2 * 3600)
    for n in range(30):  # for hours it is the only writer, and its time runs at half speed
        machine.pass_by(1200)
        defer(behind, f"m{n}")

    assert defer(machine.process(), "right").status == "queued"


def test_small_clock_steps_over_months_are_not_a_jump(machine: Machine) -> None:
    scheduler = machine.process()
    for n in range(100):
        machine.pass_by(3700)
        machine.right += 20 * SECOND
        defer(scheduler, f"m{n}")

    assert check(scheduler.calls.store, machine.right) == []


def test_a_custom_clock_is_not_checked(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    defer(scheduler)

    clock.pass_by(TEN_YEARS)

    assert scheduler.pull(worker_id="w").count == 1
    scheduler.close()


@pytest.mark.req("JOB-PULL-2", "JOB-V2-7")
def test_the_now_of_a_pull_is_ahead_by_at_most_the_step(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    defer(scheduler, "soon", in_sec=200)
    defer(scheduler, "later", in_sec=400)

    with pytest.raises(JobRefused) as refused:
        scheduler.pull(worker_id="w", now=clock.text(302))
    jobs = scheduler.pull(worker_id="w", now=clock.text(299)).jobs

    assert (refused.value.code, refused.value.status) == ("now_in_future", 422)
    assert [job.object_id for job in jobs] == ["soon"]
    scheduler.close()


# Correction by an operator


@pytest.fixture
def spoiled(machine: Machine) -> tuple[Scheduler, Scheduler]:
    """A store whose first writer since boot had a clock ten years ahead, and a writer with the right clock."""
    right = machine.process(held=False)
    defer(right, "early", run_at=machine.text(4 * 365 * DAY))
    return machine.process(TEN_YEARS), right


@pytest.mark.req("JOB-V2-7")
def test_check_reports_a_store_whose_time_is_ahead_until_it_is_corrected(
    machine: Machine, spoiled: tuple[Scheduler, Scheduler]
) -> None:
    wrong, right = spoiled
    defer(wrong)
    with pytest.raises(JobRefused, match="run_at"):
        defer(right, "n", run_at=machine.text(60))

    [finding] = check(right.calls.store, machine.right)
    reply = right.set_time(reason="the clock of host b was wrong")
    after = check(right.calls.store, machine.right)

    assert (finding.code, finding.where) == ("time_ahead", "time")
    assert abs(parse_utc(reply.now) - machine.right) < 1000
    assert parse_utc(reply.before) > NOON + (TEN_YEARS - 10) * SECOND
    assert after == []
    assert defer(right, "n", run_at=machine.text(60)).status == "queued"
    event = right.audit(event_type="policy_override").events[-1]
    assert (event.actor.id, event.reason, event.object_id) == (
        "ann", "the clock of host b was wrong", "store"
    )  # fmt: skip
    assert ((event.before or {})["time"], event.after["time"]) == (reply.before, reply.now)


@pytest.mark.req("JOB-V2-7")
def test_after_a_correction_times_of_jobs_count_from_the_right_time(
    machine: Machine, spoiled: tuple[Scheduler, Scheduler]
) -> None:
    wrong, right = spoiled
    jobs = {}
    defer(wrong, "at once")
    defer(wrong, "tried")
    defer(wrong, "held")
    for job in wrong.pull(worker_id="w", limit=10, lease_sec=600).jobs:
        jobs[job.object_id] = job
        if job.object_id == "early":
            wrong.release(job.job_id, worker_id="w", lease_token=job.lease_token)
        elif job.object_id == "tried":
            wrong.fail(job.job_id, error="x", retry_delay_sec=5, lease_token=job.lease_token)
        elif job.object_id == "at once":
            wrong.ack(job.job_id, result="succeeded", lease_token=job.lease_token)
    defer(wrong, "waiting")
    named = defer(wrong, "named", in_sec=DAY)

    reply = right.set_time(reason="x")

    assert (reply.due, reply.leases, reply.kept) == (2, 1, 1)
    assert reply.kept_jobs == [named.job_id]
    times = {job.object_id: job for job in right.list().jobs}
    assert parse_utc(times["early"].run_at) == parse_utc(jobs["early"].run_at), "as its caller asked"
    assert abs(parse_utc(times["waiting"].run_at) - machine.right) < SECOND
    assert 4 * SECOND < parse_utc(times["tried"].run_at) - machine.right < 6 * SECOND
    assert times["named"].run_at == named.run_at
    assert 599 * SECOND < parse_utc(times["held"].lease_expires_at) - machine.right < 601 * SECOND
    assert max(parse_utc(name) for job in times.values() for name in (job.created_at, job.updated_at)) <= machine.right
    assert check(right.calls.store, machine.right) == []
    held = jobs["held"]
    assert right.ack(held.job_id, result="succeeded", lease_token=held.lease_token).already_acked is False
    assert [job.object_id for job in right.pull(worker_id="w").jobs] == ["waiting"]


@pytest.mark.req("JOB-V2-7", "JOB-USE-7")
def test_plans_and_workers_are_corrected_when_the_time_is_set_back(
    machine: Machine, spoiled: tuple[Scheduler, Scheduler]
) -> None:
    wrong, right = spoiled
    wrong.put_plan("nightly", cron="0 3 * * *", object_type="memory", object_id="p", action="verify")

    reply = right.set_time(reason="x")

    assert reply.plans == 1
    [waiting] = right.list(object_id="p", status="queued").jobs
    assert waiting.run_at == "2026-02-21T03:00:00Z"
    assert check(right.calls.store, machine.right) == []


@pytest.mark.req("JOB-V2-7")
def test_every_process_follows_the_corrected_time_and_the_wrong_clock_is_rejected(
    machine: Machine, spoiled: tuple[Scheduler, Scheduler]
) -> None:
    wrong, right = spoiled
    third = machine.process()
    defer(wrong)
    defer(third, "third")  # it follows the store, ten years ahead

    machine.process().set_time(reason="x")

    for n, scheduler in enumerate((third, right, machine.process())):
        job = defer(scheduler, f"after {n}")
        assert abs(parse_utc(job.created_at) - machine.right) < 10 * SECOND
    with pytest.raises(ClockAhead):
        defer(wrong)
    assert check(right.calls.store, machine.right) == []


@pytest.mark.req("JOB-V2-7")
def test_a_clock_corrected_forwards_is_accepted_after_an_operator_sets_the_time(machine: Machine) -> None:
    """The machine booted with a clock that was a day behind."""
    machine.right -= DAY * SECOND
    scheduler = machine.process()
    job = defer(scheduler, in_sec=60)
    machine.right += DAY * SECOND
    with pytest.raises(ClockAhead):
        defer(scheduler, "n")

    reply = scheduler.set_time(reason="the clock is right now")

    assert (reply.due, reply.leases, reply.kept, reply.plans) == (0, 0, 0, 0)
    assert scheduler.pull(worker_id="w").jobs[0].job_id == job.job_id
    assert check(scheduler.calls.store, machine.right) == []


@pytest.mark.parametrize(("body", "code"), [({}, "missing_field"), ({"reason": "x", "to": "now"}, "unknown_field")])
def test_set_time_requires_a_reason_and_accepts_no_other_field(tmp_path: Path, body: dict[str, Any], code: str) -> None:
    scheduler, _ = opened(tmp_path)

    with pytest.raises(JobRefused) as refused:
        scheduler.set_time(**body)

    assert refused.value.code == code
    assert scheduler.audit().events == []
    scheduler.close()


@pytest.mark.req("JOB-V2-7")
def test_a_rejected_process_continues_once_another_has_set_the_time(machine: Machine) -> None:
    running = machine.process()
    defer(running, "before")
    machine.right += 3600 * SECOND  # the clock is corrected by hand: an hour later than the boot clock gives
    with pytest.raises(ClockAhead):
        defer(running, "refused")

    machine.process().set_time(reason="the clock is right now")

    assert [job.object_id for job in running.pull(worker_id="w").jobs] == ["before"]
    assert defer(running, "after").status == "queued"
