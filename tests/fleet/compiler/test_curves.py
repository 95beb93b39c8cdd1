"""Paths of edges: length, position and heading along straight lines, polylines and Béziers."""

from math import atan2, cos, hypot, pi, sin

import numpy as np
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from pendula.fleet.compiler.curves import Curve, bezier, polyline, straight
from pendula.fleet.map.geometry import Path
from pendula.fleet.model import CurveKind, Point
from pendula.fleet.units import root

STEP, CHORD = 50_000, 5_000
KAPPA = 0.5522847498307936


def at(x: float, y: float) -> Point:
    return Point(round(x * 1e6), round(y * 1e6))


def quarter(radius: float) -> Curve:
    k = radius * KAPPA
    return bezier((at(radius, 0), at(radius, k), at(k, radius), at(0, radius)), STEP, CHORD)


points = st.tuples(st.integers(-4_000, 4_000), st.integers(-4_000, 4_000)).map(
    lambda pair: Point(pair[0] * 1000, pair[1] * 1000)
)
controls = st.tuples(points, points, points, points)


def exact(curve: tuple[Point, ...], t: float) -> tuple[float, float]:
    r = 1 - t
    w = (r * r * r, 3 * r * r * t, 3 * r * t * t, t * t * t)
    return sum(a * p.x_um for a, p in zip(w, curve, strict=True)), sum(
        a * p.y_um for a, p in zip(w, curve, strict=True)
    )


def distance_to(path: Path, x: float, y: float) -> float:
    line = shapely.LineString(list(zip(path.x, path.y, strict=True)))
    return float(line.distance(shapely.Point(x, y)))


@pytest.mark.req("FLT-MAP-4")
def test_a_quarter_circle_has_its_length_and_its_ends() -> None:
    path = quarter(3.0).path

    assert path.length_um == pytest.approx(4_712_389, abs=10_000)
    assert path.point(0) == (3_000_000, 0)
    assert path.point(path.length_um) == (0, 3_000_000)


@pytest.mark.req("FLT-MAP-4")
@given(controls, st.floats(0, 1), st.floats(0, 1))
def test_no_two_positions_are_farther_apart_than_their_arc(curve: tuple[Point, ...], a: float, b: float) -> None:
    path = bezier((curve[0], curve[1], curve[2], curve[3]), STEP, CHORD).path
    s, t = round(a * path.length_um), round(b * path.length_um)

    (x, y), (u, v) = path.point(s), path.point(t)

    assert hypot(x - u, y - v) <= abs(s - t) + 2


@pytest.mark.req("FLT-MAP-4")
@given(controls)
def test_the_polyline_stays_within_the_chord_error(curve: tuple[Point, ...]) -> None:
    built = bezier((curve[0], curve[1], curve[2], curve[3]), STEP, CHORD)
    assume(built.path.length_um > 1000)

    worst = max(distance_to(built.path, *exact(curve, k / 31)) for k in range(32))

    assert worst <= built.chord_error <= CHORD + 1
    legs = np.diff(built.path.s)
    assert built.kind is CurveKind.STRAIGHT or legs.max() <= STEP + 1


