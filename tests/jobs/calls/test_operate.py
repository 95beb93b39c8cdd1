"""Corners of the calls on one job."""

from pathlib import Path

import pytest

from pendula.jobs import JobRefused
from tests.jobs.stores import opened

JOB = {"object_type": "memory", "object_id": "m", "action": "verify"}


@pytest.mark.req("JOB-API-12", "JOB-API-4")
def test_a_second_cancel_is_refused_by_the_state(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB)["job"]["job_id"]
    scheduler.cancel(job_id, reason="x")

    with pytest.raises(JobRefused) as again:
        scheduler.cancel(job_id, reason="x")

    assert (again.value.code, again.value.status) == ("job_not_queued", 409)
    assert str(again.value) == f"{job_id} has failed; only a job that waits or runs can be cancelled"
    scheduler.close()
