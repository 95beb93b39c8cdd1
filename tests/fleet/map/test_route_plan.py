"""Route plans and positions on them."""

import json
from decimal import Decimal

import jsonschema_rs
import numpy as np
import pytest

from pendula.fleet import AtNode, OnEdge, Planner, Pose, RoutePlan, compile_map, plan_route, splice
from pendula.fleet.compiler import samples
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.contracts import parse, schema_of, serialise
from pendula.fleet.map.routes import committed, continued, segments_of
from pendula.fleet.model import MoveStyle
from pendula.kernel.canonical import encode
from pendula.kernel.engine import Refusal
from tests.fleet.documents import GOLDEN
from tests.fleet.routes import on, route
from tests.fleet.sites import SCENES, any_site, names, scene, sketched


@pytest.mark.req("FLT-PLAN-6", "FLT-LIVE-1")
def test_the_route_of_the_contract_is_reproduced() -> None:
    site = scene("hall-demo")
    golden = json.loads((GOLDEN / "RoutePlan.json").read_text(), parse_float=Decimal)

    made = route(site, on(site, "LM1->LM2", 3.0), "AP1", "LM3", rest="PK2").form()
    stops = made.pop("onwardStops")

    assert stops == [1, 2]
    assert encode({**made, "compiledMapHash": ""}) == encode({**golden, "compiledMapHash": ""})
    assert made["compiledMapHash"] == site.compiled_hash


@pytest.mark.req("FLT-PLAN-6")
@pytest.mark.parametrize("name", SCENES)
def test_the_projection_of_a_pose_on_the_route_is_its_position(name: str) -> None:
    site = scene(name)
    planner = Planner(site, FL_STD)
    draw = np.random.default_rng(1)
    checked = 0
    while checked < 200:
        edge, goal = int(draw.integers(len(site.network.edges))), int(draw.integers(len(site.network.nodes)))
        planned = plan_route(planner, "R", "r", OnEdge(edge, 0), (goal,))
        if isinstance(planned, Refusal):
            checked += 5
            continue
        for s in draw.integers(0, planned.length_um + 1, 20).tolist():
            found = planned.project(planned.pose_at(s), near_um=s)
            assert found is not None
            assert abs(found.s_on_route_um - s) <= 10_000
            assert found.lateral_um <= 2
        checked += 20


@pytest.mark.req("FLT-PLAN-6")
@pytest.mark.parametrize("name", SCENES)
def test_a_thousand_positions_of_a_drive_are_found_from_the_last_position(name: str) -> None:
    site = scene(name)
    planner = Planner(site, FL_STD)
    draw = np.random.default_rng(2)
    checked = 0
    for _ in range(200):
        edge, goal = int(draw.integers(len(site.network.edges))), int(draw.integers(len(site.network.nodes)))
        planned = plan_route(planner, "R", "r", OnEdge(edge, 0), (goal,))
        if isinstance(planned, Refusal):
            continue
        last, step = 0, 60_000 + int(draw.integers(100_000))
        for s in range(0, planned.length_um, step):
            pose = planned.pose_at(s)
            found = planned.project(pose, near_um=last)
            assert found is not None
            # When a truck starts to back out by the way it came in, both positions have the same pose.
            near = 10_000 if planned.pose_at(found.s_on_route_um) != pose else 2 * step
            assert abs(found.s_on_route_um - s) <= near
            last = found.s_on_route_um
            checked += 1
        if checked >= 1000:
            break
    assert checked >= 1000


@pytest.mark.req("FLT-PLAN-6", "FLT-PLAN-14")
@pytest.mark.parametrize("noise", [0, 30_000])
def test_a_truck_that_backs_out_by_the_way_it_came_in_is_followed(noise: int) -> None:
    sketch = Sketch("in-and-out")
    sketch.node("A", 0, 0)
    sketch.node("B", 10, 0)
    sketch.lane("A", "B", back=False)
    sketch.lane("B", "A", back=False, style=MoveStyle.BACKWARD)
    site = compile_map(sketch.done(), [FL_STD])
    edges = site.edge_number["A->B"], site.edge_number["B->A"]
    way = RoutePlan("r", 1, "R", site, OnEdge(edges[0], 0), 0, segments_of(site, edges), 0, "TEST")
    draw = np.random.default_rng(3)

    last = 0
    for s in range(0, way.length_um, 100_000):
        pose = way.pose_at(s)
        shaken = Pose(pose.x_um + int(draw.integers(-noise, noise + 1)), pose.y_um, pose.yaw_urad)
        found = way.project(shaken, near_um=last)
        assert found is not None
        assert abs(found.s_on_route_um - s) <= (250_000 if abs(s - 10_000_000) < 300_000 else noise + 1)
        last = found.s_on_route_um


@pytest.mark.req("FLT-PLAN-6")
@pytest.mark.parametrize("name", names(4))
def test_curved_routes_are_projected_without_knowing_where_to_look(name: str) -> None:
    site = any_site(name)
    planned = plan_route(Planner(site, FL_STD), "R", "r", OnEdge(0, 0), (len(site.network.nodes) - 1,))
    if isinstance(planned, Refusal):
        return
    for s in range(0, planned.length_um, 170_000):
        found = planned.project(planned.pose_at(s))
        assert found is not None
        again = planned.pose_at(found.s_on_route_um)
        assert abs(again.x_um - planned.pose_at(s).x_um) <= 10_000
        assert abs(again.y_um - planned.pose_at(s).y_um) <= 10_000


