"""The alarm about trucks that wait for each other in a cycle."""

import pytest

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.tick.reasons import waiting_cycle, watched
from pendula.fleet.tick.records import Record, Waiting
from tests.fleet.sites import scene


def waiting(count: int, *, refused: frozenset[int] = frozenset()) -> list[Record]:
    found = []
    for number in range(count):
        record = Record(scene("hall-demo"), number, f"R{number}", FL_STD, rest=0, short_um=0, node=0)
        record.waiting = Waiting("WAIT_SAFE_STATE" if number in refused else "WAIT_NODE", 1, 0, 1)
        found.append(record)
    return found


@pytest.mark.req("FLT-DCL-17")
def test_trucks_that_wait_for_each_other_are_found() -> None:
    assert sorted(waiting_cycle(waiting(3), {0: {1}, 1: {2}, 2: {0}})) == [0, 1, 2]


@pytest.mark.req("FLT-DCL-17", "FLT-LIVE-6")
def test_a_truck_that_waits_for_a_safe_state_is_no_part_of_a_cycle() -> None:
    assert waiting_cycle(waiting(3, refused=frozenset({1})), {0: {1}, 1: {2}, 2: {0}}) == ()


@pytest.mark.req("FLT-DCL-17")
def test_a_cycle_is_timed_from_its_first_detection() -> None:
    first = watched({}, (2, 0, 1), 1_000)

    assert watched(first, (0, 1, 2), 6_000) == {(0, 1, 2): 1_000}
    assert watched(first, (), 6_000) == {}
