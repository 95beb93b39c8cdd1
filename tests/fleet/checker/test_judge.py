"""Violations that the judge must detect, from poses written by hand."""

from math import hypot, pi
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray
from shapely.geometry import Point

from pendula.fleet.checker import Disc, Judge, Kind, Level, Poses
from pendula.fleet.compiler.samples import FL_STD
from tests.fleet.judge import envelope

PoseM = tuple[float, float, float]
AWAY = (1000.0, 1000.0, 0.0)


def poses(*rows: tuple[PoseM, ...]) -> Poses:
    whole = np.array(rows, dtype=np.float64)
    return Poses(whole[:, :, 0], whole[:, :, 1], whole[:, :, 2])


def times(count: int) -> NDArray[np.float64]:
    return np.arange(1, count + 1, dtype=np.float64) * 25.0


def judge(trucks: int = 2) -> Judge:
    return Judge([f"R{i}" for i in range(1, trucks + 1)], [FL_STD] * trucks)


def levels(a: PoseM, b: PoseM) -> list[Level]:
    found = judge().look(times(1), poses((a, b)), poses((a, b)))
    return [violation.level for violation in found]


@pytest.mark.req("FLT-GEO-8")
def test_trucks_abreast_touch_at_twice_the_side() -> None:
    assert levels((0, 0, 0), (0, 1.80, 0)) == [Level.ROUTE]
    assert levels((0, 0, 0), (0, 1.81, 0)) == []


@pytest.mark.req("FLT-GEO-17")
def test_at_the_true_pose_the_inflation_is_left_out() -> None:
    # Without inflation the sides reach 0.70 m.
    assert levels((0, 0, 0), (0, 1.40, 0)) == [Level.ROUTE, Level.TRUTH]
    assert levels((0, 0, 0), (0, 1.41, 0)) == [Level.ROUTE]


def test_front_and_rear_are_distinguished() -> None:
    # The leader's rear is 2.30 m long, the follower's front 2.10 m.
    assert levels((0, 0, 0), (4.41, 0, 0)) == []
    assert levels((0, 0, 0), (4.39, 0, 0)) == [Level.ROUTE]
    assert levels((0, 0, 0), (4.21, 0, pi)) == []


def test_a_violation_names_both_trucks_and_the_instant() -> None:
    far, near = (10.0, 0.0, 0.0), (4.3, 0.0, 0.0)
    rows = poses((AWAY, (0, 0, 0), far), (AWAY, (0, 0, 0), near))

    found = judge(3).look(times(2), rows, poses((AWAY, (0, 0, 0), far), (AWAY, (0, 0, 0), far)))

    assert [(violation.kind, violation.robot_ids) for violation in found] == [(Kind.ENVELOPES_MEET, ("R2", "R3"))]
    assert 25 < found[0].at_ms <= 50
    assert found[0].gap_m == pytest.approx(-0.1)


@pytest.mark.req("FLT-GEO-17")
def test_a_truck_that_passes_through_another_between_two_samples_is_detected() -> None:
    checker = judge()
    apart = (-20.0, 0.0, 0.0), (20.0, 0.0, 0.0)
    for side in apart:
        found = checker.look(times(1), poses(((0, 0, pi / 2), side)), poses((AWAY, (0, 0, 0))))

    assert [violation.kind for violation in found] == [Kind.ENVELOPES_MEET]


@pytest.mark.req("FLT-GEO-11")
def test_a_truck_inside_the_turning_circle_of_another_is_a_violation() -> None:
    # Rturn 2.4698 and a front of 2.10 m: the tip of the other is inside at 4.56 m.
    for x, kinds in ((-4.56, [Kind.DISC_ENTERED]), (-4.58, [])):
        rows = poses(((0, 0, 0.0), (x, 0, 0)), ((0, 0, 0.01), (x, 0, 0)))
        assert [violation.kind for violation in judge().look(times(2), rows, rows)] == kinds


