"""Routes avoid lanes with opposing routes."""

import pytest

from pendula.fleet import compile_map
from pendula.fleet.compiler.generated_maps import built_warehouse
from pendula.fleet.compiler.samples import FL_STD, reference_hall
from pendula.fleet.map.planner import AtNode, Planner, Way
from pendula.fleet.map.routes import avoidance_us, one_way_us, opposite_edges, opposition_us
from pendula.fleet.map.site import CompiledMap


@pytest.fixture(scope="module")
def hall() -> CompiledMap:
    return compile_map(reference_hall(), [FL_STD])


def keys(site: CompiledMap, planner: Planner, start: str, goal: str) -> list[str]:
    way = planner.way(AtNode(site.node_number[start]), site.node_number[goal])
    assert isinstance(way, Way)
    return [site.network.edges[edge].key for edge in way.edges]


def kept_off(site: CompiledMap, *routes: list[str], milli: int = 3_000) -> Planner:
    planner = Planner(site, FL_STD)
    edges = [[site.edge_number[key] for key in route] for route in routes]
    return planner.with_extra_costs(opposition_us(planner, opposite_edges(site), edges, milli))


@pytest.mark.req("FLT-LIVE-14")
def test_a_route_avoids_a_lane_with_an_opposing_route(hall: CompiledMap) -> None:
    usual = keys(hall, Planner(hall, FL_STD), "A1", "B3")
    back = [f"{key.split('->')[1]}->{key.split('->')[0]}" for key in reversed(usual)]

    found = keys(hall, kept_off(hall, back), "A1", "B3")

    assert not set(found) & set(usual)


@pytest.mark.req("FLT-LIVE-14")
def test_a_route_in_the_same_direction_as_another_costs_nothing_extra(hall: CompiledMap) -> None:
    usual = keys(hall, Planner(hall, FL_STD), "A1", "B3")

    assert keys(hall, kept_off(hall, usual), "A1", "B3") == usual


@pytest.mark.req("FLT-LIVE-14")
def test_every_route_the_other_way_adds_its_share_of_the_cost(hall: CompiledMap) -> None:
    planner, edge = Planner(hall, FL_STD), hall.edge_number["A1->A2"]
    own = planner.drive_us(edge, hall.network.edges[edge].path.length_um)
    back = [hall.edge_number["A2->A1"]]

    assert opposition_us(planner, opposite_edges(hall), [back, back], 1_500) == {edge: 3 * own}


@pytest.mark.req("FLT-LIVE-14")
def test_a_way_to_rest_counts_a_fourth(hall: CompiledMap) -> None:
    planner, edge = Planner(hall, FL_STD), hall.edge_number["A1->A2"]
    own = planner.drive_us(edge, hall.network.edges[edge].path.length_um)
    back = [hall.edge_number["A2->A1"]]

    assert avoidance_us(planner, opposite_edges(hall), [(back, []), ([], back)], 4_000) == {edge: 5 * own}


def test_a_planner_with_extra_costs_does_not_change_the_original(hall: CompiledMap) -> None:
    planner = Planner(hall, FL_STD)
    usual = keys(hall, planner, "A1", "B3")

    planner.with_extra_costs({hall.edge_number[key]: 10**9 for key in usual})

    assert keys(hall, planner, "A1", "B3") == usual


@pytest.mark.req("FLT-LIVE-14")
def test_opposed_streams_circulate_in_one_direction(hall: CompiledMap) -> None:
    planner, number = Planner(hall, FL_STD), hall.node_number
    west, east = number["WEST"], number["EAST"]
    more = one_way_us(planner, opposite_edges(hall), {west: [east], east: [west]}, 2_000)

    there, back = (
        keys(hall, planner.with_extra_costs(more), "WEST", "EAST"),
        keys(hall, planner.with_extra_costs(more), "EAST", "WEST"),
    )

    turned = {f"{key.split('->')[1]}->{key.split('->')[0]}" for key in back}
    assert set(there) & turned == {"WEST->A1", "B3->EAST"}


def test_a_map_without_two_way_lanes_needs_no_preference() -> None:
    site = compile_map(built_warehouse(4, 100).source, [FL_STD])
    number = site.node_number

    assert one_way_us(Planner(site, FL_STD), opposite_edges(site), {number["D00"]: [number["D01"]]}, 2_000) == {}
