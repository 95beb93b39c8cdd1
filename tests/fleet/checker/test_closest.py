"""The least distance of envelopes over all samples."""

from math import nan
from random import Random

import numpy as np
import pytest

from pendula.fleet.checker import Closest, Poses
from pendula.fleet.compiler.samples import FL_STD
from tests.fleet.judge import envelope

PoseM = tuple[float, float, float]
UNSEEN: PoseM = (nan, nan, nan)


def least(*looks: tuple[PoseM, ...]) -> float | None:
    """The result after some samples of the same trucks."""
    closest = Closest([FL_STD] * len(looks[0]))
    for look in looks:
        whole = np.array([look], dtype=np.float64)
        closest.look(Poses(whole[:, :, 0], whole[:, :, 1], whole[:, :, 2]))
    return closest.least_m


@pytest.mark.req("FLT-OBS-9")
def test_the_least_distance_of_all_samples_is_kept() -> None:
    # The leader's rear is 2.30 m long, the follower's front 2.10 m.
    far, near, again = (14.40, 0.0, 0.0), (4.90, 0.0, 0.0), (5.40, 0.0, 0.0)

    assert least(((0, 0, 0), far)) == pytest.approx(10.0)
    assert least(((0, 0, 0), far), ((0, 0, 0), near), ((0, 0, 0), again)) == pytest.approx(0.5)
    assert least(((0, 0, 0), far, (100, 0, 0)), ((0, 0, 0), far, (0.0, 2.8, 0))) == pytest.approx(1.0)
    assert least(((0, 0, 0), (1, 0, 0)), ((0, 0, 0), far)) == 0.0


@pytest.mark.req("FLT-OBS-9")
def test_a_truck_without_a_pose_is_skipped() -> None:
    assert least(((0, 0, 0),)) is None
    assert least(((0, 0, 0), UNSEEN)) is None
    assert least(((0, 0, 0), UNSEEN, (14.40, 0, 0))) == pytest.approx(10.0)


def test_the_distance_agrees_with_shapely() -> None:
    draw = Random(7)
    for _ in range(50):
        looks = [
            tuple((draw.uniform(0, 30), draw.uniform(0, 30), draw.uniform(-3, 3)) for _ in range(4)) for _ in range(3)
        ]
        shapes = [[envelope(pose) for pose in look] for look in looks]
        expected = min(a.distance(b) for look in shapes for n, a in enumerate(look) for b in look[n + 1 :])

        assert least(*looks) == pytest.approx(expected, abs=1e-6)
