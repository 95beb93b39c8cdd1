"""The cost of a tick in counted units: no clock is read, so results do not depend on the machine."""

import numpy as np
import pytest

from pendula.fleet.tick import TickInputs
from pendula.fleet.tick.draft import Draft, efforts
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.phases import PHASES
from pendula.fleet.traffic.grants import Effort
from pendula.fleet.traffic.lock_state import Exclusion
from tests.fleet.sites import scene
from tests.fleet.tick.test_traffic import hall
from tests.fleet.tick.yard import Yard

TICKS = 200


def drafted(yard: Yard) -> Draft:
    """The next tick, computed but not committed."""
    reports = tuple(yard._report(driver) for driver in yard.drivers.values())
    draft = yard.traffic._draft(TickInputs(yard.now + 100, reports))
    draft.locks = draft.locks.copy()
    for phase in PHASES:
        phase(draft)
    return draft


@pytest.mark.req("FLT-PERF-1", "FLT-PERF-2", "FLT-COR-9")
def test_no_truck_requests_more_units_than_lie_within_its_lookahead() -> None:
    yard, most = hall(4), 0
    for _ in range(TICKS):
        for record in yard.step().scene.records:
            if record.track is not None and record.granted:
                # The unit before the last did not cover all that the truck can use, so it requested one more.
                assert record.track.stands[record.granted - 1] < record.at_um + record.asked_um
                most = max(most, record.granted)

    assert most > 1


@pytest.mark.req("FLT-PERF-1", "FLT-PERF-2")
def test_the_search_of_a_tick_is_counted_and_stays_within_its_budget() -> None:
    yard, spent = hall(4), []
    for _ in range(TICKS):
        yard.run(1)
        draft = drafted(yard)
        # The last search of a tick may cost more than was left, by no more than one search costs.
        spent.append(draft.params.search_nodes_per_tick - draft.effort.left)

    assert min(spent) == 0
    assert 0 < max(spent) <= draft.params.search_nodes_per_tick + 2 * draft.params.search_nodes


@pytest.mark.req("FLT-PERF-2")
def test_conflicts_of_a_resource_are_looked_up_without_a_search() -> None:
    exclusion = Exclusion.of_site(scene("reference-hall"))

    for resource in (0, len(exclusion) // 2, len(exclusion) - 1):
        row = exclusion.row(resource)
        assert np.shares_memory(row, exclusion.to)
        assert len(row) == exclusion.at[resource + 1] - exclusion.at[resource]


@pytest.mark.req("FLT-LIVE-12")
def test_a_search_gets_fewer_looks_with_less_budget_or_costlier_looks() -> None:
    assert Effort(most=20).looks() == 160
    assert Effort(left=3, most=20).looks() == 48
    assert Effort(most=20, looks_a_branch=4).looks() == 80


@pytest.mark.req("FLT-LIVE-12")
def test_a_search_in_a_large_fleet_gets_fewer_looks() -> None:
    most = [efforts(TrafficParams(), trucks)[0].looks() for trucks in (1, 20, 40, 100, 200, 1000)]

    assert most == [160, 160, 160, 60, 40, 40]
