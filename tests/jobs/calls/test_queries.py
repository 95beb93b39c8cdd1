"""The metrics against the worked example of the requirement document."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.stores import opened

JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}


@pytest.mark.req("JOB-MET-1", "JOB-MET-2")
def test_metrics_match_the_worked_example(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    for name in ("at once", "after one retry", "dies"):
        scheduler.enqueue(**{**JOB, "object_id": name})
    tries = 0
    while jobs := scheduler.pull(worker_id="w").jobs:
        tries += 1
        for job in jobs:
            if job.object_id == "at once" or (job.object_id == "after one retry" and tries == 2):
                scheduler.ack(job.job_id, result="succeeded")
            else:
                scheduler.fail(job.job_id, error="x", retry_delay_sec=0)
        clock.pass_by(1)

    found = scheduler.metrics()

    assert (found.job_retry_rate, found.job_success_rate) == (Decimal("0.5"), Decimal("0.666666667"))
    assert (found.dead_letter_count, found.jobs_due_count, found.jobs_lag_seconds) == (1, 0, 0)
    clock.pass_by(3601)
    later = scheduler.metrics()
    assert (later.job_retry_rate, later.job_success_rate, later.dead_letter_count) == (None, None, 1)
    scheduler.close()
