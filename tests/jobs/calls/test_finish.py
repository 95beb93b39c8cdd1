"""Edge cases of ack and fail: follow-ups, repeated calls, links, the latest instant."""

from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused, Policy
from pendula.jobs.model import AuditCheck
from pendula.jobs.upkeep.verification import check
from pendula.kernel.time import format_utc
from tests.jobs.stores import opened

JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}


@pytest.mark.req("JOB-ACK-7", "JOB-ACK-4")
def test_every_accepted_next_action_at_gets_its_job(tmp_path: Path) -> None:
    """The clock of the tests advances on each reading, so equality holds for one reading only."""
    scheduler, clock = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB).job.job_id
    scheduler.pull(worker_id="w")

    answer = scheduler.ack(job_id, result="succeeded", next_action_at=format_utc(clock.now + 1))

    assert answer.followup_job_id is not None
    scheduler.close()


@pytest.mark.req("JOB-ACK-7")
def test_the_clients_own_enqueue_of_the_follow_up_is_a_duplicate(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB).job.job_id
    scheduler.pull(worker_id="w")
    at = clock.text(3600)
    answer = scheduler.ack(job_id, result="succeeded", next_action_at=at, next_action="decay")

    own = scheduler.enqueue(**{**JOB, "action": "decay"}, run_at=at)

    assert (own.deduplicated, own.job.job_id) == (True, answer.followup_job_id)
    scheduler.close()


@pytest.mark.req("JOB-FAIL-9")
def test_a_repeated_fail_still_answers_retry_after_the_next_delivery(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    scheduler.enqueue(**JOB)
    [job] = scheduler.pull(worker_id="w1").jobs
    proof: dict[str, Any] = {"job_id": job.job_id, "lease_token": job.lease_token}
    first = scheduler.fail(**proof, error="x", retry_delay_sec=0)
    clock.pass_by(1)
    scheduler.pull(worker_id="w2")

    again = scheduler.fail(**proof, error="x", retry_delay_sec=0)

    assert (first.retry, again.retry, again.already_failed) == (True, True, True)
    assert (again.job.status, again.job.attempt) == ("running", 1)
    scheduler.close()


@pytest.mark.req("JOB-FAIL-1")
def test_a_job_fails_even_if_its_error_has_a_lone_surrogate(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB).job.job_id
    scheduler.pull(worker_id="w")

    failed = scheduler.fail(job_id, error="cannot open \udcff")

    assert failed.job.last_error == "cannot open ?"
    assert check(scheduler.calls.store) == []
    scheduler.close()


def test_a_job_at_the_latest_instant_can_fail(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path, Policy(max_clock_step_sec=10**12))
    end = "9999-12-31T23:59:59.999999Z"
    job_id = scheduler.enqueue(**JOB, run_at=end).job.job_id
    scheduler.pull(worker_id="w", now=end)

    failed = scheduler.fail(job_id, error="x", retry_delay_sec=300)

    assert (failed.retry, failed.job.run_at) == (True, end)
    scheduler.close()


@pytest.mark.req("JOB-ACK-3")
def test_a_strict_link_must_name_an_event_of_the_job_or_of_its_object(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path, Policy(audit_event_check=AuditCheck.STRICT))
    own = scheduler.enqueue(**JOB).job.job_id
    scheduler.enqueue(**{**JOB, "object_id": "other"})
    events = scheduler.audit().events
    [mine] = [event.id for event in events if event.job_id == own]
    [others] = [event.id for event in events if event.job_id != own]
    scheduler.pull(worker_id="w")

    for unknown in (others, "aud_elsewhere", "aud_000000009999"):
        with pytest.raises(JobRefused) as refused:
            scheduler.ack(own, result="succeeded", audit_event_id=unknown)
        assert refused.value.code == "audit_event_unknown"
    assert scheduler.ack(own, result="succeeded", audit_event_id=mine).job.audit_event_id == mine
    scheduler.close()


@pytest.mark.req("JOB-ACK-7")
def test_a_follow_up_is_stored_even_if_another_objects_job_has_its_key(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    due = clock.text(600)
    made = []
    for kind in ("memory", "cognition"):
        scheduler.enqueue(object_type=kind, object_id="x", action="verify", idempotency_key=kind)
        [job] = scheduler.pull(worker_id="w").jobs
        made.append(scheduler.ack(job.job_id, result="succeeded", next_action_at=due).followup_job_id)
    jobs = [scheduler.show(str(job_id)).job for job_id in made]

    assert [(job.object_type, job.status, job.run_at) for job in jobs] == [
        ("memory", "queued", due),
        ("cognition", "queued", due),
    ]
    scheduler.close()


@pytest.mark.req("JOB-ACK-7")
def test_a_cancelled_job_does_not_count_as_the_follow_up(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    due = clock.text(600)
    cancelled = scheduler.enqueue(object_type="memory", object_id="x", action="verify", run_at=due).job.job_id
    scheduler.cancel(cancelled, reason="not wanted")
    scheduler.enqueue(object_type="memory", object_id="x", action="verify")
    [job] = scheduler.pull(worker_id="w").jobs

    followup = scheduler.ack(job.job_id, result="succeeded", next_action_at=due).followup_job_id

    assert followup not in (None, cancelled)
    assert scheduler.show(str(followup)).job.status == "queued"
    scheduler.close()


@pytest.mark.req("JOB-ACK-10")
@pytest.mark.parametrize("outcome", ["transitioned", "noop", "budget_exhausted", "deferred", "o" * 64, None])
def test_every_view_of_a_job_shows_the_outcome_of_its_ack(tmp_path: Path, outcome: str | None) -> None:
    scheduler, _ = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB).job.job_id
    scheduler.pull(worker_id="w")

    answer = scheduler.ack(job_id, result="succeeded", outcome=outcome)

    [listed] = scheduler.list(status="succeeded").jobs
    audited = scheduler.history(job_id).events[-1].after
    places = (answer.job, scheduler.show(job_id).job, listed)
    assert [place.outcome for place in places] == [outcome] * 3
    assert audited["outcome"] == outcome
    scheduler.close()


@pytest.mark.req("JOB-ACK-10")
def test_an_outcome_that_is_too_long_is_rejected_and_the_lease_is_kept(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB).job.job_id
    scheduler.pull(worker_id="w")

    with pytest.raises(JobRefused, match="outcome"):
        scheduler.ack(job_id, result="succeeded", outcome="o" * 65)

    assert scheduler.ack(job_id, result="succeeded", outcome="o").job.outcome == "o"
    scheduler.close()
