"""Directions as microradians, by our own arctangent."""

from math import atan2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.fleet.map.geometry import angle_urad, between_urad, turn_urad
from pendula.fleet.units import PI_URAD, wrapped_urad

coordinates = st.integers(-(10**11), 10**11)


@pytest.mark.req("FLT-GEO-1")
@given(coordinates, coordinates)
def test_the_angle_is_that_of_the_arctangent(dx: int, dy: int) -> None:
    expected = atan2(dy, dx) * 1e6 if dx or dy else 0.0

    assert abs(angle_urad(dx, dy) - expected) <= 0.6 or abs(expected) > PI_URAD - 1


@pytest.mark.req("FLT-GEO-1")
@pytest.mark.parametrize(
    ("dx", "dy", "angle"),
    [(1, 0, 0), (0, 1, 1_570_796), (-1, 0, PI_URAD), (-1, -1e-12, PI_URAD), (0, -1, -1_570_796), (1, 1, 785_398)],
)
def test_angles_lie_above_minus_pi_and_up_to_pi(dx: float, dy: float, angle: int) -> None:
    assert angle_urad(dx, dy) == angle


@given(st.integers(-PI_URAD + 1, PI_URAD), st.integers(-PI_URAD + 1, PI_URAD))
def test_a_turn_leads_from_one_direction_to_the_other(start: int, end: int) -> None:
    arrived = wrapped_urad(start + turn_urad(start, end))

    assert min((arrived - end) % 6_283_185, (end - arrived) % 6_283_185) <= 2
    assert abs(turn_urad(start, end)) <= PI_URAD


def test_a_half_turn_is_pi_whatever_the_rounding() -> None:
    assert turn_urad(1_570_796, -1_570_796) == PI_URAD
    assert turn_urad(785_398, -2_356_195) == PI_URAD


@given(st.integers(-3_000_000, 3_000_000), st.integers(-3_000_000, 3_000_000), st.integers(0, 100))
def test_a_heading_between_two_lies_on_the_shorter_turn(start: int, end: int, part: int) -> None:
    between = between_urad(start, end, part, 100)

    assert abs(turn_urad(start, between)) + abs(turn_urad(between, end)) <= abs(turn_urad(start, end)) + 2
