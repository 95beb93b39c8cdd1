"""Reasons why a job has not run: one sentence for each."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.messages import JobRefused, WhyReason
from pendula.jobs.model import Policy, PullOrder
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.protocol import WorkerRow
from pendula.jobs.store.sqlite import SqliteStore
from tests.jobs.interfaces import ManualClock

MEMORY: dict[str, Any] = {"object_type": "memory", "object_id": "mem_1", "action": "decay"}
Open = Callable[[Policy], Scheduler]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def opened(tmp_path: Path, clock: ManualClock) -> Iterator[Open]:
    made: list[Scheduler] = []

    def open_(policy: Policy) -> Scheduler:
        made.append(Scheduler(Calls(SqliteStore(tmp_path / "jobs.db"), policy, clock)))
        return made[-1]

    yield open_
    for scheduler in made:
        scheduler.close()


@pytest.fixture
def scheduler(opened: Open) -> Scheduler:
    return opened(Policy())


def lives(scheduler: Scheduler, clock: ManualClock, *works: tuple[str, str], name: str = "w9", **more: Any) -> None:
    """A worker with a heartbeat of now."""
    scheduler.calls.record_heartbeats([WorkerRow(name, clock.now, clock.now, None, 0, works=works, **more)])


def enqueued(scheduler: Scheduler, **members: Any) -> str:
    job_id: str = scheduler.enqueue(**{**MEMORY, **members}).job.job_id
    return job_id


def why_of(scheduler: Scheduler, job_id: str) -> tuple[str, str]:
    reply = scheduler.why(job_id)
    assert reply.reason in get_args(WhyReason)
    return reply.reason, reply.sentence.removeprefix(f"{job_id} ")


@pytest.mark.req("JOB-USE-8")
def test_a_job_waits_for_its_time(scheduler: Scheduler, clock: ManualClock) -> None:
    job_id = enqueued(scheduler, run_at=clock.text(7200))

    assert why_of(scheduler, job_id) == ("waits_for_time", "waits for its time, 2026-02-20T14:00:00Z (in 2 h).")


@pytest.mark.req("JOB-USE-8")
def test_a_job_waits_for_its_next_retry(scheduler: Scheduler) -> None:
    job_id = enqueued(scheduler)
    scheduler.pull(worker_id="w")
    scheduler.fail(job_id, error="no evidence\nat line 7", retry_delay_sec=45)

    assert why_of(scheduler, job_id) == (
        "waits_for_retry",
        "waits for its next try at 2026-02-20T12:00:45Z (in 45 s), after 1 of 3 attempts: no evidence.",
    )


@pytest.mark.req("JOB-USE-8")
def test_a_job_waits_for_its_turn(scheduler: Scheduler, clock: ManualClock) -> None:
    lives(scheduler, clock)
    first, second, third = (enqueued(scheduler, object_id=f"mem_{number}") for number in range(3))

    assert (
        why_of(scheduler, first)[1] == "has been due since 2026-02-20T12:00:00Z and waits for its turn: it is the next."
    )
    assert why_of(scheduler, second)[1].endswith("1 goes before it.")
    assert why_of(scheduler, third) == (
        "waits_for_turn",
        "has been due since 2026-02-20T12:00:00Z and waits for its turn: 2 go before it.",
    )


@pytest.mark.req("JOB-USE-8")
def test_the_turn_follows_the_order_of_the_settings(opened: Open, clock: ManualClock) -> None:
    weighted = opened(Policy(pull_order=PullOrder.WEIGHTED))
    lives(weighted, clock)
    low = enqueued(weighted, object_id="low", priority="low")
    clock.pass_by(60)
    high = enqueued(weighted, object_id="high", priority="high")

    before = {name: weighted.why(job_id).facts["before"] for name, job_id in (("low", low), ("high", high))}

    assert before == {"low": 1, "high": 0}
    assert [job.job_id for job in weighted.pull(worker_id="w").jobs] == [high, low]


@pytest.mark.req("JOB-USE-8")
def test_a_job_waits_for_a_worker_that_handles_it(scheduler: Scheduler, clock: ManualClock) -> None:
    job_id = enqueued(scheduler, queue="slow")
    none = why_of(scheduler, job_id)
    lives(scheduler, clock, ("memory", "verify"))
    others = why_of(scheduler, job_id)
    lives(scheduler, clock, ("memory", "decay"), queues=("fast",))
    elsewhere = why_of(scheduler, job_id)
    lives(scheduler, clock, ("memory", "decay"), queues=("fast", "slow"))

    due = "has been due since 2026-02-20T12:00:00Z and waits for a worker"
    assert none == ("waits_for_worker", f"{due}: no worker sent a heartbeat lately.")
    assert others[1] == (
        f"{due}: the only worker with a recent heartbeat does not handle decay of memory in the queue slow."
    )
    assert elsewhere[0] == "waits_for_worker"
    assert why_of(scheduler, job_id)[0] == "waits_for_turn"


@pytest.mark.req("JOB-USE-8")
def test_a_worker_without_recent_heartbeats_is_not_counted(scheduler: Scheduler, clock: ManualClock) -> None:
    job_id = enqueued(scheduler)
    lives(scheduler, clock)
    clock.pass_by(91)

    assert why_of(scheduler, job_id)[0] == "waits_for_worker"


@pytest.mark.req("JOB-USE-8")
def test_a_job_waits_for_its_object(opened: Open, clock: ManualClock) -> None:
    one_each = opened(Policy(one_running_per_object=True))
    lives(one_each, clock)
    first, second = enqueued(one_each), enqueued(one_each, action="verify")
    one_each.pull(worker_id="w", limit=1)

    assert why_of(one_each, second) == (
        "waits_for_object",
        f"waits for its object: {first} runs on memory mem_1 at w.",
    )


@pytest.mark.req("JOB-USE-8")
def test_a_running_job_shows_its_worker_and_lease_end(scheduler: Scheduler, clock: ManualClock) -> None:
    job_id = enqueued(scheduler)
    [job] = scheduler.pull(worker_id="w", lease_sec=30).jobs
    clock.pass_by(10)
    scheduler.renew(job_id, worker_id="w", lease_token=job.lease_token, lease_sec=30)
    holds = why_of(scheduler, job_id)
    clock.pass_by(31)

    assert holds == (
        "runs",
        "has been running at w since 2026-02-20T12:00:00Z; its lease holds until 2026-02-20T12:00:40Z.",
    )
    assert why_of(scheduler, job_id)[0] == "lease_over"


@pytest.mark.req("JOB-USE-8")
def test_an_ended_job_shows_how_it_ended(scheduler: Scheduler) -> None:
    good, bad, dead, off = (enqueued(scheduler, object_id=f"m{n}", max_attempts=1) for n in range(4))
    scheduler.cancel(off, reason="not needed")
    scheduler.pull(worker_id="w")
    scheduler.ack(good, result="succeeded", outcome="kept")
    scheduler.fail(bad, error="never", retryable=False)
    scheduler.fail(dead, error="again no luck")

    at = "2026-02-20T12:00:00Z"
    assert [why_of(scheduler, job_id) for job_id in (good, bad, dead, off)] == [
        ("ended", f"succeeded at {at} with outcome kept."),
        ("ended", f"failed at {at} and is not tried again: never."),
        ("ended", f"has been a dead letter since {at}, after 1 of 1 attempts: again no luck."),
        ("ended", f"was cancelled at {at}: not needed."),
    ]


def test_an_unknown_job_has_no_reason(scheduler: Scheduler) -> None:
    with pytest.raises(JobRefused) as refused:
        scheduler.why("job_000000000001")

    assert refused.value.code == "job_not_found"


@pytest.mark.req("JOB-USE-2", "JOB-USE-8")
def test_a_job_not_pulled_for_long_waits_for_a_worker_that_handles_it(opened: Open, clock: ManualClock) -> None:
    scheduler = opened(Policy(unhandled_alert_sec=60))
    job_id = enqueued(scheduler)
    clock.pass_by(61)
    lives(scheduler, clock, ("memory", "verify"))

    assert why_of(scheduler, job_id) == (
        "waits_for_worker",
        (
            "has been due since 2026-02-20T12:00:00Z and waits for a worker that handles it: the only worker with a "
            "recent heartbeat does not handle decay of memory, and no worker has taken decay of memory since "
            "2026-02-20T12:00:00Z."
        ),
    )
    assert scheduler.why(job_id).facts["unhandled"] == 1


@pytest.mark.req("JOB-USE-3", "JOB-USE-4", "JOB-USE-8")
def test_a_running_job_shows_its_progress_and_its_cancel_request(scheduler: Scheduler) -> None:
    job_id = enqueued(scheduler)
    [job] = scheduler.pull(worker_id="w").jobs
    scheduler.renew(job_id, worker_id="w", lease_token=job.lease_token, progress=0.4, progress_note="page 4")
    scheduler.cancel(job_id, reason="wrong file")

    reason, sentence = why_of(scheduler, job_id)
    assert (reason, sentence.split("; ")[2:]) == (
        "runs",
        ["40 % of it is done (page 4)", "it was asked to stop at 2026-02-20T12:00:00Z."],
    )
    facts = scheduler.why(job_id).facts
    assert (facts["progress"]["note"], facts["cancel_requested_at"]) == ("page 4", "2026-02-20T12:00:00Z")


@pytest.mark.req("JOB-USE-3", "JOB-USE-8")
def test_a_job_cancelled_while_running_names_the_user_and_the_reason(scheduler: Scheduler) -> None:
    job_id = enqueued(scheduler)
    [job] = scheduler.pull(worker_id="w").jobs
    scheduler.cancel(job_id, reason="wrong file")
    scheduler.fail(job_id, error="cancelled: after page 4", cancelled=True, lease_token=job.lease_token)

    at = "2026-02-20T12:00:00Z"
    assert why_of(scheduler, job_id) == (
        "ended",
        f"was cancelled at {at}: after page 4; local asked for it at {at}: wrong file.",
    )


def test_workers_that_do_not_handle_a_job_are_counted(scheduler: Scheduler, clock: ManualClock) -> None:
    job_id = enqueued(scheduler)
    for name in ("day-1", "day-2"):
        lives(scheduler, clock, ("memory", "verify"), name=name)

    assert why_of(scheduler, job_id)[1].endswith(
        "none of the 2 workers with a recent heartbeat handles decay of memory."
    )
