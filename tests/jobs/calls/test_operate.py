"""Edge cases of the calls on one job."""

from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused
from tests.jobs.stores import opened

JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}


@pytest.mark.req("JOB-API-12", "JOB-API-4")
def test_a_second_cancel_is_rejected_for_the_state_of_the_job(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB).job.job_id
    scheduler.cancel(job_id, reason="x")

    with pytest.raises(JobRefused) as again:
        scheduler.cancel(job_id, reason="x")

    assert (again.value.code, again.value.status) == ("job_not_queued", 409)
    assert str(again.value) == f"{job_id} has failed; only a queued or running job can be cancelled"
    scheduler.close()


@pytest.mark.req("JOB-ACK-6", "JOB-API-13")
@pytest.mark.parametrize("call", ["ack", "fail", "release", "renew"])
def test_after_a_requeue_a_call_without_a_token_cannot_end_another_workers_delivery(tmp_path: Path, call: str) -> None:
    """The first worker's fail was accepted, its reply was lost, and it repeats the call without a token."""
    scheduler, _ = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB, max_attempts=1).job.job_id
    scheduler.pull(worker_id="first")
    scheduler.fail(job_id, error="x")
    scheduler.requeue(job_id)
    [second] = scheduler.pull(worker_id="second").jobs
    members = {"ack": {"result": "succeeded"}, "fail": {"error": "x"}}.get(call, {})

    with pytest.raises(JobRefused) as refused:
        getattr(scheduler, call)(job_id, **members)

    assert refused.value.code == "lease_token_required"
    assert scheduler.show(job_id).job.worker_id == "second"
    assert scheduler.ack(job_id, result="succeeded", lease_token=second.lease_token).already_acked is False
    scheduler.close()


@pytest.mark.req("JOB-ACK-6")
def test_a_requeued_job_without_deliveries_accepts_an_ack_without_a_token(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB).job.job_id
    scheduler.cancel(job_id)
    scheduler.requeue(job_id)
    scheduler.pull(worker_id="w")

    assert scheduler.ack(job_id, result="succeeded").already_acked is False
    scheduler.close()
