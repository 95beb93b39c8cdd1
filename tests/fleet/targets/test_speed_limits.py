"""Speeds from which a truck stops where it has to."""

import pytest

from pendula.fleet.samples import FL_STD
from pendula.fleet.targets.speed_limits import speed_limit_um_s


@pytest.mark.req("FLT-RTP-6")
@pytest.mark.parametrize(
    ("left_mm", "mm_s"), [(0, 0), (300, 421), (500, 604), (1_000, 955), (1_440, 1_200), (9_000, 1_200)]
)
def test_the_speed_makes_the_stop_line_reachable_without_passing_it(left_mm: int, mm_s: int) -> None:
    assert speed_limit_um_s(FL_STD, (), left_mm * 1000) == mm_s * 1000