@pytest.mark.req("FLT-PLAN-6")
def test_errors_and_confidence_of_a_projection() -> None:
    site = scene("hall-demo")
    planned = route(site, on(site, "LM1->LM2", 0.0), "AP1")

    found = planned.project(Pose(4_200_000, 20_000, 10_000))
    far = planned.project(Pose(4_200_000, 200_000, 0))

    assert found is not None
    assert (found.segment, found.s_on_segment_um, found.s_on_route_um) == (0, 4_200_000, 4_200_000)
    assert (found.lateral_um, found.heading_error_urad, found.confidence_ppm) == (20_000, 10_000, 950_000)
    assert far is not None
    assert far.confidence_ppm == 500_000


@pytest.mark.req("FLT-PLAN-6")
def test_the_last_position_distinguishes_the_way_in_from_the_way_out() -> None:
    """Into a spur backward and out of it forward: the same places, with the same yaw."""
    site = scene("hall-demo")
    number = site.edge_number
    segments = segments_of(site, (number["LM2->AP1"], number["AP1->LM2"]))
    there_and_back = RoutePlan("r", 1, "R", site, AtNode(0), 0, segments, 0, "")
    pose = Pose(13_000_000, 0, 3_141_593)

    places = [there_and_back.project(pose, near_um=near) for near in (None, 2_000_000, 10_000_000)]

    assert [place and place.s_on_route_um for place in places] == [3_000_000, 3_000_000, 9_000_000]


@pytest.mark.req("FLT-PLAN-5")
def test_a_route_ends_at_the_end_of_the_edge_into_its_goal() -> None:
    site = scene("hall-demo")
    planned = route(site, on(site, "LM1->LM2", 3.0), "AP1")

    assert planned.pose_at(planned.length_um) == Pose(16_000_000, 0, 3_141_593)
    assert planned.pose_at(10_000_000) == Pose(10_000_000, 0, 0)
    assert planned.pose_at(10_000_001).yaw_urad == 3_141_593
    assert planned.segments[-1].must_stop


@pytest.mark.req("FLT-PLAN-5")
def test_an_empty_route_stands_in_its_node() -> None:
    site = scene("hall-demo")
    planned = route(site, AtNode(site.node_number["PK1"], 77), "PK1")

    assert (planned.segments, planned.length_um, planned.cost_us) == ((), 0, 0)
    assert planned.pose_at(0) == Pose(2_000_000, -12_000_000, 77)
    assert planned.project(planned.pose_at(0)) is None


@pytest.mark.req("FLT-PLAN-10", "FLT-PLAN-11")
def test_a_revision_keeps_everything_up_to_the_first_node_beyond_the_stop_line() -> None:
    site = scene("ring-with-bypass")
    planner = Planner(site, FL_STD)
    old = route(site, on(site, "D->M", 1.0), "N")
    assert [site.network.edges[segment.edge].key for segment in old.segments] == ["D->M", "M->N"]

    new = splice(planner, old, 15_000_000, (site.node_number["A"],), "route-R2-10", "TASK_CHANGED")

    assert isinstance(new, RoutePlan)
    assert [site.network.edges[segment.edge].key for segment in new.segments][:2] == ["D->M", "M->N"]
    assert (new.route_id, new.revision) == ("route-R2-10", 2)
    assert site.network.edges[new.segments[-1].edge].end == site.node_number["A"]


@pytest.mark.req("FLT-PLAN-10")
def test_a_revision_to_the_same_goal_keeps_its_route_id() -> None:
    site = scene("ring-with-bypass")
    old = route(site, on(site, "D->M", 1.0), "N")

    new = splice(Planner(site, FL_STD), old, 9_000_000, (site.node_number["N"],), "other", "BLOCKED")

    assert isinstance(new, RoutePlan)
    assert (new.route_id, new.revision) == ("route-R2-9", 2)
    assert new.segments == old.segments
    assert new.cost_us == old.cost_us


@pytest.mark.req("FLT-PLAN-11")
@pytest.mark.parametrize(
    ("stop_line", "kept"), [(0, 1), (5_000_000, 1), (10_000_000, 1), (10_000_001, 2), (99_000_000, 2)]
)
def test_the_committed_part_of_a_route_ends_in_a_node(stop_line: int, kept: int) -> None:
    site = scene("ring-with-bypass")

    assert committed(route(site, on(site, "D->M", 1.0), "N"), stop_line) == kept


@pytest.mark.req("FLT-PLAN-12")
def test_a_route_whose_way_home_is_missing_is_refused() -> None:
    site = scene("hall-demo")
    number = site.node_number

    planned = plan_route(Planner(site, FL_STD), "R", "r", AtNode(number["PK1"]), (number["AP1"],), number["LM7"])

    assert isinstance(planned, Refusal)
    assert planned.facts["goal"] == "LM7"


