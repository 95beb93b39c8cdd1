"""Matching a truck to the map: edges that pass a place twice, nodes, headings."""

from decimal import Decimal

import pytest

from pendula.fleet import AtNode, CompiledMap, OnEdge, Planner, Pose, RoutePlan, Snapper, compile_map, plan_route
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.map.routes import SnapParams
from tests.fleet.routes import on, route
from tests.fleet.sites import scene


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
            # Noise towards the other passage.
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


@pytest.mark.req("FLT-PLAN-2")
def test_the_anchor_lies_on_the_edge_and_not_in_the_nearest_node() -> None:
    sketch = Sketch("beside")
    for name, x, y in (("A", 0, 0), ("B", 10, 0), ("C", 4.2, 1.0), ("D", 4.2, 12)):
        sketch.node(name, x, y)
    sketch.lane("A", "B")
    sketch.lane("C", "D")
    site = compile_map(sketch.done(), [FL_STD])

    anchor = Snapper(site).anchor(Pose(4_200_000, 0, 0))

    assert anchor == on(site, "A->B", 4.2)
    assert isinstance(anchor, OnEdge)
    planned = route(site, anchor, "B")
    assert planned.form()["start"] == {"kind": "ON_EDGE", "edgeKey": "A->B", "sM": Decimal("4.2")}
    assert planned.start_um == 4_200_000


@pytest.mark.req("FLT-PLAN-2")
@pytest.mark.parametrize(("x", "node"), [(9_850_000, True), (9_840_000, False)])
def test_near_a_node_the_anchor_is_the_node(x: int, node: bool) -> None:
    site = scene("hall-demo")

    anchor = Snapper(site).anchor(Pose(x, 0, 0))

    assert isinstance(anchor, AtNode) is node


@pytest.mark.req("FLT-FAIL-11")
@pytest.mark.parametrize(
    ("x", "yaw", "found"),
    [(9_960_000, 0, 9_960_000), (10_040_000, 0, None), (-40_000, 0, None), (9_960_000, 3_141_593, None)],
)
def test_a_truck_on_a_named_edge_is_found_between_its_nodes(x: int, yaw: int, found: int | None) -> None:
    site = scene("hall-demo")
    edge = site.edge_number["LM1->LM2"]

    assert Snapper(site).on_edge(Pose(x, 0, yaw), edge) == (None if found is None else OnEdge(edge, found))


@pytest.mark.req("FLT-PLAN-3")
@pytest.mark.parametrize(
    ("yaw", "key"), [(0, "LM1->LM2"), (499_000, "LM1->LM2"), (3_141_593, "LM2->LM1"), (-2_700_000, "LM2->LM1")]
)
def test_the_anchor_agrees_with_the_heading(yaw: int, key: str) -> None:
    site = scene("hall-demo")

    assert Snapper(site).anchor(Pose(4_000_000, 0, yaw)) == on(site, key, 4.0 if key == "LM1->LM2" else 6.0)


@pytest.mark.req("FLT-PLAN-3", "FLT-GEO-3")
def test_on_a_backward_edge_the_truck_looks_back() -> None:
    """Into the spur backward and out of it forward the truck has the same yaw; the last progress decides."""
    site = scene("hall-demo")
    into, out = site.edge_number["LM2->AP1"], site.edge_number["AP1->LM2"]
    snapper, pose = Snapper(site), Pose(13_000_000, 0, 3_141_593)

    assert snapper.anchor(pose, previous_edge=into) == OnEdge(into, 3_000_000)
    assert snapper.anchor(pose, previous_edge=out) == OnEdge(out, 3_000_000)
    assert snapper.anchor(pose, route_edges=(into,)) == OnEdge(into, 3_000_000)
    assert snapper.anchor(pose) == OnEdge(out, 3_000_000)
    assert snapper.anchor(replace_yaw(pose, 0)) is None


def replace_yaw(pose: Pose, yaw: int) -> Pose:
    return Pose(pose.x_um, pose.y_um, yaw)


@pytest.mark.req("FLT-PLAN-3")
@pytest.mark.parametrize("pose", [Pose(4_000_000, 0, 1_570_796), Pose(4_000_000, -250_000, 0), Pose(10**9, 0, 0)])
def test_without_an_admissible_edge_there_is_no_anchor(pose: Pose) -> None:
    assert Snapper(scene("hall-demo")).anchor(pose) is None
