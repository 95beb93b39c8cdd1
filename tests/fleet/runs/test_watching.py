"""Swings and distances of served trucks, from the reports of trucks with a known position."""

import dataclasses

import pytest
from msgspec.structs import replace

from pendula.fleet.contracts import CommandMode
from pendula.fleet.runs import Watch
from pendula.fleet.tick.records import Waiting
from tests.fleet.tick.troubled import Hall


def watched(hall: Hall, ticks: int) -> Watch:
    watch = Watch(hall.traffic.records, hall.params)
    for _ in range(ticks):
        watch.note(hall.step())
    return watch


@pytest.mark.req("FLT-OBS-9", "FLT-OSC-10")
def test_trucks_in_ordinary_traffic_keep_their_distance_and_do_not_swing() -> None:
    watch = watched(Hall(), 600)

    assert watch.closest.least_m is not None
    assert watch.closest.least_m > 0
    assert watch.swings.most("goHoldChanges") <= 2
    assert max(watch.swings.most("holdBackUm"), watch.swings.most("targetBackUm")) <= 500_000
    assert watch.swings.most("replans") <= 6


@pytest.mark.req("FLT-OBS-9")
def test_two_trucks_that_report_one_place_have_no_distance() -> None:
    hall = Hall()
    watch = Watch(hall.traffic.records, hall.params)
    outputs = hall.step()
    first, second, _ = outputs.scene.records
    second.pose = first.pose
    watch.note(outputs)

    assert watch.closest.least_m == 0.0


@pytest.mark.req("FLT-OBS-9")
@pytest.mark.parametrize("trouble", ["jumped", "silent", "absent"])
def test_a_truck_with_an_unknown_position_has_no_distance(trouble: str) -> None:
    hall = Hall(2)
    second = hall.drivers["R2"]
    if trouble == "jumped":
        hall.first.off = (second.x - hall.first.x, second.y - hall.first.y)
        hall.step()
    elif trouble == "silent":
        hall.first.mute = True
        hall.run(30)
    else:
        hall.first.mute = True
        hall.record(0).absent = True

    assert watched(hall, 1).closest.least_m is None


@pytest.mark.req("FLT-OSC-10")
def test_a_truck_with_alternating_drive_and_hold_commands_swings() -> None:
    hall = Hall()
    watch = Watch(hall.traffic.records, hall.params)
    outputs = hall.step()
    one = outputs.scene.records[0]
    one.waiting, one.hold_um = Waiting("WAIT_SPACING", 0, 1, None), 0
    for mode in (CommandMode.GO, CommandMode.HOLD, CommandMode.GO):
        aims = (replace(outputs.aims[0], mode=mode), *outputs.aims[1:])
        watch.note(dataclasses.replace(outputs, aims=aims))

    assert watch.swings.worst["goHoldChanges"][:2] == (2, "R1")
