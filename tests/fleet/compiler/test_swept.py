"""Swept areas contain every pose of every truck, on straight lines, bends and odd curves."""

from math import hypot

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely.prepared import prep

from pendula.fleet import CompiledMap, CompileParams, compile_map, envelope_of
from pendula.fleet.compiler.curves import bezier, polyline, straight
from pendula.fleet.compiler.generated_maps import random_map
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.compiler.swept import pose_slack, sweep_slack, swept_rects
from pendula.fleet.map.exclusion import boundaries
from pendula.fleet.map.geometry import corners
from pendula.fleet.model import MoveStyle, Point, SourceMap
from tests.fleet.judge import REAR, SIDE, area, bezier_pose, envelope, points_of
from tests.fleet.sites import any_site, names, random_site, scene

ENVELOPE = envelope_of(FL_STD)
KAPPA = 0.5522847498307936
Array = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def at(x: float, y: float) -> Point:
    return Point(round(x * 1e6), round(y * 1e6))


def quads_of(site: CompiledMap, cell: int) -> Array:
    return site.cells.quads[site.cells.quad_first[cell] : site.cells.quad_first[cell + 1]]


@pytest.mark.req("FLT-GEO-13")
def test_the_slack_of_a_bend_of_three_metres() -> None:
    assert sweep_slack(0.05, 1 / 3, 2.4698, 0.0) == pytest.approx(0.0456, abs=1e-4)


@pytest.mark.req("FLT-GEO-13")
def test_every_pose_of_a_curve_is_grown_by_at_least_the_slack() -> None:
    k = 3 * KAPPA
    bend = bezier((at(3, 0), at(3, k), at(k, 3), at(0, 3)), 50_000, 5_000)
    assert bend.poses is not None
    ds = float(np.diff(bend.poses.s).max())

    least = sweep_slack(ds, 1 / 3e6, ENVELOPE.turn_radius_um, 0.0)

    assert pose_slack(bend, ENVELOPE, 0).min() >= least
    assert least < 10_000


@pytest.mark.req("FLT-GEO-12", "FLT-GEO-3")
def test_the_tail_swings_out_of_a_bend() -> None:
    k = 3 * KAPPA
    bend = bezier((at(3, 0), at(3, k), at(k, 3), at(0, 3)), 50_000, 5_000)
    bounds = boundaries(bend.path.length_um, 500_000)

    rects, _ = swept_rects(bend, bounds[:-1], bounds[1:], MoveStyle.FORWARD, ENVELOPE, 0, 32)

    reach = max(hypot(x, y) for x, y in corners(rects).reshape(-1, 2)) / 1e6
    naive = 3.0 + SIDE
    assert hypot(naive, REAR) == pytest.approx(4.528, abs=0.001)
    assert hypot(naive, REAR) <= reach < 4.75
    # The middle of the bend swings as far as that of a circle: not only at its ends.
    middle = corners(rects).reshape(-1, 2) / 1e6
    diagonal = [hypot(x, y) for x, y in middle if abs(x - y) < 1.0]
    assert max(diagonal) - naive >= 0.628


@pytest.mark.req("FLT-EVO-2")
def test_a_straight_cell_is_one_exact_rectangle() -> None:
    site = scene("straight-lane")
    cell = int(site.cells.first[site.edge_number["A->B"]]) + 7

    quads = quads_of(site, cell)

    low, high = quads.reshape(-1, 2).min(axis=0), quads.reshape(-1, 2).max(axis=0)
    assert len(quads) == 1
    assert low.tolist() == [1_199_999, -900_001]
    assert high.tolist() == [6_100_001, 900_001]


@pytest.mark.req("FLT-EVO-2")
def test_rectangles_of_a_cell_are_limited_by_merging_that_only_enlarges() -> None:
    sketch = Sketch("tight")
    sketch.node("A", 0, 0)
    sketch.node("B", 6, 6)
    sketch.bezier("A", "B", (6, 0), (6, 0))
    few = compile_map(sketch.done(), [FL_STD], CompileParams(max_rects_per_cell=2))
    many = compile_map(sketch.done(), [FL_STD])

    assert int(np.diff(few.cells.quad_first).max()) == 2
    assert 2 < int(np.diff(many.cells.quad_first).max()) <= 32
    total = 0.0
    for cell in range(len(many.cells)):
        path = few.network.edges[int(few.cells.edge[cell])].path
        merged, apart = area(quads_of(few, cell)), area(quads_of(many, cell))
        total += merged.area - apart.area
        low, high = int(few.cells.s0[cell]), int(few.cells.s1[cell])
        for k in range(11):
            s = low + (high - low) * k // 10
            truck = envelope((path.point(s)[0] / 1e6, path.point(s)[1] / 1e6, path.heading(s) / 1e6))
            assert merged.contains(truck)
            assert apart.contains(truck)
    assert total > 0.0


