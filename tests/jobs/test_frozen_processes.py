"""A process frozen for longer than its lease: every write after it continues is rejected."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused
from pendula.jobs.worker.effects import once
from pendula.jobs.worker.handlers import Context, Done
from pendula.jobs.worker.leases import LeaseGone
from pendula.jobs.worker.worker import Worker
from tests.jobs.crashing import (
    ReportPipe,
    SharedClock,
    assert_sound,
    counting,
    forked,
    frozen,
    made,
    scheduler,
)
from tests.jobs.workers import MEMORY, decays
from tests.waiting import read, status_of


class HaltPoint:
    """A point at which a child reports its arrival and waits to be released."""

    def __init__(self) -> None:
        self.reports = ReportPipe()
        self._reading, self._writing = os.pipe()

    def reach(self) -> None:
        self.reports.write(reach=True)
        read(self._reading, 1)

    def release(self) -> None:
        os.write(self._writing, b"x")

    def answers(self) -> list[dict[str, Any]]:
        """The reports of the child after it continued."""
        os.close(self._reading)
        os.close(self._writing)
        return self.reports.all()[1:]


def frozen_worker(folder: Path, clock: SharedClock, halt: HaltPoint, *, after_effect: bool) -> None:
    def decay(context: Context) -> Done:
        if after_effect:
            context.once(counting("frozen"))
        halt.reach()
        if not after_effect:
            with pytest.raises(LeaseGone):
                context.once(counting("frozen"))
        return Done(outcome="frozen", next_action_at=None)

    with scheduler(folder, clock=clock) as client:
        # By its own clock no time has passed, so it renews nothing and assumes that it holds its lease.
        tally = Worker(client, decays(decay), worker_id="frozen", max_jobs=1, ticks=lambda: 0).run()
        halt.reports.write(dropped=tally.dropped, succeeded=tally.succeeded, failed=tally.failed)


@pytest.mark.req("JOB-ACK-8")
@pytest.mark.parametrize("after_effect", [False, True])
def test_a_worker_frozen_past_its_lease_changes_nothing_when_it_resumes(tmp_path: Path, after_effect: bool) -> None:
    folder, clock, halt = made(tmp_path), SharedClock(), HaltPoint()
    with scheduler(folder, clock=clock) as client:
        client.enqueue(**MEMORY, idempotency_key="k")
    child = forked(lambda: frozen_worker(folder, clock, halt, after_effect=after_effect), halt.reports)
    halt.reports.wait_for(1)
    with frozen(child, folder), scheduler(folder, clock=clock) as client:
        clock.pass_by(61)
        other = decays(lambda context: Done(outcome=str(context.once(counting("other")))))
        Worker(client, other, worker_id="other", max_jobs=1, ticks=clock).run()
        before = client.list().jobs
    halt.release()
    status_of(child)
    with scheduler(folder, clock=clock) as client:
        after = client.list().jobs

    assert halt.answers() == [{"dropped": 1, "succeeded": 0, "failed": 0}]
    assert before == after
    assert (after[0].status, after[0].outcome) == ("succeeded", "frozen" if after_effect else "other")
    assert_sound(folder)


def frozen_caller(folder: Path, clock: SharedClock, halt: HaltPoint) -> None:
    """Try every call with the old token, without the checks of a worker."""
    with scheduler(folder, clock=clock) as client:
        [job] = client.pull(worker_id="frozen", lease_sec=60).jobs
        halt.reach()
        proof: dict[str, Any] = {"worker_id": "frozen", "lease_token": job.lease_token}
        late: dict[str, Callable[[], object]] = {
            "ack": lambda: client.ack(job.job_id, result="succeeded", next_action_at=None, **proof),
            "fail": lambda: client.fail(job.job_id, error="x", **proof),
            "renew": lambda: client.renew(job.job_id, **proof),
            "release": lambda: client.release(job.job_id, **proof),
            "effect": lambda: once(client.calls, job, counting("frozen")),
        }
        for name, call in late.items():
            try:
                call()
                halt.reports.write(call=name, code="accepted")
            except (JobRefused, LeaseGone) as refused:
                halt.reports.write(call=name, code=getattr(refused, "reason", refused.code))


@pytest.mark.req("JOB-ACK-8")
@pytest.mark.parametrize(("taken_over", "code"), [(True, "lease_lost"), (False, "lease_expired")])
def test_every_late_write_of_a_frozen_process_is_rejected(tmp_path: Path, taken_over: bool, code: str) -> None:
    folder, clock, halt = made(tmp_path), SharedClock(), HaltPoint()
    with scheduler(folder, clock=clock) as client:
        client.enqueue(**MEMORY, idempotency_key="k")
    child = forked(lambda: frozen_caller(folder, clock, halt), halt.reports)
    halt.reports.wait_for(1)
    with frozen(child, folder), scheduler(folder, clock=clock) as client:
        clock.pass_by(60)
        if taken_over:
            client.pull(worker_id="other")
        [before] = client.list().jobs
    halt.release()
    status_of(child)
    with scheduler(folder, clock=clock) as client:
        [after] = client.list().jobs

    assert halt.answers() == [{"call": call, "code": code} for call in ("ack", "fail", "renew", "release", "effect")]
    assert after == before
    assert_sound(folder)
