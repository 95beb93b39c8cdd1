"""Edges and routes that come by the same place twice: a truck stays on the passage it is on."""

import pytest

from pendula.fleet import CompiledMap, OnEdge, Planner, Pose, RoutePlan, Snapper, compile_map, plan_route
from pendula.fleet.routing.snapping import SnapParams
from pendula.fleet.samples.scenes import FL_STD, Sketch


def loop() -> CompiledMap:
    """One edge with a loop in it; both passages of its crossing go east, a little up and a little down."""
    sketch = Sketch("loop")
    sketch.node("A", -5, 0)
    sketch.node("B", 0, 0)
    sketch.node("C", 30, 0)
    sketch.node("D", 35, 0)
    sketch.lane("A", "B")
    sketch.bezier("B", "C", (60, 20), (-30, 20), back=False)
    sketch.lane("C", "D")
    return compile_map(sketch.done(), [FL_STD])


def crossing(site: CompiledMap) -> tuple[int, int, int]:
    """The edge, and its positions at both passages."""
    edge = site.edge_number["B->C"]
    path = site.network.edges[edge].path
    first = next(s for s in range(0, path.length_um, 1000) if path.point(s)[0] >= 15_000_000)
    return edge, first, path.length_um - first


def planned(site: CompiledMap) -> RoutePlan:
    made = plan_route(Planner(site, FL_STD), "R", "r", OnEdge(site.edge_number["A->B"], 0), (site.node_number["D"],))
    assert isinstance(made, RoutePlan)
    return made


@pytest.mark.req("FLT-PLAN-6", "FLT-PLAN-14")
def test_a_truck_does_not_jump_at_the_crossing_of_a_route_with_itself() -> None:
    site = loop()
    route = planned(site)
    _, first, second = crossing(site)
    begin = route.segments[1].route_s0_um

    for passage in (first, second):
        last = begin + passage - 1_000_000
        for step in range(-1_000_000, 1_000_001, 20_000):
            on = route.pose_at(begin + passage + step)
            # Noise to the side on which the other passage is the closer one.
            found = route.project(Pose(on.x_um, on.y_um + 40_000, on.yaw_urad), near_um=last)
            assert found is not None
            assert abs(found.s_on_route_um - (begin + passage + step)) < 100_000
            last = found.s_on_route_um


@pytest.mark.req("FLT-PLAN-6")
def test_a_truck_that_is_not_near_its_last_position_is_still_found() -> None:
    route = planned(loop())

    for s in range(0, route.length_um, 777_000):
        for away in (-20_000_000, -3_050_000, 3_000_000, 3_100_000, 20_000_000):
            found = route.project(route.pose_at(s), near_um=s + away)
            assert found is not None
            assert abs(found.s_on_route_um - s) <= 10


@pytest.mark.req("FLT-PLAN-2", "FLT-PLAN-3")
def test_an_anchor_on_a_crossing_is_on_the_passage_whose_heading_agrees() -> None:
    site = loop()
    edge, first, second = crossing(site)
    path = site.network.edges[edge].path
    snapper = Snapper(site)

    for passage, other in ((first, second), (second, first)):
        x, y = path.point(other + 30_000)
        anchor = snapper.anchor(Pose(x, y, path.heading(passage)))
        assert isinstance(anchor, OnEdge)
        assert abs(anchor.s_um - passage) < 200_000


@pytest.mark.req("FLT-PLAN-3")
def test_where_both_headings_agree_the_last_position_decides() -> None:
    site = loop()
    edge, first, second = crossing(site)
    path = site.network.edges[edge].path
    x, y = path.point(first)
    snapper = Snapper(site, SnapParams(heading_urad=3_000_000))

    for passage in (first, second):
        anchor = snapper.anchor(Pose(x, y, path.heading(passage)), edge, (), passage - 500_000)
        assert isinstance(anchor, OnEdge)
        assert abs(anchor.s_um - passage) < 200_000
