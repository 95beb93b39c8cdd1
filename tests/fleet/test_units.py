"""Micrometres, microradians and their rounding."""

from decimal import Decimal
from math import pi

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.fleet.units import PI_URAD, angle_femto, half_up, micro, plain, wrapped_urad


@pytest.mark.req("FLT-GEO-1")
@given(st.integers(-(10**8), 10**8))
def test_wrapping_keeps_the_direction(angle: int) -> None:
    wrapped = wrapped_urad(angle)

    assert -PI_URAD < wrapped <= PI_URAD
    assert (wrapped - angle) % 6_283_185 == 0


@given(st.integers(-(10**12), 10**12))
def test_metres_and_micrometres_convert_both_ways(um: int) -> None:
    assert micro(Decimal(plain(um))) == um


def test_a_length_is_rounded_half_to_even_once() -> None:
    assert micro(Decimal("0.0000005")) == 0
    assert micro(Decimal("0.0000015")) == 2
    assert str(plain(1_500_000)) == "1.5"
    assert plain(3_000_000) == 3


def test_pi_of_a_file_is_pi() -> None:
    assert angle_femto(PI_URAD) / 1e15 == pytest.approx(pi, abs=1e-15)
    assert angle_femto(-1) == 10**9


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_halves_are_rounded_up(numerator: int, denominator: int) -> None:
    assert half_up(numerator, denominator) == (numerator / denominator + 0.5) // 1
