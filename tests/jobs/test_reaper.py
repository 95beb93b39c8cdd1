"""Expired leases are reclaimed without a pull: in the background of the server, and by a worker with busy handlers."""

import threading
from pathlib import Path

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.model import Policy
from pendula.jobs.reaper import Reaper
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.settings_file import Configured
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.alerts import to_log
from pendula.jobs.worker import Context, Handlers, Worker, handler
from pendula.server.schedulers.jobs import routes
from tests.jobs.stores import Clock

PATIENCE = 30.0


class ReclaimSignal(Calls):
    """Signals when leases were reclaimed."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        super().__init__(SqliteStore(folder / "jobs.db"), Policy(), clock)
        self.reclaimed_leases = threading.Event()

    def reclaim(self, *arguments: object) -> int:
        reclaimed = super().reclaim(*arguments)  # type: ignore[arg-type]
        if reclaimed:
            self.reclaimed_leases.set()
        return reclaimed


def lost(scheduler: Scheduler, clock: Clock) -> str:
    """The id of a job whose worker is gone and whose lease has expired."""
    scheduler.enqueue(object_type="memory", object_id="m", action="verify")
    [job] = scheduler.pull(worker_id="gone", lease_sec=1).jobs
    clock.pass_by(2)
    return str(job.job_id)


@pytest.mark.req("JOB-V2-8", "JOB-FAIL-12")
def test_an_expired_lease_is_reclaimed_without_a_pull(tmp_path: Path) -> None:
    clock = Clock()
    calls = ReclaimSignal(tmp_path, clock)
    with Scheduler(calls) as scheduler:
        job_id = lost(scheduler, clock)
        reaper = Reaper(calls, look_sec=0.01)
        reaper.start()

        assert calls.reclaimed_leases.wait(PATIENCE)

        reaper.close()
        assert (scheduler.show(job_id).job.status, scheduler.show(job_id).job.attempt) == ("queued", 1)


@pytest.mark.req("JOB-V2-8")
def test_a_server_reclaims_expired_leases(tmp_path: Path) -> None:
    with Scheduler(ReclaimSignal(tmp_path, Clock())) as scheduler:
        services = [type(part) for part in routes._upkeep(Configured(), to_log, scheduler.calls)]

    assert Reaper in services


@pytest.mark.req("JOB-V2-8", "JOB-WRK-13")
def test_a_worker_with_busy_handlers_reclaims_expired_leases_of_others(tmp_path: Path) -> None:
    clock = Clock()
    calls = ReclaimSignal(tmp_path, clock)
    signalled: list[bool] = []

    @handler("memory", "decay")
    def decay(context: Context) -> None:
        lost(scheduler, clock)
        signalled.append(calls.reclaimed_leases.wait(PATIENCE))

    with Scheduler(calls) as scheduler:
        scheduler.enqueue(object_type="memory", object_id="own", action="decay")
        Worker(scheduler, Handlers([decay]), lease_sec=1000, actions=["decay"], max_jobs=1).run()

    assert signalled == [True]
