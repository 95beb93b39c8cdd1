"""Quadrangles against shapely: no overlap is missed, touching counts, nothing far apart overlaps."""

from math import cos, pi, sin

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry import Point, Polygon

from pendula.fleet.map.geometry import Rects, corners, distances_um, meet, near

um = st.integers(-12_000_000, 12_000_000)
half = st.integers(1, 5_000_000)
angle = st.floats(-pi, pi)
rects = st.tuples(um, um, angle, half, half)

Spec = tuple[int, int, float, int, int]


def columns(*specs: Spec) -> Rects:
    table = np.array([(x, y, cos(a), sin(a), hx, hy) for x, y, a, hx, hy in specs], dtype=np.float64).T
    return Rects(*table)


def polygon(spec: Spec) -> Polygon:
    x, y, a, hx, hy = spec
    c, s = cos(a), sin(a)
    return Polygon([(x + p * c - q * s, y + p * s + q * c) for p, q in ((hx, hy), (-hx, hy), (-hx, -hy), (hx, -hy))])


@pytest.mark.req("FLT-EVO-2", "FLT-GEO-8")
@given(rects, rects)
def test_rectangles_meet_exactly_when_shapely_says_so(a: Spec, b: Spec) -> None:
    quads = corners(columns(a, b))

    found = bool(meet(quads[:1], quads[1:])[0])

    distance = polygon(a).distance(polygon(b))
    if distance == 0:
        assert found
    if distance > 10:
        assert not found


@pytest.mark.req("FLT-GEO-8")
@pytest.mark.parametrize(("gap", "touches"), [(0, True), (1, True), (2, True), (3, False)])
def test_touching_counts_as_meeting(gap: int, touches: bool) -> None:
    quads = corners(columns((0, 0, 0.0, 1000, 500), (0, 1000 + gap, 0.0, 1000, 500)))

    assert bool(meet(quads[:1], quads[1:])[0]) is touches
    assert bool(meet(quads[1:], quads[:1])[0]) is touches


@given(rects)
def test_the_rounded_corners_contain_the_rectangle(spec: Spec) -> None:
    grown = Polygon(corners(columns(spec))[0])

    assert grown.contains(polygon(spec))


@pytest.mark.req("FLT-MAP-11")
@given(rects, um, um, half)
def test_nearness_to_a_point_is_the_distance_of_shapely(spec: Spec, x: int, y: int, radius: int) -> None:
    quads = corners(columns(spec))

    distance = Polygon(quads[0]).distance(Point(x, y))

    if abs(distance - radius) > 1e-3:
        assert bool(near(quads, x, y, float(radius))[0]) is (distance <= radius)


@given(rects, rects)
def test_the_distance_is_that_of_shapely(a: Spec, b: Spec) -> None:
    quads = corners(columns(a, b))

    found = float(distances_um(quads[:1], quads[1:])[0])
    assert found == pytest.approx(Polygon(quads[0]).distance(Polygon(quads[1])), abs=1e-3)


def test_far_from_the_origin_nothing_changes() -> None:
    near_origin = corners(columns((0, 0, 0.3, 2_000_000, 900_000), (4_100_000, 0, 0.3, 2_000_000, 900_000)))
    shift = np.array([10**11, -(10**11)])

    here = meet(near_origin[:1], near_origin[1:])
    there = meet(near_origin[:1] + shift, near_origin[1:] + shift)

    assert here.tolist() == there.tolist()
