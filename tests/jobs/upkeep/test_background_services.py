"""Background services of a program that runs its own workers."""

import logging
from pathlib import Path

import pytest

from pendula.jobs import Context, Handlers, Scheduler, Worker, handler
from pendula.jobs.messages import Recurring
from pendula.jobs.settings_file import Configured
from pendula.jobs.upkeep.background_services import in_background

NIGHTLY = Recurring("nightly", "0 3 * * *", "memory", "mem_1", "decay")


@handler("memory", "verify")
def verify(context: Context) -> None:
    raise ValueError("no evidence")


@pytest.mark.req("JOB-USE-7")
def test_plans_of_the_settings_are_served_within_the_block(tmp_path: Path) -> None:
    with Scheduler.open(tmp_path / "jobs.db") as scheduler, in_background(scheduler, Configured(recurring=(NIGHTLY,))):
        [plan] = scheduler.plans().plans

        assert (plan.name, plan.source) == ("nightly", "settings")
        assert scheduler.show(str(plan.job_id)).job.status == "queued"


def test_the_alert_of_a_dead_letter_is_sent_before_the_block_exits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pendula.jobs")
    with Scheduler.open(tmp_path / "jobs.db") as scheduler:
        with in_background(scheduler):
            scheduler.defer("memory", "mem_1", "verify", max_attempts=1)
            Worker(scheduler, Handlers([verify]), once=True).run()

        assert scheduler.metrics().alerts_waiting == 0
    assert "job.dead_letter" in caplog.text
