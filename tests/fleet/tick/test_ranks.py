"""The order in which trucks get units."""

import pytest

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import Phase, PriorityClass
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import Record, Stop, Waiting
from pendula.fleet.tick.turns import class_of, order_of, rank_of, starved
from tests.fleet.sites import scene

NOW = 100_000
PARAMS = TrafficParams()


def truck(robot_id: str, phase: Phase = Phase.TO_PICK, waited_ms: int | None = None) -> Record:
    number = int(robot_id[1:])
    record = Record(scene("hall-demo"), number, robot_id, FL_STD, rest=0, short_um=0, node=0, phase=phase)
    if waited_ms is not None:
        record.waiting_since_ms = record.request_ms = NOW - waited_ms
    record.priority = class_of(record)
    record.rank = rank_of(record, NOW, PARAMS)
    return record


def order(*trucks: Record, first: Record | None = None, against: frozenset[int] = frozenset()) -> list[str]:
    return [record.robot_id for record in order_of([*trucks], first, against, NOW)]


@pytest.mark.req("FLT-RES-6")
@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (Phase.LOADING, PriorityClass.SERVICE),
        (Phase.TO_DROP, PriorityClass.TASK),
        (Phase.TO_PARK, PriorityClass.PARK),
        (Phase.IDLE, PriorityClass.IDLE),
    ],
)
def test_the_activity_of_a_truck_gives_its_class(phase: Phase, expected: PriorityClass) -> None:
    assert truck("R1", phase).priority is expected


@pytest.mark.req("FLT-RES-6")
def test_a_failed_truck_is_an_obstacle() -> None:
    record = truck("R1")
    record.stop_code = Stop.ROBOT_FAULT

    assert class_of(record) is PriorityClass.OBSTACLE


@pytest.mark.req("FLT-RES-7")
@pytest.mark.parametrize(
    ("phase", "waited_ms", "expected"),
    [
        (Phase.TO_PICK, 800, 20),
        (Phase.TO_PICK, 5_000, 25),
        (Phase.TO_PICK, 20_000, 30),
        (Phase.TO_PARK, 19_999, 29),
        (Phase.TO_PARK, 40_000, 30),
        (Phase.LOADING, 40_000, 90),
    ],
)
def test_waiting_lifts_a_rank_to_the_common_cap(phase: Phase, waited_ms: int, expected: int) -> None:
    assert truck("R1", phase, waited_ms).rank == expected


@pytest.mark.req("FLT-RES-5", "FLT-DCL-1")
def test_rank_comes_before_age_and_age_before_the_id() -> None:
    old, young, twin, parking = (
        truck("R4", waited_ms=900),
        truck("R3", waited_ms=100),
        truck("R2", waited_ms=100),
        truck("R1", Phase.TO_PARK, 999),
    )

    assert order(parking, young, twin, old) == ["R4", "R2", "R3", "R1"]


@pytest.mark.req("FLT-RES-7")
def test_aged_trucks_of_all_classes_are_served_by_the_age_of_their_request() -> None:
    assert order(truck("R1", waited_ms=31_000), truck("R2", Phase.TO_PARK, 32_000)) == ["R2", "R1"]


@pytest.mark.req("FLT-OSC-9", "FLT-LIVE-5")
def test_a_truck_against_the_kept_direction_comes_later_within_its_rank() -> None:
    assert order(truck("R1", waited_ms=900), truck("R2"), against=frozenset({1})) == ["R2", "R1"]


@pytest.mark.req("FLT-LIVE-10")
def test_the_starved_truck_comes_first() -> None:
    parking = truck("R2", Phase.TO_PARK, 60_001)

    assert starved([truck("R1", waited_ms=50_000), parking], NOW, PARAMS) is parking
    assert order(truck("R1", waited_ms=50_000), parking, first=parking) == ["R2", "R1"]


@pytest.mark.req("FLT-LIVE-10")
def test_no_truck_starves_before_the_limit() -> None:
    assert starved([truck("R1", waited_ms=60_000)], NOW, PARAMS) is None


@pytest.mark.req("FLT-LIVE-10", "FLT-LIVE-9")
@pytest.mark.parametrize(("stop_code", "starves"), [(None, True), (Stop.OFFLINE, False)])
def test_a_truck_that_waits_for_a_stopped_truck_through_others_does_not_starve(
    stop_code: str | None, starves: bool
) -> None:
    stopped, between, first = truck("R0"), truck("R1", waited_ms=50_000), truck("R2", waited_ms=70_000)
    between.waiting = Waiting("WAIT_SAFE_STATE", 0, stopped.number, None)
    first.waiting = Waiting("WAIT_NODE", 0, between.number, 0)
    stopped.stop_code = stop_code

    assert (starved([stopped, between, first], NOW, PARAMS) is first) is starves


@pytest.mark.req("FLT-OSC-1")
def test_positions_do_not_change_the_order_of_waiting_trucks() -> None:
    first, second = truck("R2", waited_ms=3_000), truck("R1", waited_ms=2_900)
    before = order(first, second)
    first.at_um, second.at_um = 1_000, 100_000

    assert before == order(second, first) == ["R2", "R1"]
