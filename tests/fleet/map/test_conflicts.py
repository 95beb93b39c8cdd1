"""Which cells exclude each other, by the numbers of the examples and by an independent checker."""

from collections import Counter
from hashlib import sha256
from math import cos, pi, sin

import numpy as np
import pytest
from shapely import STRtree

from pendula.fleet import CompiledMap, CompileParams, compile_map, from_bytes, to_bytes
from pendula.fleet.compiler.samples import FL_STD, Sketch, near_lanes, tail_swing_bend
from pendula.fleet.map.exclusion import Bools, Zones
from pendula.fleet.model import Granularity, MoveStyle, SourceMap
from tests.fleet.judge import PoseM, envelope
from tests.fleet.sites import any_site, is_symmetric, names, scene


def cell(site: CompiledMap, key: str, s_m: float) -> int:
    return site.cells.at(site.edge_number[key], round(s_m * 1e6))


def related(site: CompiledMap, a: str, b: str) -> bool:
    """Whether any cell of one edge conflicts with any of the other."""
    first, second = (site.cells.of_edge(site.edge_number[key]) for key in (a, b))
    return any(site.conflicts.holds(i, j) for i in first for j in second)


def two_lanes(gap: float) -> CompiledMap:
    sketch = Sketch("abreast")
    for name, x, y in (("A1", 0, 0.0), ("A2", 10, 0.0), ("B1", 0, gap), ("B2", 10, gap)):
        sketch.node(name, x, y)
    sketch.lane("A1", "A2", back=False)
    sketch.lane("B1", "B2", back=False)
    return compile_map(sketch.done(), [FL_STD])


@pytest.mark.req("FLT-GEO-8")
@pytest.mark.parametrize(("gap", "conflict"), [(1.80, True), (1.81, False)])
def test_two_trucks_side_by_side_need_more_than_twice_their_half_width(gap: float, conflict: bool) -> None:
    site = two_lanes(gap)

    assert related(site, "A1->A2", "B1->B2") is conflict
    assert bool(site.named) is conflict


@pytest.mark.req("FLT-EVO-1")
def test_on_a_straight_lane_nine_neighbours_conflict_and_the_tenth_follows() -> None:
    site = scene("straight-lane")
    lane = site.cells.of_edge(site.edge_number["A->B"])
    middle = lane.start + 50

    inside = [c for c in site.conflicts.members(middle) if c in lane]

    assert inside == list(range(middle - 9, middle + 10))
    assert site.following.members(middle) == [middle - 10, middle + 10]


@pytest.mark.req("FLT-RES-16", "FLT-LIVE-3")
def test_all_cells_of_one_direction_exclude_all_of_the_other() -> None:
    site = scene("straight-lane")
    there, back = (site.cells.of_edge(site.edge_number[key]) for key in ("A->B", "B->A"))

    for number in (there.start, there.start + 60, there.stop - 1):
        assert set(back) <= set(site.conflicts.members(number))


@pytest.mark.req("FLT-GEO-12")
@pytest.mark.parametrize(("lane_at", "conflict"), [(5.10, True), (5.65, False)])
def test_a_lane_in_reach_of_the_swinging_tail_conflicts_with_the_bend(lane_at: float, conflict: bool) -> None:
    site = compile_map(tail_swing_bend(lane_at), [FL_STD])

    assert related(site, "B->C", "L1->L2") is conflict


@pytest.mark.req("FLT-MAP-8", "FLT-EVO-1")
def test_near_lanes_conflict_in_the_near_part_only() -> None:
    site = scene("near-lanes")
    far = cell(site, "A1->A2", 8.0)
    close = cell(site, "A1->A2", 30.0)
    other = set(site.cells.of_edge(site.edge_number["BA->BB"]))

    assert other & set(site.conflicts.members(close))
    assert not other & set(site.conflicts.members(far))


@pytest.mark.req("FLT-MAP-8")
def test_lanes_that_are_far_enough_apart_have_no_conflict() -> None:
    assert compile_map(near_lanes(1.90), [FL_STD]).named == ()


@pytest.mark.req("FLT-MAP-8")
def test_a_margin_makes_near_lanes_conflict() -> None:
    roomy = compile_map(near_lanes(1.90), [FL_STD], CompileParams(conflict_margin_um=200_000))

    assert roomy.named
    assert max(conflict.gap_um for conflict in roomy.named) == pytest.approx(100_000, abs=4)
    assert from_bytes(to_bytes(roomy)).named == roomy.named


