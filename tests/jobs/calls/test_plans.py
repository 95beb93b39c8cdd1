"""Time plans: stored, paused, resumed, run now and removed by a named user; a pause withdraws the next occurrence."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pendula.jobs.calls import Caller, Calls, plans
from pendula.jobs.messages import JobRefused, Recurring
from pendula.jobs.model import Actor, Policy
from pendula.jobs.plans import PLANS_MOST
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from tests.jobs.interfaces import ManualClock

NIGHTLY: dict[str, Any] = {
    "cron": "30 2 * * *",
    "zone": "Europe/Berlin",
    "object_type": "memory",
    "object_id": "mem_1",
    "action": "decay",
}
ANN = Caller(Actor("user", "ann"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def scheduler(tmp_path: Path, clock: ManualClock) -> Iterator[Scheduler]:
    with Scheduler(Calls(SqliteStore(tmp_path / "jobs.db"), Policy(), clock), ANN) as opened:
        yield opened


def waiting(scheduler: Scheduler) -> list[str]:
    return sorted(job.run_at for job in scheduler.list(status="queued").jobs)


def refused(call: Any, *given: Any, **members: Any) -> tuple[int, str]:
    with pytest.raises(JobRefused) as caught:
        call(*given, **members)
    return caught.value.status, caught.value.code


@pytest.mark.parametrize("call", ["pause_plan", "resume_plan", "run_now", "remove_plan"])
def test_a_name_with_a_lone_surrogate_has_no_plan(scheduler: Scheduler, call: str) -> None:
    with pytest.raises(JobRefused) as refused:
        getattr(scheduler, call)("half \ud800")

    assert refused.value.code == "plan_not_found"


def test_an_object_id_with_a_lone_surrogate_is_not_found(scheduler: Scheduler) -> None:
    with pytest.raises(JobRefused) as refused:
        scheduler.object("memory", "half \ud800")

    assert refused.value.code == "object_not_found"


@pytest.mark.req("JOB-USE-7")
def test_a_plan_and_its_next_occurrence_are_stored_together(scheduler: Scheduler) -> None:
    plan = scheduler.put_plan("nightly", **NIGHTLY).plan

    [job] = scheduler.list().jobs
    assert job.run_at == plan.next_at == "2026-02-21T01:30:00Z"
    assert (job.job_id, plan.source) == (plan.job_id, "call")


@pytest.mark.req("JOB-USE-7")
def test_plans_are_listed_by_name(scheduler: Scheduler) -> None:
    scheduler.put_plan("weekly", **{**NIGHTLY, "cron": "@weekly", "zone": None})
    scheduler.put_plan("nightly", **NIGHTLY)

    found = scheduler.plans().plans
    assert [(plan.name, plan.zone) for plan in found] == [("nightly", "Europe/Berlin"), ("weekly", "UTC")]


@pytest.mark.req("JOB-USE-7")
def test_a_pause_withdraws_the_waiting_occurrence_and_a_resume_restores_it(scheduler: Scheduler) -> None:
    scheduler.put_plan("nightly", **NIGHTLY)

    paused = scheduler.pause_plan("nightly", reason="moving").plan
    while_paused = waiting(scheduler)
    scheduler.resume_plan("nightly")

    assert (paused.paused_by, paused.next_at, while_paused) == ("ann", None, [])
    assert waiting(scheduler) == ["2026-02-21T01:30:00Z"]
    assert check(scheduler.calls.store) == []


def test_repeated_pauses_always_end_with_one_occurrence(scheduler: Scheduler) -> None:
    scheduler.put_plan("nightly", **NIGHTLY)
    for _ in range(3):
        scheduler.pause_plan("nightly")
        scheduler.pause_plan("nightly")
        scheduler.resume_plan("nightly")
        scheduler.resume_plan("nightly")

    assert waiting(scheduler) == ["2026-02-21T01:30:00Z"]
    assert len(scheduler.list().jobs) == 4


def test_a_started_occurrence_is_not_withdrawn(scheduler: Scheduler, clock: ManualClock) -> None:
    scheduler.put_plan("nightly", **NIGHTLY)
    clock.pass_by(86_400)
    [job] = scheduler.pull(worker_id="w").jobs
    scheduler.fail(job.job_id, error="no luck")

    scheduler.pause_plan("nightly")

    assert scheduler.show(job.job_id).job.status == "queued"


def test_a_process_that_read_the_plan_before_its_pause_stores_nothing(scheduler: Scheduler, clock: ManualClock) -> None:
    scheduler.put_plan("nightly", **NIGHTLY)
    clock.pass_by(86_400)
    scheduler.pause_plan("nightly")

    def keep(tx: Any, now: int) -> Any:
        return plans.keep_next(tx, tx.plan("nightly"), scheduler.calls.policy, now)

    scheduler.calls.change_plans(keep)

    assert waiting(scheduler) == []


@pytest.mark.req("JOB-USE-7")
def test_run_now_enqueues_one_extra_job_even_while_paused(scheduler: Scheduler) -> None:
    scheduler.put_plan("nightly", **NIGHTLY)
    scheduler.pause_plan("nightly")

    first = scheduler.run_now("nightly")
    again = scheduler.run_now("nightly")

    assert (first.deduplicated, again.deduplicated) == (False, True)
    [job] = scheduler.pull(worker_id="w").jobs
    assert job.job_id == first.job.job_id == again.job.job_id


def test_run_now_enqueues_another_job_once_the_last_one_was_pulled(scheduler: Scheduler, clock: ManualClock) -> None:
    scheduler.put_plan("nightly", **NIGHTLY)
    first = scheduler.run_now("nightly").job.job_id
    scheduler.pull(worker_id="w")
    clock.pass_by(1)

    assert scheduler.run_now("nightly").job.job_id != first


def test_another_plan_under_the_same_name_withdraws_the_old_occurrence(scheduler: Scheduler) -> None:
    scheduler.put_plan("nightly", **NIGHTLY)
    scheduler.put_plan("nightly", **{**NIGHTLY, "cron": "0 4 * * *"})

    assert waiting(scheduler) == ["2026-02-21T03:00:00Z"]


def test_storing_the_same_plan_again_changes_nothing(scheduler: Scheduler) -> None:
    scheduler.put_plan("nightly", **NIGHTLY)
    before = scheduler.audit().events
    scheduler.put_plan("nightly", **NIGHTLY)

    assert scheduler.audit().events == before


def test_a_removed_plan_leaves_nothing_behind_and_can_be_created_again(scheduler: Scheduler) -> None:
    scheduler.put_plan("nightly", **NIGHTLY)
    scheduler.remove_plan("nightly")
    gone = (scheduler.plans().plans, waiting(scheduler))
    scheduler.put_plan("nightly", **NIGHTLY)

    assert gone == ([], [])
    assert waiting(scheduler) == ["2026-02-21T01:30:00Z"]


@pytest.mark.req("JOB-USE-7")
def test_the_trail_names_the_user_and_the_reason(scheduler: Scheduler) -> None:
    scheduler.put_plan("nightly", **NIGHTLY)
    scheduler.pause_plan("nightly", reason="moving house")
    scheduler.resume_plan("nightly")
    scheduler.remove_plan("nightly")

    recorded = [
        (event.actor.id, event.reason, event.object_id)
        for event in scheduler.audit(event_type="policy_override").events
    ]
    reasons = ["put", "moving house", "resumed", "removed"]
    assert recorded == [("ann", reason, "plan:nightly") for reason in reasons]
    assert check(scheduler.calls.store) == []


@pytest.mark.parametrize("call", ["pause_plan", "resume_plan", "run_now", "remove_plan"])
def test_an_unknown_plan_is_not_found(scheduler: Scheduler, call: str) -> None:
    assert refused(getattr(scheduler, call), "unknown") == (404, "plan_not_found")


def test_every_fault_of_a_plan_is_reported(scheduler: Scheduler) -> None:
    with pytest.raises(JobRefused) as caught:
        scheduler.put_plan("No Name", cron="a b", zone="Europe/Berln", object_type="cat", action="decay", queue="!")  # type: ignore[call-arg]

    fields = {fault["field"]: fault["code"] for fault in caught.value.details["fields"]}
    assert fields == {
        "name": "invalid_field",
        "cron": "invalid_field",
        "zone": "invalid_field",
        "object_type": "invalid_enum",
        "object_id": "missing_field",
        "queue": "invalid_field",
    }
    assert scheduler.plans().plans == []


def test_the_number_of_plans_is_limited(scheduler: Scheduler) -> None:
    entry = Recurring("p", "@daily", "memory", "m", "decay")
    many = [replace(entry, name=f"p{number}") for number in range(PLANS_MOST)]
    scheduler.calls.change_plans(lambda tx, now: [plans.declare(tx, now, one) for one in many])

    assert refused(scheduler.put_plan, "one-more", **NIGHTLY) == (409, "too_many_plans")


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"cron": "0 4 * *"}, "cron: '0 4 * *' is not a cron expression: five fields are needed"),
        ({"cron": "61 * * * *"}, "cron: '61' cannot be the minute of a cron expression; allowed: 0-59, with lists, "),
        ({"zone": "Europe/Berln"}, "zone: unknown time zone 'Europe/Berln'; "),
    ],
)
def test_faults_of_a_plan_are_explained_in_a_sentence(
    scheduler: Scheduler, wrong: dict[str, str], expected: str
) -> None:
    with pytest.raises(JobRefused) as caught:
        scheduler.put_plan("nightly", **{**NIGHTLY, **wrong})

    assert str(caught.value).startswith(expected)


@pytest.mark.req("JOB-USE-1", "JOB-USE-7")
def test_every_job_of_a_plan_has_its_payload_and_the_trail_has_the_digest(scheduler: Scheduler) -> None:
    plan = scheduler.put_plan("nightly", **NIGHTLY, payload={"by": 2}).plan
    job = scheduler.run_now("nightly").job

    [event] = scheduler.audit(event_type="policy_override").events
    assert plan.payload == job.payload == {"by": 2}
    assert scheduler.show(str(plan.job_id)).job.payload == {"by": 2}
    assert ("payload" in event.after, len(event.after["payload_sha256"])) == (False, 64)


@pytest.mark.req("JOB-USE-7")
@pytest.mark.parametrize("removed", [False, True])
def test_a_new_payload_of_a_plan_applies_to_its_next_occurrence(scheduler: Scheduler, removed: bool) -> None:
    scheduler.put_plan("nightly", **NIGHTLY, payload={"by": 2})
    if removed:
        scheduler.remove_plan("nightly")
    plan = scheduler.put_plan("nightly", **NIGHTLY, payload={"by": 3}).plan

    [job] = scheduler.list(status="queued").jobs
    assert (job.job_id, job.payload) == (plan.job_id, {"by": 3})
    assert check(scheduler.calls.store) == []


def test_an_invalid_payload_is_rejected(scheduler: Scheduler) -> None:
    assert refused(scheduler.put_plan, "nightly", **NIGHTLY, payload="x" * 70_000) == (422, "invalid_field")
