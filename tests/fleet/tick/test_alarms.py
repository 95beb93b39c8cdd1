"""The alarm about trucks that wait for each other in a circle."""

import pytest

from pendula.fleet.driving.records import Record, Waiting
from pendula.fleet.samples import FL_STD
from pendula.fleet.tick.alarms import waiting_cycle, watched
from tests.fleet.sites import scene


def waiting(count: int, *, refused: frozenset[int] = frozenset()) -> list[Record]:
    found = []
    for number in range(count):
        one = Record(scene("hall-demo"), number, f"R{number}", FL_STD, rest=0, short_um=0, node=0)
        one.waiting = Waiting("WAIT_SAFE_STATE" if number in refused else "WAIT_NODE", 1, 0, 1)
        found.append(one)
    return found


@pytest.mark.req("FLT-DCL-17")
def test_trucks_that_wait_for_each_other_are_found() -> None:
    assert sorted(waiting_cycle(waiting(3), {0: {1}, 1: {2}, 2: {0}})) == [0, 1, 2]


@pytest.mark.req("FLT-DCL-17", "FLT-LIVE-6")
def test_a_truck_that_waits_for_the_sake_of_the_others_holds_nobody_up() -> None:
    assert waiting_cycle(waiting(3, refused=frozenset({1})), {0: {1}, 1: {2}, 2: {0}}) == ()


@pytest.mark.req("FLT-DCL-17")
def test_a_circle_is_watched_from_when_it_was_first_seen() -> None:
    first = watched({}, (2, 0, 1), 1_000)

    assert watched(first, (0, 1, 2), 6_000) == {(0, 1, 2): 1_000}
    assert watched(first, (), 6_000) == {}
