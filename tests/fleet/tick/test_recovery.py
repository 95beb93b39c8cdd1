"""Trucks that need a person, and trucks that recover by themselves."""

from collections.abc import Callable

import pytest

from pendula.fleet.contracts import RobotStatus
from pendula.fleet.tick import OrderKind
from pendula.fleet.tick.orders import awaits_person
from tests.fleet.tick.troubled import Hall

ASIDE = (0, 900_000)


def waiting(hall: Hall) -> list[str]:
    traffic = hall.traffic
    return [one.robot_id for one in traffic.records if awaits_person(one, traffic.now_ms, traffic.params)]


def stuck(hall: Hall) -> None:
    hall.first.jammed = True
    hall.run(60)
    hall.first.jammed = False


def paused(hall: Hall) -> None:
    hall.order(OrderKind.PAUSE)


def faulty(hall: Hall) -> None:
    hall.first.status = RobotStatus.FAULT
    hall.run(10)


def silent(hall: Hall) -> None:
    hall.first.mute = True
    hall.run(30)


def carried_away(hall: Hall) -> None:
    hall.first.off = ASIDE
    hall.run(60)


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-13")
@pytest.mark.parametrize("trouble", [stuck, paused, faulty, silent, carried_away])
def test_a_truck_that_needs_an_operator_waits_for_a_person(trouble: Callable[[Hall], None]) -> None:
    hall = Hall()
    before = waiting(hall)
    trouble(hall)

    assert (before, waiting(hall)) == ([], ["R1"])


def deaf(hall: Hall) -> None:
    hall.first.deaf = True


def all_over_the_place(hall: Hall) -> None:
    hall.first.off = ASIDE if hall.first.off == (0, 0) else (0, 0)


@pytest.mark.req("FLT-FAIL-7", "FLT-FAIL-18")
@pytest.mark.parametrize("trouble", [deaf, all_over_the_place])
def test_a_cause_that_does_not_end_by_itself_needs_a_person_after_a_while(
    trouble: Callable[[Hall], None],
) -> None:
    hall = Hall()
    begun, seen = hall.now, list[tuple[int, list[str]]]()
    while hall.now < begun + 100_000:
        if (hall.now - begun) % 1_000 == 0:
            trouble(hall)
        hall.step()
        if waiting(hall) or seen:
            seen.append((hall.now - begun, waiting(hall)))

    assert 90_000 <= seen[0][0] <= 92_000
    assert {tuple(who) for _, who in seen} == {("R1",)}


@pytest.mark.req("FLT-FAIL-7")
def test_a_truck_that_recovers_by_itself_does_not_wait_for_a_person() -> None:
    hall = Hall()
    hall.first.off = ASIDE
    hall.step()
    first = waiting(hall)  # in doubt, for an unknown time
    hall.first.off = (0, 0)
    seen = [waiting(hall) for _ in range(40) if hall.step()]

    assert (first, [one for one in seen if one]) == ([], [])


@pytest.mark.req("FLT-FAIL-11")
def test_no_truck_waits_for_a_person_after_the_action() -> None:
    hall = Hall()
    stuck(hall)
    hall.order(OrderKind.CLEAR)

    assert waiting(hall) == []


@pytest.mark.req("FLT-FAIL-6")
def test_a_truck_stopped_for_a_lost_truck_does_not_wait_for_a_person() -> None:
    hall = Hall()
    second = hall.drivers["R2"]
    hall.first.off = (second.x - hall.first.x, second.y - hall.first.y)
    hall.run(60)

    assert hall.record(1).foreign == 0
    assert waiting(hall) == ["R1"]