@pytest.mark.req("FLT-TEST-46")
def test_a_truck_in_a_disc_that_another_truck_holds_is_a_violation() -> None:
    rows = poses((AWAY, (-4.56, 0, 0)))

    found = judge().look(times(1), rows, rows, [Disc(0, 0.0, 0.0)])

    assert [violation.robot_ids for violation in found] == [("R1", "R2")]
    assert not judge().look(times(1), rows, rows, [Disc(1, 0.0, 0.0)]), "a truck may be in its own disc"


@pytest.mark.req("FLT-TEST-46")
def test_a_removed_truck_does_not_collide_and_all_others_count() -> None:
    here = (0.0, 0.0, 0.0)
    rows = poses((here, here, here))
    discs = [Disc(0, 0.0, 0.0), Disc(1, 0.0, 0.0)]

    found = judge(3).look(times(1), rows, rows, discs, gone=[True, False, False])

    assert {violation.robot_ids for violation in found} == {("R2", "R3")}
    assert {(violation.kind, violation.level) for violation in found} == {
        (Kind.ENVELOPES_MEET, Level.ROUTE),
        (Kind.ENVELOPES_MEET, Level.TRUTH),
        (Kind.DISC_ENTERED, Level.ROUTE),
    }


@pytest.mark.req("FLT-TEST-46")
def test_a_truck_put_back_counts_at_its_new_pose_and_not_on_the_way_there() -> None:
    left, right, middle = (-20.0, 0.0, 0.0), (20.0, 0.0, 0.0), (0.0, 0.0, pi / 2)

    def seen(place: PoseM, gone: bool) -> list[Kind]:
        rows = poses((place, middle))
        return [found.kind for found in checker.look(times(1), rows, rows, gone=[gone, False])]

    checker = judge()
    away, back, driven = seen(left, True), seen(right, False), seen(left, False)
    assert (away, back) == ([], [])
    assert driven == [Kind.ENVELOPES_MEET, Kind.ENVELOPES_MEET]


def test_a_truck_that_follows_a_bend_does_not_turn_on_the_spot() -> None:
    rows = poses(((0, 0, 0.0), (-4.5, 0, 0)), ((0.02, 0, 0.01), (-4.5, 0, 0)))

    assert judge().look(times(2), rows, rows) == []


def test_the_least_distance_is_that_of_the_envelopes() -> None:
    checker = judge()
    # Corner against corner: 0.03 m apart lengthwise and 0.04 m sideways.
    rows = poses(((0, 0, 0), (4.40 + 0.03, 1.80 + 0.04, 0)))
    checker.look(times(1), rows, rows)

    assert checker.least_m == pytest.approx(0.05)


@pytest.mark.parametrize("seed", range(5))
def test_a_judge_and_shapely_agree_about_random_poses(seed: int) -> None:
    chance = Random(seed)
    for _ in range(200):
        a, b = ((chance.uniform(-3, 3), chance.uniform(-3, 3), chance.uniform(-pi, pi)) for _ in range(2))
        truth = envelope(a).distance(envelope(b))
        if 0 < truth < 1e-5:
            continue
        checker = judge()
        found = checker.look(times(1), poses((a, b)), poses((AWAY, (0, 0, 0))))
        assert bool(found) == (truth == 0)
        if checker.least_m is not None:
            assert checker.least_m == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_disc_and_shapely_agree_about_random_poses(seed: int) -> None:
    chance = Random(seed)
    radius = hypot(2.30, 0.90)
    for _ in range(100):
        a = (chance.uniform(-6, 6), chance.uniform(-6, 6), chance.uniform(-pi, pi))
        truth = envelope(a).distance(Point(0, 0)) - radius
        rows = poses((AWAY, a))
        assert bool(judge().look(times(1), rows, rows, [Disc(0, 0.0, 0.0)])) == (truth <= 0)
