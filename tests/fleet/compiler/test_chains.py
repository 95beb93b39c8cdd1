"""Arcs and splines are on their circles."""

from math import cos, hypot, pi, sin

import pytest

from pendula.fleet.compiler.curves import arc, spline
from pendula.fleet.map.geometry import longest_um
from pendula.fleet.model import CurveKind, Point

STEP, CHORD = 50_000, 5_000


def on_circle(radius_m: float, degrees: float) -> Point:
    angle = degrees * pi / 180
    return Point(round(radius_m * 1e6 * cos(angle)), round(radius_m * 1e6 * sin(angle)))


@pytest.mark.req("FLT-MAP-3", "FLT-MAP-4")
@pytest.mark.parametrize("radius", [1.5, 3.0, 20.0])
@pytest.mark.parametrize("sweep", [10, 45, 90, 180, 200, 300, -90, -270])
def test_an_arc_lies_on_its_circle_and_is_as_long(radius: float, sweep: float) -> None:
    start, via, end = (on_circle(radius, 20 + sweep * part) for part in (0.0, 0.3, 1.0))

    curve = arc(start, via, end, STEP, CHORD)

    assert curve.poses is not None
    off = [abs(hypot(x, y) - radius * 1e6) for x, y in zip(curve.poses.x, curve.poses.y, strict=True)]
    assert max(off) < 10 + radius * 5
    assert curve.path.length_um == pytest.approx(radius * 1e6 * abs(sweep) * pi / 180, rel=1e-3)
    assert curve.curvature == pytest.approx(1 / radius, rel=0.02)
    assert curve.path.length_um <= longest_um(start, via, end)


@pytest.mark.req("FLT-MAP-3")
def test_three_points_on_a_line_are_a_straight_arc() -> None:
    curve = arc(Point(0, 0), Point(1_000_000, 0), Point(4_000_000, 0), STEP, CHORD)

    assert curve.kind is CurveKind.STRAIGHT
    assert curve.path.length_um == 4_000_000


@pytest.mark.req("FLT-MAP-4")
def test_the_poses_of_an_arc_bound_what_lies_between_them() -> None:
    curve = arc(on_circle(3.0, 0), on_circle(3.0, 100), on_circle(3.0, 170), STEP, CHORD)
    poses = curve.poses
    assert poses is not None

    for k in range(len(poses.turn)):
        assert hypot(poses.ux[k + 1] - poses.ux[k], poses.uy[k + 1] - poses.uy[k]) <= poses.turn[k] + 1e-12
        assert hypot(poses.x[k + 1] - poses.x[k], poses.y[k + 1] - poses.y[k]) <= 2 * poses.reach[k] + 1e-6


@pytest.mark.parametrize("steps", [(0, 15, 30, 45, 60, 75, 90), (0, 10, 35, 50, 80, 90)])
def test_a_curve_drawn_in_chords_becomes_the_curve(steps: tuple[int, ...]) -> None:
    points = [on_circle(4.0, degrees) for degrees in steps]

    curve = spline(points, STEP, CHORD)

    assert curve.poses is not None
    off = [abs(hypot(x, y) - 4e6) for x, y in zip(curve.poses.x, curve.poses.y, strict=True)]
    assert max(off) < 5_000
    assert curve.curvature < 1 / 3.5


def test_two_points_are_a_straight_spline() -> None:
    assert spline([Point(0, 0), Point(5_000_000, 0)], STEP, CHORD).kind is CurveKind.STRAIGHT


def test_an_arc_the_long_way_round_is_bounded_before_it_is_drawn() -> None:
    # Nearly on a line, and the point on the way lies beyond the end: the circle is enormous.
    assert longest_um(Point(0, 0), Point(2_000_000, 10), Point(1_000_000, 0)) > 250_000_000
