"""Route plans, positions on them, anchors and progress."""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pendula.fleet import (
    AtNode,
    CompiledMap,
    OnEdge,
    Planner,
    Pose,
    PoseJump,
    Progress,
    RoutePlan,
    Snapper,
    advanced,
    compile_map,
    plan_route,
    splice,
    started,
)
from pendula.fleet.model import MoveStyle
from pendula.fleet.routing.progress import uncertainty_um
from pendula.fleet.routing.route_plan import committed, segments_of
from pendula.fleet.samples.scenes import FL_STD, Sketch
from pendula.kernel.canonical import encode
from pendula.kernel.engine import Refusal
from tests.fleet.sites import SCENES, any_site, names, scene

GOLDEN = Path(__file__).parents[1] / "golden"


def route(site: CompiledMap, start: OnEdge | AtNode, *stops: str, rest: str | None = None) -> RoutePlan:
    number = site.node_number
    planned = plan_route(
        Planner(site, FL_STD),
        "R2",
        "route-R2-9",
        start,
        tuple(number[stop] for stop in stops),
        None if rest is None else number[rest],
    )
    assert isinstance(planned, RoutePlan), planned
    return planned


def on(site: CompiledMap, key: str, s_m: float) -> OnEdge:
    return OnEdge(site.edge_number[key], round(s_m * 1e6))


@pytest.mark.req("FLT-PLAN-6", "FLT-LIVE-1")
def test_the_route_of_the_contract_comes_out() -> None:
    site = scene("hall-demo")
    wanted = json.loads((GOLDEN / "RoutePlan.json").read_text(), parse_float=Decimal)

    made = route(site, on(site, "LM1->LM2", 3.0), "AP1", "LM3", rest="PK2").form()

    assert encode({**made, "compiledMapHash": ""}) == encode({**wanted, "compiledMapHash": ""})
    assert made["compiledMapHash"] == site.compiled_hash


@pytest.mark.req("FLT-PLAN-6")
@pytest.mark.parametrize("name", SCENES)
def test_the_projection_of_a_pose_on_the_route_is_its_position(name: str) -> None:
    site = scene(name)
    planner = Planner(site, FL_STD)
    draw = np.random.default_rng(1)
    asked = 0
    while asked < 200:
        edge, goal = int(draw.integers(len(site.network.edges))), int(draw.integers(len(site.network.nodes)))
        planned = plan_route(planner, "R", "r", OnEdge(edge, 0), (goal,))
        if isinstance(planned, Refusal):
            asked += 5
            continue
        for s in draw.integers(0, planned.length_um + 1, 20).tolist():
            found = planned.project(planned.pose_at(s), near_um=s)
            assert found is not None
            assert abs(found.s_on_route_um - s) <= 10_000
            assert found.lateral_um <= 2
        asked += 20


@pytest.mark.req("FLT-PLAN-6")
@pytest.mark.parametrize("name", SCENES)
def test_a_thousand_positions_of_a_drive_are_found_from_the_last_answer(name: str) -> None:
    site = scene(name)
    planner = Planner(site, FL_STD)
    draw = np.random.default_rng(2)
    asked = 0
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
            # In the step in which a truck begins to go out by the way it came in, both are the same pose.
            near = 10_000 if planned.pose_at(found.s_on_route_um) != pose else 2 * step
            assert abs(found.s_on_route_um - s) <= near
            last = found.s_on_route_um
            asked += 1
        if asked >= 1000:
            break
    assert asked >= 1000


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
def test_the_last_position_tells_the_way_in_from_the_way_out() -> None:
    """Into a spur backward and out of it forward: the same places, with the same yaw."""
    site = scene("hall-demo")
    number = site.edge_number
    segments = segments_of(site, (number["LM2->AP1"], number["AP1->LM2"]))
    there_and_back = RoutePlan("r", 1, "R", site, AtNode(0), 0, segments, 0, "")
    pose = Pose(13_000_000, 0, 3_141_593)

    places = [there_and_back.project(pose, near_um=near) for near in (None, 2_000_000, 10_000_000)]

    assert [one and one.s_on_route_um for one in places] == [3_000_000, 3_000_000, 9_000_000]


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
    assert [site.network.edges[one.edge].key for one in old.segments] == ["D->M", "M->N"]

    new = splice(planner, old, 15_000_000, (site.node_number["A"],), "route-R2-10", "TASK_CHANGED")

    assert isinstance(new, RoutePlan)
    assert [site.network.edges[one.edge].key for one in new.segments][:2] == ["D->M", "M->N"]
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
def test_what_is_committed_ends_in_a_node(stop_line: int, kept: int) -> None:
    site = scene("ring-with-bypass")

    assert committed(route(site, on(site, "D->M", 1.0), "N"), stop_line) == kept


@pytest.mark.req("FLT-PLAN-12")
def test_a_route_whose_way_home_is_missing_is_refused() -> None:
    site = scene("hall-demo")
    number = site.node_number

    planned = plan_route(Planner(site, FL_STD), "R", "r", AtNode(number["PK1"]), (number["AP1"],), number["LM7"])

    assert isinstance(planned, Refusal)
    assert planned.details["goal"] == "LM7"


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


def after(*samples: tuple[int, float]) -> Progress | PoseJump:
    state: Progress | PoseJump = started(samples[0][0], round(samples[0][1] * 1e6))
    for at_ms, s in samples[1:]:
        assert isinstance(state, Progress)
        state = advanced(state, at_ms, round(s * 1e6), FL_STD)
    return state


@pytest.mark.req("FLT-PLAN-14")
def test_a_forward_outlier_releases_nothing_and_extends_no_farther_than_possible() -> None:
    samples = [(0, 10.0), (100, 10.1), (200, 10.38), (300, 10.2)]

    values = [after(*samples[: k + 1]) for k in range(4)]

    for value in values:
        assert isinstance(value, Progress)
        assert value.release_um(100_000) <= 9_900_000
        assert value.extend_um <= 10_320_000
    assert isinstance(values[3], Progress)
    assert values[3].extend_um == 10_320_000


@pytest.mark.req("FLT-PLAN-14", "FLT-OSC-5")
@given(st.lists(st.integers(-100_000, 100_000), min_size=1, max_size=40))
def test_noise_never_pulls_back_what_extends(noise: list[int]) -> None:
    state: Progress | PoseJump = started(0, 5_000_000)
    for tick, error in enumerate(noise):
        assert isinstance(state, Progress)
        before = state.extend_um
        state = advanced(state, 100 * (tick + 1), 5_000_000 + error, FL_STD)
        assert isinstance(state, Progress)
        assert state.extend_um >= before
        assert state.release_um(100_000) <= 5_000_000
        assert len(state.raw_um) <= 5


@pytest.mark.req("FLT-PLAN-15")
@pytest.mark.parametrize(("s", "jump"), [(10.30, False), (10.31, True), (9.70, False), (9.69, True)])
def test_what_a_truck_cannot_do_is_a_jump(s: float, jump: bool) -> None:
    assert isinstance(after((0, 10.0), (100, s)), PoseJump) is jump


@pytest.mark.req("FLT-PLAN-15")
def test_a_long_silence_does_not_excuse_driving_back() -> None:
    assert isinstance(after((0, 10.0), (5000, 9.6)), PoseJump)


@pytest.mark.req("FLT-COR-7")
def test_uncertainty_grows_with_the_age_of_the_telemetry() -> None:
    assert uncertainty_um(FL_STD, 400_000, 500) == 300_000
    assert uncertainty_um(replace(FL_STD), 400_000, 0) == 100_000
