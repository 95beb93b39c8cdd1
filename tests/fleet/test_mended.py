"""Corners where a map could be wrong in silence: kinks in nodes, trucks at rest, sections, projections, huge maps."""

from math import atan2, pi

import pytest
from msgspec.structs import replace

from pendula.fleet import (
    AtNode,
    CompiledMap,
    Fleet,
    MapDamaged,
    MapRefused,
    OnEdge,
    Planner,
    PoseJump,
    Progress,
    RoutePlan,
    Stream,
    Truck,
    advanced,
    certify,
    compile_map,
    examine,
    from_bytes,
    largest_envelope,
    plan_route,
    splice,
    started,
    to_bytes,
)
from pendula.fleet.model import MoveStyle, SourceMap, SourceMember, SourceSection
from pendula.fleet.network.transitions import truck_yaw
from pendula.fleet.samples import scenes
from pendula.fleet.samples.scenes import FL_STD, Sketch, hall_demo
from tests.fleet.judge import envelope


def sketch(*nodes: tuple[object, ...]) -> Sketch:
    one = Sketch("review")
    for node in nodes:
        one.node(*node)  # type: ignore[arg-type]
    return one


def fleet(*rests: str, pick: str = "W", drop: str = "E") -> Fleet:
    return Fleet(tuple(Truck(f"R{i}", "FL-STD", r) for i, r in enumerate(rests)), (Stream("S", (pick,), (drop,)),))


def live(site: CompiledMap, asked: Fleet) -> bool:
    made, _ = certify(site, asked, [FL_STD])
    return made is not None and made.live


def spur(length: float) -> CompiledMap:
    one = sketch(("W", -40, 0), ("Q", -20, 0), ("M", 0, 0), ("E", 40, 0))
    one.node("P", 0, length, "ParkPoint")
    one.node("O", -20, 12, "ParkPoint")
    one.chain("W", "Q", "M", "E")
    one.lane("M", "P")
    one.lane("Q", "O")
    return compile_map(one.done(), [FL_STD])


@pytest.mark.req("FLT-LIVE-2", "FLT-LIVE-7")
@pytest.mark.parametrize(("length", "fine"), [(3.55, False), (3.65, False), (3.70, True)])
def test_a_truck_at_rest_holds_what_its_release_bound_has_not_passed(length: float, fine: bool) -> None:
    assert live(spur(length), fleet("P", "O")) is fine


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("length", [2.0, 2.5, 2.6, 3.0, 3.1])
def test_the_needed_length_does_not_depend_on_where_cells_begin(length: float) -> None:
    made, _ = certify(spur(length), fleet("P", "O"), [FL_STD])
    assert made is not None
    assert made.counterexample is not None
    assert float(str(made.counterexample.details["spurM"])) == pytest.approx(3.7)


def bay(capacity: int) -> CompiledMap:
    one = sketch(("W", -40, 0), ("M", 0, 0), ("E", 40, 0), ("B", 0, 15))
    one.node("P1", -15, 15, "ParkPoint")
    one.node("P2", 15, 15, "ParkPoint")
    one.chain("W", "M", "E")
    for a, b in (("M", "B"), ("B", "P1"), ("B", "P2")):
        one.lane(a, b)
    members = tuple(SourceMember(key) for key in ("B<->M", "B<->P1", "B<->P2"))
    return compile_map(replace(one.done(), sections=(SourceSection("BAY", capacity, members),)), [FL_STD])


@pytest.mark.req("FLT-DCL-19", "FLT-LIVE-7")
@pytest.mark.parametrize(("capacity", "fine"), [(1, False), (2, True)])
def test_a_section_with_room_for_all_who_rest_in_it_closes_nothing(capacity: int, fine: bool) -> None:
    assert live(bay(capacity), fleet("P1", "P2")) is fine


def test_a_truck_that_is_there_twice_gets_no_certificate() -> None:
    doubled = Fleet((Truck("R", "FL-STD", "PK1"), Truck("R", "FL-STD", "PK1")))
    assert certify(scenes_site(), doubled, [FL_STD])[0] is None


