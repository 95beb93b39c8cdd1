"""A detour and the route in force are compared by one measure."""

from functools import cache

import pytest
from msgspec.structs import replace

from pendula.fleet import CompiledMap, RoutePlan, compile_map, splice
from pendula.fleet.compiler.generated_maps import spur_grid
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.planner import AtNode, Closed, OnEdge
from pendula.fleet.map.routes import Pose
from pendula.fleet.tick.granting import worth_taking
from pendula.fleet.tick.new_routes import Unfit, adoption
from pendula.fleet.tick.records import Record, Waiting
from tests.fleet.tick.yard import Yard

DEAR_US = 20_000_000


@cache
def grid() -> CompiledMap:
    return compile_map(spur_grid(4, 3).source, (FL_STD,))


def waiting_in_the_grid(*others: str) -> tuple[Yard, Record]:
    """The first truck has a route planned at high costs for all lanes, and waits for its fourth edge; others may be
    about to drive from right to left below."""
    yard = Yard(grid(), spur_grid(4, 3).fleet, [FL_STD])
    yard.step()
    planner = yard.planners["FL-STD"]
    for other in others:
        yard.send(other, "T003-000", "T000-000")
        yard.step()
    yard.planners["FL-STD"] = planner.with_extra_costs(dict.fromkeys(range(len(grid().network.edges)), DEAR_US))
    yard.send("R001", "T003-002", "T000-000")
    yard.step()
    record = yard.traffic._records[0]
    assert record.track is not None
    edge = record.track.plan.segments[3].edge
    record.waiting = Waiting("WAIT_EDGE_DIRECTION", int(grid().cells.first[edge]), 1, None)
    return yard, record


@pytest.mark.req("FLT-PLAN-9")
def test_a_route_planned_at_higher_costs_is_compared_at_current_costs() -> None:
    yard, record = waiting_in_the_grid()
    found = yard.traffic._ways.compared(record, yard.traffic._records)
    assert found is not None
    assert record.track is not None
    plan, old_cost_us = found

    assert worth_taking(record.track.plan.cost_us, plan.cost_us, False)
    assert not worth_taking(old_cost_us, plan.cost_us, False)


@pytest.mark.req("FLT-PLAN-9", "FLT-LIVE-14")
def test_a_way_with_opposing_routes_costs_more() -> None:
    yard, record = waiting_in_the_grid("R004", "R006")
    compared = yard.traffic._ways.compared
    alone, among = compared(record, ()), compared(record, yard.traffic._records)
    assert alone is not None
    assert among is not None

    assert among[0].cost_us + among[1] > alone[0].cost_us + alone[1]


def turned_in_a_crossing() -> tuple[Yard, Record, Closed]:
    """The first truck came from the left, has turned upwards in the second crossing and stands there; its lane up is
    closed, and the others lead straight ahead and back."""
    yard = Yard(grid(), spur_grid(4, 3).fleet, [FL_STD])
    yard.step()
    yard.send("R001", "T001-002", "T000-000")
    yard.step()
    record = yard.traffic._records[0]
    track = record.track
    assert track is not None
    place = next(k for k, act in enumerate(track.acts) if act.node == grid().node_number["J001-000"])
    at_um = track.acts[place].s_um
    record.acted, record.granted, record.at_um = place + 1, track.stands.index(at_um), at_um
    return yard, record, Closed(frozenset({grid().edge_number["J001-000->J001-001"]}))


@pytest.mark.req("FLT-PLAN-13", "FLT-RTP-9")
def test_a_detour_of_a_truck_turned_in_a_node_begins_with_the_turn_into_its_first_edge() -> None:
    yard, record, closed = turned_in_a_crossing()
    plan = yard.traffic._ways.around(record, closed)
    assert plan is not None
    fit = adoption(record, plan, yard.traffic._ground, yard.traffic.params, 10_000)
    assert not isinstance(fit, Unfit)
    first = fit.track.acts[0]

    assert plan.start == AtNode(grid().node_number["J001-000"], 1_570_796)
    assert (first.s_um, first.node, first.yaw_urad) == (0, grid().node_number["J001-000"], 3_141_593)


@pytest.mark.req("FLT-PLAN-13", "FLT-RTP-9")
def test_a_detour_straight_through_the_node_in_which_a_truck_has_turned_is_refused() -> None:
    yard, record, closed = turned_in_a_crossing()
    assert record.track is not None
    old = record.track.plan
    number = grid().node_number
    stops = (number["T001-002"], number["T000-000"])
    straight = splice(yard.planners["FL-STD"], old, record.grant_um, stops, "other", "BLOCKED", closed)
    assert isinstance(straight, RoutePlan)
    assert straight.segments[2].edge == grid().edge_number["J001-000->J002-000"]

    fit = adoption(record, straight, yard.traffic._ground, yard.traffic.params, 10_000)

    assert fit == Unfit("ROUTE_LEAVES_ANOTHER_WAY")


@pytest.mark.req("FLT-FAIL-8", "FLT-PLAN-2")
def test_a_truck_is_matched_to_edges_within_its_own_inflation() -> None:
    exact = replace(
        FL_STD, profile_id="FL-EXACT", localization_error=replace(FL_STD.localization_error, value_um=50_000)
    )
    source, fleet = spur_grid(4, 3).source, spur_grid(4, 3).fleet
    first, *others = fleet.trucks
    mixed = replace(fleet, trucks=(replace(first, profile_id="FL-EXACT"), *others))
    yard = Yard(compile_map(source, (FL_STD, exact)), mixed, [FL_STD, exact])
    for record in yard.traffic._records[:2]:
        # Between two junctions of the lowest lane, which is 12 m long.
        record.pose = Pose(6_000_000, 180_000, 0)
    found = [yard.traffic._ways.anchor(record) for record in yard.traffic._records[:2]]

    assert [type(anchor) for anchor in found] == [type(None), OnEdge]
