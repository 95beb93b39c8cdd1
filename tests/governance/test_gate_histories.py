"""A campaign against the gates: they change at any point between pull, begin and finish; no closed gate is passed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pendula.jobs import Policy, Scheduler
from pendula.jobs.calls import Calls
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.model import Durability
from pendula.jobs.scheduler_calls import SchedulerCalls
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.server.schedulers.jobs.routes import jobs_scheduler
from pendula.server.schedulers.jobs.service import FILE
from pendula.server.settings import Settings
from tests.governance.dying_workers import trail_violations
from tests.governance.gate_histories import UP, Histories, wrong
from tests.jobs.interfaces import ManualClock
from tests.server.living import LiveServer

QUICK = Policy(durability=Durability.NORMAL, pull_default_limit=1)
IN_PROCESS, OVER_HTTP = 200, 50


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def scheduler(tmp_path: Path, clock: ManualClock) -> Iterator[Scheduler]:
    with Scheduler(Calls(SqliteStore(tmp_path / "jobs.db", durability=QUICK.durability), QUICK, clock)) as scheduler:
        yield scheduler


@pytest.fixture
def both(tmp_path: Path, clock: ManualClock) -> Iterator[list[SchedulerCalls]]:
    """A server, and another process on the same store."""
    data = tmp_path / "data"
    with (
        LiveServer(Settings(port=0, data=str(data)), [jobs_scheduler(QUICK, clock=clock)]) as server,
        RemoteScheduler(server.url) as remote,
        Scheduler(Calls(SqliteStore(next(data.rglob(FILE)), durability=QUICK.durability), QUICK, clock)) as beside,
    ):
        yield [beside, remote]


def _play(seed: int, interfaces: list[SchedulerCalls], count: int) -> None:
    histories = Histories(seed, interfaces)
    for _ in range(count):
        histories.play()

    assert [problem for moved in histories.moved if (problem := wrong(moved)) is not None] == []
    assert sum(moved.after in UP for moved in histories.moved) > count // 20
    beside = interfaces[0]
    assert isinstance(beside, Scheduler)
    assert beside.calls.store.read(trail_violations) == []
    assert check(beside.calls.store) == []


@pytest.mark.req("JOB-GATE-1", "JOB-GATE-2", "JOB-GATE-4", "JOB-GATE-5")
@pytest.mark.parametrize("seed", [1, pytest.param(range(2, 12), marks=pytest.mark.long, id="many")])
def test_no_high_risk_change_passes_a_closed_gate(seed: int | range, scheduler: Scheduler) -> None:
    for one in [seed] if isinstance(seed, int) else seed:
        _play(one, [scheduler], IN_PROCESS)


@pytest.mark.req("JOB-GATE-1", "JOB-GATE-2", "JOB-GATE-4", "JOB-GATE-5", "JOB-API-5")
@pytest.mark.parametrize("seed", [1, pytest.param(range(2, 13), marks=pytest.mark.long, id="many")])
def test_no_change_passes_a_gate_closed_over_http_or_beside_a_server(
    seed: int | range, both: list[SchedulerCalls]
) -> None:
    for one in [seed] if isinstance(seed, int) else seed:
        _play(one, both, OVER_HTTP)
