"""The demo hall: random faults, and faults that are cleared automatically."""

import pytest

from pendula.demo.fleet import PATIENCE_MS, FaultClearer, demo_config
from pendula.fleet.engine import FleetEngine
from pendula.fleet.scenarios import Run, shipped

pytestmark = pytest.mark.anyio


class _Loop:
    """The part of a loop that the fault clearer uses."""

    def __init__(self, run: Run) -> None:
        self.engine = run.engine


async def test_a_fault_is_overdue_after_a_while() -> None:
    run = Run(shipped("hall"))
    run.step()
    clearer = FaultClearer(_Loop(run))  # type: ignore[arg-type]
    run.traffic.records[0].latched = "STOP_STUCK"
    early = clearer.overdue()
    run.traffic.now_ms += PATIENCE_MS
    late = clearer.overdue()
    run.traffic.records[0].latched = None
    cleared = clearer.overdue()
    await clearer.close()

    assert (early, late, cleared) == ([], ["R1"], [])


async def test_the_streams_of_the_demo_never_end() -> None:
    streams = FleetEngine.create(demo_config()).dispatch.book.flows.values()

    assert [one.stream.last_ms for one in streams] == [None, None]
