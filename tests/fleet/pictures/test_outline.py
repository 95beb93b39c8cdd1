"""The corners of a truck at a pose."""

from math import pi

import pytest

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.pictures.map import body_corners


@pytest.mark.req("FLT-GEO-2")
def test_the_body_lies_around_the_pivot() -> None:
    assert body_corners(FL_STD, 0, 0, 0) == ((1.3, 0.5), (-1.7, 0.5), (-1.7, -0.5), (1.3, -0.5))


@pytest.mark.req("FLT-GEO-2")
def test_the_body_turns_with_the_yaw() -> None:
    corners = body_corners(FL_STD, 0, 0, pi / 2)

    assert corners == tuple(pytest.approx(corner) for corner in ((-0.5, 1.3), (-0.5, -1.7), (0.5, -1.7), (0.5, 1.3)))