@pytest.mark.req("FLT-MAP-4")
def test_headings_run_along_the_tangent() -> None:
    path = quarter(3.0).path

    for part in range(11):
        angle = pi / 2 * part / 10
        assert path.heading(path.length_um * part // 10) == pytest.approx((angle + pi / 2) * 1e6, abs=2000)


@pytest.mark.req("FLT-MAP-5")
@pytest.mark.parametrize(
    ("curve", "first", "last"),
    [
        (((0, 0), (0, 0), (2, 2), (6, 2)), pi / 4, 0.0),
        (((0, 0), (0, 0), (0, 0), (6, 2)), atan2(2, 6), atan2(2, 6)),
        (((0, 0), (3, 0), (6, 2), (6, 2)), 0.0, atan2(2, 3)),
        (((0, 0), (0, 0), (6, 2), (6, 2)), atan2(2, 6), atan2(2, 6)),
    ],
)
def test_coincident_control_points_still_have_a_heading(
    curve: tuple[tuple[float, float], ...], first: float, last: float
) -> None:
    a, b, c, d = (at(*point) for point in curve)

    path = bezier((a, b, c, d), STEP, CHORD).path

    assert path.heading(0) == pytest.approx(first * 1e6, abs=1)
    assert path.heading(path.length_um) == pytest.approx(last * 1e6, abs=1)


@pytest.mark.req("FLT-MAP-5")
def test_a_curve_of_one_point_has_no_length_and_no_nan() -> None:
    path = bezier((at(1, 1), at(1, 1), at(1, 1), at(1, 1)), STEP, CHORD).path

    assert path.length_um == 0
    assert path.heading(0) == 0


@pytest.mark.req("FLT-MAP-3")
def test_a_straight_bezier_is_a_straight_line() -> None:
    curve = bezier((at(10, 0), at(12, 0), at(14, 0), at(16, 0)), STEP, CHORD)

    assert curve.kind is CurveKind.STRAIGHT
    assert curve.path == straight(at(10, 0), at(16, 0)).path


@pytest.mark.req("FLT-MAP-3")
def test_a_polyline_keeps_its_heading_on_every_leg() -> None:
    path = polyline([at(0, 0), at(3, 0), at(3, 0), at(3, 4)], CHORD).path

    assert path.s == (0, 3_000_000, 7_000_000)
    assert [path.heading(s) for s in (0, 2_999_999, 3_000_001, 7_000_000)] == [0, 0, 1_570_796, 1_570_796]


@pytest.mark.req("FLT-MAP-4")
@given(controls, st.floats(0, 1))
def test_the_nearest_position_of_a_point_on_the_path_is_there(curve: tuple[Point, ...], part: float) -> None:
    path = bezier((curve[0], curve[1], curve[2], curve[3]), STEP, CHORD).path
    x, y = path.point(round(part * path.length_um))

    s, square = path.nearest(x, y)

    assert square <= 1
    assert hypot(path.point(s)[0] - x, path.point(s)[1] - y) <= 2


def test_the_curvature_of_a_circle_is_found() -> None:
    assert quarter(3.0).curvature == pytest.approx(1 / 3, rel=0.02)


@pytest.mark.parametrize(("radius", "step"), [(3.0, 0.1), (2.0, 0.05)])
def test_a_polyline_along_a_circle_bends_like_it(radius: float, step: float) -> None:
    count = round(radius * pi / 2 / step)
    circle = [at(radius * cos(pi / 2 * k / count), radius * sin(pi / 2 * k / count)) for k in range(count + 1)]

    assert polyline(circle, CHORD).curvature == pytest.approx(1 / radius, rel=0.01)


def test_a_sharp_corner_needs_a_very_small_circle() -> None:
    corner = polyline([at(0, 0), at(10, 0), at(10, 10)], CHORD)

    assert corner.curvature == pytest.approx(0.41421 / 0.005, rel=0.01)


def test_the_piece_of_a_path_has_both_ends() -> None:
    path = polyline([at(0, 0), at(3, 0), at(3, 4)], CHORD).path

    assert path.piece(1_000_000, 5_000_000) == [(1_000_000, 0), (3_000_000, 0), (3_000_000, 2_000_000)]


@pytest.mark.req("FLT-PLAN-2", "FLT-PLAN-6")
@given(controls, points, st.floats(0, 1))
def test_positions_and_distances_are_integers_and_right(curve: tuple[Point, ...], query: Point, part: float) -> None:
    path = bezier((curve[0], curve[1], curve[2], curve[3]), STEP, CHORD).path
    assume(path.length_um > 1000)
    s, square = path.nearest(query.x_um, query.y_um)
    x, y = path.point(round(part * path.length_um))

    assert {type(value) for value in (s, square, x, y, path.heading(s))} == {int}
    assert root(square) == pytest.approx(distance_to(path, query.x_um, query.y_um), abs=1)
    assert distance_to(path, x, y) <= 1
    assert hypot(path.point(s)[0] - query.x_um, path.point(s)[1] - query.y_um) == pytest.approx(root(square), abs=2)


def test_a_path_that_crosses_itself_has_two_places_at_the_crossing() -> None:
    path = bezier((at(0, 0), at(24, 16), at(-14, 16), at(10, 0)), STEP, CHORD).path
    x = 5_000_000
    y = next(path.point(s)[1] for s in range(0, path.length_um, 1000) if path.point(s)[0] >= x)

    first, second = path.places(x, y, 200_000)

    assert second[0] - first[0] > 6_000_000
    assert max(first[1], second[1]) < 10_000**2
    assert path.places(x, y, 200_000, 0, path.length_um // 2) == [first]
    assert path.places(x, y - 3_000_000, 200_000) == []