def judged(inner: list[tuple[float, float]], parts: list[float], backward: bool) -> None:
    """Every pose of a curve, by its formula, lies in the area of the cell that its arc length leads to."""
    points = [(0.0, 0.0), (1 + inner[0][0], inner[0][1]), (5 + inner[1][0], inner[1][1]), (6.0, 0.0)]
    a, b, c, d = (at(*point) for point in points)
    points = [(p.x_um / 1e6, p.y_um / 1e6) for p in (a, b, c, d)]
    curve = bezier((a, b, c, d), 50_000, 5_000)
    style = MoveStyle.BACKWARD if backward else MoveStyle.FORWARD
    bounds = boundaries(curve.path.length_um, 500_000)

    rects, owner = swept_rects(curve, bounds[:-1], bounds[1:], style, ENVELOPE, 0, 32)
    quads = corners(rects)

    assert set(owner.tolist()) == set(range(len(bounds) - 1))
    for t in parts:
        cell = int(np.searchsorted(bounds[1:-1], arc_um(points, t), side="right"))
        assert area(quads[owner == cell]).contains(envelope(bezier_pose(points, t, backward)))


def arc_um(points: list[tuple[float, float]], t: float) -> float:
    """The length of a curve up to a parameter, by many short chords."""
    places = np.array([bezier_pose(points, t * k / 500)[:2] for k in range(501)])
    steps = np.diff(places, axis=0)
    return float(np.sqrt((steps * steps).sum(axis=1)).sum() * 1e6)


@pytest.mark.req("FLT-GEO-13")
@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=2, max_size=2),
    st.lists(st.floats(0, 1), min_size=10, max_size=10),
    st.booleans(),
)
def test_random_poses_of_random_curves_lie_in_the_area_of_their_cells(
    inner: list[tuple[float, float]], parts: list[float], backward: bool
) -> None:
    judged(inner, parts, backward)


@pytest.mark.long
@pytest.mark.req("FLT-GEO-13")
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_poses_of_random_curves_lie_in_the_area_of_their_cells(seed: int) -> None:
    draw = np.random.default_rng(seed)
    for number in range(100):
        ax, ay, bx, by = draw.uniform(-3, 3, 4).tolist()
        judged([(ax, ay), (bx, by)], draw.uniform(0, 1, 10).tolist(), number % 2 == 1)


@pytest.mark.req("FLT-GEO-13", "FLT-EVO-1")
@pytest.mark.parametrize("name", names(8))
def test_the_cell_of_a_position_contains_the_envelope_there(name: str) -> None:
    """On the compiled path: at every position the envelope lies in the area of the cell of that position."""
    site = any_site(name)
    draw = np.random.default_rng(len(site.cells))
    for _ in range(60):
        edge = int(draw.integers(len(site.network.edges)))
        entry = site.network.edges[edge]
        s = int(draw.integers(entry.path.length_um + 1))
        x, y = entry.path.point(s)
        yaw = entry.path.heading(s) / 1e6 + (np.pi if entry.style is MoveStyle.BACKWARD else 0.0)
        cell = site.cells.at(edge, s)
        assert area(quads_of(site, cell)).buffer(3e-6).contains(envelope((x / 1e6, y / 1e6, yaw)))


@pytest.mark.req("FLT-GEO-13")
@pytest.mark.parametrize("seed", range(4))
def test_the_true_curves_of_a_map_lie_in_its_cells(seed: int) -> None:
    source: SourceMap = random_map(seed)
    site = random_site(seed)
    curved = [edge for edge in source.edges if edge.kind.value == "Bezier"]
    for edge in curved[:6]:
        number = next(i for i, candidate in enumerate(site.network.edges) if candidate.source_id == edge.id)
        every = [quads_of(site, cell) for cell in site.cells.of_edge(number)]
        whole = prep(area(np.concatenate(every)))
        points = points_of(source, edge)
        for k in range(60):
            assert whole.contains(envelope(bezier_pose(points, k / 59)))


@pytest.mark.req("FLT-GEO-13")
def test_the_corner_of_a_polyline_is_swept_at_every_heading_between() -> None:
    bent = polyline([at(0, 0), at(4, 0), at(8, 0.4)], 5_000)
    bounds = boundaries(bent.path.length_um, 500_000)
    rects, _ = swept_rects(bent, bounds[:-1], bounds[1:], MoveStyle.FORWARD, ENVELOPE, 0, 32)
    whole = prep(area(corners(rects)))

    for k in range(21):
        assert whole.contains(envelope((4.0, 0.0, 0.0996687 * k / 20)))
    for s in range(0, bent.path.length_um, 130_000):
        x, y = bent.path.point(s)
        assert whole.contains(envelope((x / 1e6, y / 1e6, bent.path.heading(s) / 1e6)))


@pytest.mark.req("FLT-GEO-14")
def test_the_following_gap_changes_no_swept_area() -> None:
    from msgspec.structs import replace

    wide = compile_map(random_map(3), [replace(FL_STD, min_following_gap_um=3_000_000)])

    assert np.array_equal(wide.cells.quads, random_site(3).cells.quads)
    assert np.array_equal(wide.conflicts.lo, random_site(3).conflicts.lo)
    assert not np.array_equal(wide.following.hi, random_site(3).following.hi)


def test_an_extra_for_bends_grows_bends_only() -> None:
    line = straight(at(0, 0), at(6, 0))
    low, high = np.array([0]), np.array([500_000])

    plain, _ = swept_rects(line, low, high, MoveStyle.FORWARD, ENVELOPE, 0, 32)
    extra, _ = swept_rects(line, low, high, MoveStyle.FORWARD, ENVELOPE, 100_000, 32)

    assert plain.hx.tolist() == extra.hx.tolist()
    assert (
        pose_slack(bezier((at(0, 0), at(3, 0), at(3, 3), at(6, 3)), 50_000, 5_000), ENVELOPE, 100_000).min() > 100_000
    )