@pytest.mark.req("FLT-PLAN-6")
def test_the_projection_continues_past_a_node() -> None:
    sketch = sketched(("A", 0, 0), ("B", 10, 0), ("C", 20, 0))
    sketch.chain("A", "B", "C")
    site = compile_map(sketch.done(), [FL_STD])
    route = plan_route(Planner(site, FL_STD), "R", "r", OnEdge(site.edge_number["A->B"], 0), (2,))
    assert isinstance(route, RoutePlan)
    near = 9_900_000
    for s in range(9_900_000, 10_400_000, 50_000):
        found = route.project(route.pose_at(s), near_um=near)
        assert found is not None
        assert (abs(found.s_on_route_um - s) <= 10_000, found.lateral_um) == (True, 0)
        near = found.s_on_route_um


@pytest.mark.req("FLT-PLAN-7", "FLT-PLAN-9")
def test_a_revision_counts_the_first_turn_too() -> None:
    site = compile_map(samples.plus_crossing(), [FL_STD])
    number, planner = site.node_number, Planner(site, FL_STD)
    old = plan_route(planner, "R", "r", AtNode(number["W"], 3_141_593), (number["E"],))
    assert isinstance(old, RoutePlan)
    new = splice(planner, old, 1_000_000, (number["E"],), "x", "y")
    assert isinstance(new, RoutePlan)
    assert new.cost_us == old.cost_us


@pytest.mark.req("FLT-LIVE-1")
def test_the_way_on_keeps_its_stops_also_where_the_truck_could_drive_through() -> None:
    sketch = sketched(("A", 0, 0), ("B", 10, 0), ("C", 20, 0), ("D", 30, 0), ("P", 40, 0, "ParkPoint"))
    sketch.chain("A", "B", "C", "D", "P")
    site = compile_map(sketch.done(), [FL_STD])

    made = route(site, on(site, "A->B", 0), "B", "D", rest="P")

    assert made.onward_stops == (1, 2)
    assert [segment.must_stop for segment in made.whole] == [True, False, True, True]
    assert made.whole[-1].route_s0_um + made.whole[-1].length_um == 40_000_000


@pytest.mark.req("FLT-LIVE-14")
@pytest.mark.parametrize(
    ("stops", "passed", "errand", "promised"),
    [
        (("B", "D"), 0, ["A->B", "B->C", "C->D"], ["D->P"]),
        (("C",), 1, ["B->C"], ["C->D", "D->P"]),
        (("C",), 3, [], ["D->P"]),
        (("P",), 2, ["C->D", "D->P"], []),
    ],
)
def test_the_edges_ahead_split_at_the_last_stop_into_errand_and_way_to_rest(
    stops: tuple[str, ...], passed: int, errand: list[str], promised: list[str]
) -> None:
    sketch = sketched(("A", 0, 0), ("B", 10, 0), ("C", 20, 0), ("D", 30, 0), ("P", 40, 0, "ParkPoint"))
    sketch.chain("A", "B", "C", "D", "P")
    site = compile_map(sketch.done(), [FL_STD])

    found = route(site, on(site, "A->B", 0), *stops, rest="P").ahead(passed)

    assert tuple([site.network.edges[edge].key for edge in part] for part in found) == (errand, promised)


@pytest.mark.req("FLT-PLAN-6", "FLT-API-2")
def test_the_form_of_a_route_with_its_stops_fits_the_contract() -> None:
    site = scene("hall-demo")
    made = encode(route(site, on(site, "LM1->LM2", 3.0), "AP1", "LM3", rest="PK2").form())

    assert serialise(parse("RoutePlan", made)) == made
    assert jsonschema_rs.is_valid(schema_of("RoutePlan"), json.loads(made))


def test_a_spliced_route_keeps_its_stops() -> None:
    sketch = sketched(("A", 0, 0), ("B", 10, 0), ("C", 20, 0), ("D", 30, 0), ("P", 40, 0, "ParkPoint"))
    sketch.chain("A", "B", "C", "D", "P")
    site = compile_map(sketch.done(), [FL_STD])
    old = route(site, on(site, "A->B", 0), "B", "D", rest="P")

    stops = (site.node_number["C"], site.node_number["D"])
    made = splice(Planner(site, FL_STD), old, 1_000_000, stops, "r2", "TASK_ASSIGNED")

    assert isinstance(made, RoutePlan)
    assert made.onward_stops == (0, 1)


@pytest.mark.req("FLT-LIVE-1")
def test_a_route_continues_from_its_goal_as_planned() -> None:
    site = scene("hall-demo")
    old = route(site, on(site, "LM1->LM2", 3.0), "AP1", "LM3", rest="PK2")

    made = continued(Planner(site, FL_STD), old, "next", None, "TASK_ASSIGNED")

    assert (made.start, made.goal, made.rest) == (AtNode(old.goal), site.node_number["LM3"], old.rest)
    assert tuple(segment.edge for segment in made.whole) == old.onward
    assert [place + len(made.segments) for place in made.onward_stops] == list(old.onward_stops[1:])
    assert made.cost_us > 0