def scenes_site() -> CompiledMap:
    return compile_map(hall_demo(), [FL_STD])


@pytest.mark.req("FLT-DCL-8", "FLT-LIVE-7")
def test_a_goal_right_behind_a_section_is_not_live_and_turning_round_is_no_exit() -> None:
    one = sketch(("W", -30, 0), ("Q", -15, 0), ("A", 0, 0), ("B", 20, 0), ("C", 22, 0))
    one.node("P1", -15, 12, "ParkPoint")
    one.node("P2", -15, -12, "ParkPoint")
    one.chain("W", "Q", "A", "B", "C")
    one.lane("Q", "P1")
    one.lane("Q", "P2")
    site = compile_map(replace(one.done(), sections=(SourceSection("NECK", 1, (SourceMember("A<->B"),)),)), [FL_STD])
    assert "CS_WITHOUT_EXIT_ROOM" in {f.code.value for f in site.findings}
    assert not live(site, fleet("P1", "P2", drop="C"))


def test_a_section_that_ends_on_the_way_has_its_room_there() -> None:
    one = sketch(("A", 0, 0), ("B", 30, 0), ("C", 31, 0))
    one.chain("A", "B", "C", back=False)
    neck = SourceSection("N", 1, (SourceMember("A<->B", 2_000_000, 4_000_000),))
    found = examine(replace(one.done(), sections=(neck,)), [FL_STD]).findings
    assert "CS_WITHOUT_EXIT_ROOM" not in {f.code.value for f in found}


@pytest.mark.req("FLT-DCL-19")
def test_a_section_over_a_part_of_a_spur_does_not_replace_its_token() -> None:
    part = SourceSection("X", 1, (SourceMember("LM3<->PK1", 0, 100_000),))
    site = compile_map(replace(hall_demo(), sections=(part,)), [FL_STD])
    assert "SPUR-PK1" in {one.id for one in site.sections}


@pytest.mark.req("FLT-DCL-19")
def test_the_name_of_a_generated_section_cannot_be_taken() -> None:
    taken = SourceSection("SPUR-PK1", 1, (SourceMember("LM1<->LM2"),))
    with pytest.raises(MapRefused):
        compile_map(replace(hall_demo(), sections=(taken,)), [FL_STD])


@pytest.mark.req("FLT-GEO-12", "FLT-EVO-5")
def test_a_truck_that_passes_a_kink_stays_in_its_cells() -> None:
    one = sketch(("A", 0, 0), ("B", 10, 0), ("C", 20, 0.86), ("V1", 6.84, -20), ("V2", 6.84, -3.02))
    one.chain("A", "B", "C")
    one.lane("V1", "V2")
    site = compile_map(one.done(), [FL_STD])
    first = site.cells.first
    waiting = int(first[site.edge_number["V1->V2"] + 1]) - 1
    through = int(first[site.edge_number["A->B"] + 1]) - 1, int(first[site.edge_number["B->C"]])
    bend = atan2(0.86, 10)
    stands = envelope((6.84, -3.02, pi / 2))
    assert any(envelope((10, 0, bend * k / 100)).intersects(stands) for k in range(101))
    assert any(site.conflicts.holds(waiting, cell) for cell in through)


@pytest.mark.req("FLT-MAP-18")
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_a_curve_that_keeps_its_polyline_but_not_its_sweep_is_compiled_anew(before: int, after: int) -> None:
    def made(k: int) -> SourceMap:
        one = sketch(("A", 0, 0), ("B", 0.02, 0), ("L1", -5, 2.717193), ("L2", 5, 2.717193))
        one.bezier("A", "B", (0.002 * k, 0.0004 * k), (0.02 - 0.002 * k, 0.0004 * k), back=False)
        one.lane("L1", "L2", back=False)
        return one.done()

    nimble = [replace(FL_STD, min_turn_radius_um=0)]
    assert (
        examine(made(after), nimble, previous=compile_map(made(before), nimble)).data
        == examine(made(after), nimble).data
    )


