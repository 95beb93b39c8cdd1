"""The hall of the demo: what goes wrong comes by chance, and what nobody clears is cleared."""

import pytest

from pendula.fleet.engine import FleetEngine
from pendula.fleet.scenarios import Run, shipped
from pendula.server.schedulers.fleet.demo import PATIENCE_MS, Caretaker, demo_config

pytestmark = pytest.mark.anyio


class _Loop:
    """As much of a loop as the caretaker looks at."""

    def __init__(self, run: Run) -> None:
        self.engine = run.engine


async def test_a_truck_that_waits_for_a_person_is_forgotten_after_a_while_only() -> None:
    run = Run(shipped("hall"))
    run.step()
    caretaker = Caretaker(_Loop(run))  # type: ignore[arg-type]
    run.traffic.records[0].latched = "STOP_STUCK"
    early = caretaker.forgotten()
    run.traffic.now_ms += PATIENCE_MS
    late = caretaker.forgotten()
    run.traffic.records[0].latched = None
    cleared = caretaker.forgotten()
    await caretaker.close()

    assert (early, late, cleared) == ([], ["R1"], [])


async def test_the_streams_of_the_demo_never_end() -> None:
    streams = FleetEngine.create(demo_config()).dispatch.book.flows.values()

    assert [one.stream.last_ms for one in streams] == [None, None]