@pytest.mark.req("FLT-MAP-9")
def test_conflicts_are_named_after_their_members() -> None:
    ids = [conflict.id for conflict in scene("hall-demo").named]

    assert ids == ["C-773d3caa9eea", "C-8fb4d134b8ed", "C-b71a5613f631"]
    assert ids[0] == "C-" + sha256(b"EDGE_GROUP:LM2<->LM3|EDGE_GROUP:LM7<->LM8").hexdigest()[:12]


@pytest.mark.req("FLT-MAP-10")
def test_consecutive_edges_carry_two_trucks() -> None:
    sketch = Sketch("chain")
    for name, x in (("A", 0), ("B", 30), ("C", 60)):
        sketch.node(name, x, 0)
    sketch.chain("A", "B", "C")
    site = compile_map(sketch.done(), [FL_STD])

    assert not site.conflicts.holds(cell(site, "B->C", 25.0), cell(site, "A->B", 5.0))
    assert site.conflicts.holds(cell(site, "B->C", 0.2), cell(site, "A->B", 29.0))
    assert site.named == ()


@pytest.mark.req("FLT-MAP-10")
def test_edges_that_leave_a_node_at_a_small_angle_have_a_windowed_conflict() -> None:
    sketch = Sketch("fork")
    for name, x, y in (("A", 0, 0.0), ("B", 30, 0.0), ("C", 30, 6.0)):
        sketch.node(name, x, y)
    sketch.lane("A", "B")
    sketch.lane("A", "C")
    site = compile_map(sketch.done(), [FL_STD])

    (conflict,) = site.named

    ends = {site.network.edges[edge].key: high for edge, _, high in conflict.windows}
    assert 8_000_000 < ends["A->B"] < 16_000_000
    # A cell near the node also conflicts with one beyond its window.
    assert min(low for _, low, _ in conflict.windows) < 1_500_000
    assert not site.conflicts.holds(cell(site, "A->B", 25.0), cell(site, "A->C", 25.0))


@pytest.mark.req("FLT-MAP-8")
def test_granularity_edge_lets_groups_exclude_each_other_as_wholes() -> None:
    source = near_lanes()
    whole = compile_map(source, [FL_STD], CompileParams(granularity=Granularity.EDGE))

    assert whole.conflicts.holds(cell(whole, "A1->A2", 2.0), cell(whole, "BB->BA", 9.0))
    assert not scene("near-lanes").conflicts.holds(
        cell(scene("near-lanes"), "A1->A2", 2.0), cell(scene("near-lanes"), "BB->BA", 9.0)
    )
    assert is_symmetric(whole.conflicts)
    assert {conflict.id for conflict in whole.named} == {conflict.id for conflict in scene("near-lanes").named}


def pose(site: CompiledMap, edge: int, s: int) -> PoseM:
    entry = site.network.edges[edge]
    x, y = entry.path.point(s)
    yaw = entry.path.heading(s) / 1e6 + (np.pi if entry.style is MoveStyle.BACKWARD else 0.0)
    return x / 1e6, y / 1e6, yaw


@pytest.mark.req("FLT-MAP-8", "FLT-EVO-1")
@pytest.mark.parametrize("name", names(8))
def test_trucks_in_cells_without_conflict_never_overlap(name: str) -> None:
    site = any_site(name)
    draw = np.random.default_rng(len(site.cells))
    spots = []
    for _ in range(250):
        edge = int(draw.integers(len(site.network.edges)))
        s = int(draw.integers(site.network.edges[edge].path.length_um + 1))
        spots.append((edge, s))
    shapes = [envelope(pose(site, edge, s)) for edge, s in spots]

    touching = STRtree(shapes).query(shapes, predicate="intersects").T

    assert len(touching) > len(spots)
    for i, j in touching.tolist():
        a, b = (site.cells.at(*spots[k]) for k in (i, j))
        assert site.conflicts.holds(a, b), (spots[i], spots[j])


def star(arms: int) -> SourceMap:
    sketch = Sketch(f"star-{arms}")
    sketch.node("C", 0, 0)
    for arm in range(arms):
        name = f"N{arm:03}"
        sketch.node(name, 20 * cos(2 * pi * arm / arms), 20 * sin(2 * pi * arm / arms))
        sketch.lane("C", name)
    return sketch.done()


def test_the_windows_of_a_node_are_looked_up_once_however_many_groups_meet_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queries: Counter[int] = Counter()
    answer = Zones.inside

    def counted(zones: Zones, node: int, count: int) -> Bools:
        queries[node] += 1
        return answer(zones, node, count)

    monkeypatch.setattr(Zones, "inside", counted)

    site = compile_map(star(24), [FL_STD])

    assert queries == {site.node_number["C"]: 1}
    assert len(site.named) > 24