@pytest.mark.req("FLT-RES-15")
def test_either_of_two_edges_of_a_lane_follows_the_other() -> None:
    one = sketch(("A", 0, 0), ("B", 30, 0))
    one.lane("A", "B", back=False)
    one.lane("A", "B", back=False, style=MoveStyle.BACKWARD)
    site = compile_map(one.done(), [replace(FL_STD, min_following_gap_um=3_000_000)])
    a, b = site.edge_number["A->B"], site.edge_number["A->B#2"]
    for follower in (a, b):
        for leader in (a, b):
            assert site.following.holds(site.cells.at(follower, 10_100_000), site.cells.at(leader, 16_100_000))


@pytest.mark.req("FLT-PLAN-6")
def test_passing_a_node_the_projection_goes_on() -> None:
    one = sketch(("A", 0, 0), ("B", 10, 0), ("C", 20, 0))
    one.chain("A", "B", "C")
    site = compile_map(one.done(), [FL_STD])
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
    site = compile_map(scenes.plus_crossing(), [FL_STD])
    number, planner = site.node_number, Planner(site, FL_STD)
    old = plan_route(planner, "R", "r", AtNode(number["W"], 3_141_593), (number["E"],))
    assert isinstance(old, RoutePlan)
    new = splice(planner, old, 1_000_000, (number["E"],), "x", "y")
    assert isinstance(new, RoutePlan)
    assert new.cost_us == old.cost_us


@pytest.mark.req("FLT-PLAN-15")
def test_creeping_back_is_a_jump_in_the_end() -> None:
    state: Progress | PoseJump = started(0, 10_000_000)
    for tick in range(1, 4):
        assert isinstance(state, Progress)
        state = advanced(state, 100 * tick, 10_000_000 - 150_000 * tick, FL_STD)
    assert isinstance(state, PoseJump)


@pytest.mark.req("FLT-GEO-1", "FLT-GEO-3")
def test_backward_along_minus_x_a_truck_looks_along_x() -> None:
    assert truck_yaw(3_141_593, MoveStyle.BACKWARD) == 0


@pytest.mark.req("FLT-MAP-20")
def test_every_measure_has_its_own_maximum() -> None:
    a = replace(FL_STD, tail_um=3_000_000, safety_rear_um=100_000)
    b = replace(FL_STD, tail_um=1_000_000, safety_rear_um=1_000_000)
    assert largest_envelope([a, b]).rear_um == 3_000_000 + 1_000_000 + 200_000


@pytest.mark.req("FLT-MAP-16")
def test_a_file_with_a_right_hash_and_wrong_parts_is_damaged() -> None:
    import json
    from decimal import Decimal
    from hashlib import sha256

    from pendula.kernel.canonical import encode

    form = json.loads(to_bytes(scenes_site()), parse_float=Decimal)
    del form["compiledMapHash"]
    form["edges"][0]["from"] = "NOWHERE"
    data = encode({**form, "compiledMapHash": "sha256:" + sha256(encode(form)).hexdigest()})
    with pytest.raises(MapDamaged):
        from_bytes(data)


def test_a_ring_keeps_the_following_gap_at_every_node_also_where_it_is_cut() -> None:
    """A square of equal lanes, driven one way: what is near a node looks the same at all four."""
    one = sketch(("A", 0, 0), ("B", 30, 0), ("C", 30, 30), ("D", 0, 30))
    one.chain("A", "B", "C", "D", "A", back=False)
    site = compile_map(one.done(), [FL_STD])
    order = [site.edge_number[key] for key in ("A->B", "B->C", "C->D", "D->A")]

    close = []
    for before, after in zip(order, [*order[1:], order[0]], strict=True):
        pairs = [(a, b) for a in site.cells.of_edge(before) for b in site.cells.of_edge(after)]
        close.append(sum(bool(site.following.holds(a, b)) for a, b in pairs))

    assert close[0] > 0
    assert len(set(close)) == 1
