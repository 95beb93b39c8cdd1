"""Another way on is compared with the one in force by one measure."""

from functools import cache

import pytest

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.driving.records import Record, Waiting
from pendula.fleet.routing.replanning import worth_taking
from pendula.fleet.samples import FL_STD
from pendula.fleet.samples.live_maps import spur_grid
from tests.fleet.tick.yard import Yard

DEAR_US = 20_000_000


@cache
def grid() -> CompiledMap:
    return compile_map(spur_grid(4, 3).source, (FL_STD,))


def waiting_in_the_grid(*others: str) -> tuple[Yard, Record]:
    """The first truck has a route by a planner to which all lanes are dear, and waits for its fourth edge; others may
    be about to drive from the right to the left below."""
    yard = Yard(grid(), spur_grid(4, 3).fleet, [FL_STD])
    yard.step()
    planner = yard.planners["FL-STD"]
    for other in others:
        yard.send(other, "T003-000", "T000-000")
        yard.step()
    yard.planners["FL-STD"] = planner.dearer(dict.fromkeys(range(len(grid().network.edges)), DEAR_US))
    yard.send("R001", "T003-002", "T000-000")
    yard.step()
    record = yard.traffic._records[0]
    assert record.track is not None
    edge = record.track.plan.segments[3].edge
    record.waiting = Waiting("WAIT_EDGE_DIRECTION", int(grid().cells.first[edge]), 1, None)
    return yard, record


@pytest.mark.req("FLT-PLAN-9")
def test_a_route_that_was_planned_at_higher_costs_is_not_left_for_one_that_only_looks_cheaper() -> None:
    yard, record = waiting_in_the_grid()
    found = yard.traffic._ways.compared(record, yard.traffic._records)
    assert found is not None
    assert record.track is not None
    plan, old_cost_us = found

    assert worth_taking(record.track.plan.cost_us, plan.cost_us, False)
    assert not worth_taking(old_cost_us, plan.cost_us, False)


@pytest.mark.req("FLT-PLAN-9", "FLT-LIVE-14")
def test_a_way_that_others_are_about_to_drive_the_other_way_costs_more() -> None:
    yard, record = waiting_in_the_grid("R004", "R006")
    compared = yard.traffic._ways.compared
    alone, among = compared(record, ()), compared(record, yard.traffic._records)
    assert alone is not None
    assert among is not None

    assert among[0].cost_us + among[1] > alone[0].cost_us + alone[1]
