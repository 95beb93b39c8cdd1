"""Trucks that are not where they were believed to be when a fleet begins."""

import pytest

from pendula.fleet.contracts.traffic import CommandMode, HoldReason
from pendula.fleet.samples import FL_STD, reference_fleet
from pendula.fleet.tick import TickOutputs
from tests.fleet.sites import scene
from tests.fleet.tick.yard import Yard


def begun(x_m: float, y_m: float) -> tuple[Yard, TickOutputs]:
    """R2 says at once that it is there; everybody else is at rest."""
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    second = yard.drivers["R2"]
    second.x, second.y, second.yaw = int(x_m * 1_000_000), int(y_m * 1_000_000), 0
    return yard, yard.step()


@pytest.mark.req("FLT-FAIL-15", "FLT-GEO-15")
def test_two_trucks_that_begin_too_close_both_stand_and_an_operator_is_told() -> None:
    # R1 rests in P1, at (14, -8).
    yard, told = begun(14.0, -4.5)
    reasons = {yard.traffic.why(one).hold_reason for one in ("R1", "R2")}
    yard.run(100)

    assert reasons == {HoldReason.SAFETY_STOP}
    assert ("OCCUPANCY_CONFLICT", "R1") in [(one.code, one.robotId) for one in told.alerts]
    assert yard.last is not None
    assert [one.mode for one in yard.last.commands[:2]] == [CommandMode.STOP] * 2


@pytest.mark.req("FLT-FAIL-14", "FLT-FAIL-7", "FLT-PLAN-2")
def test_a_truck_that_begins_elsewhere_on_the_map_takes_its_way_from_there() -> None:
    yard, told = begun(21.0, 0.0)
    assert told.commands[1].mode is CommandMode.STOP
    accepted = [plan for _ in range(30) for plan in yard.step().accepted_routes]

    assert [(one.robot_id, one.reason) for one in accepted] == [("R2", "RECOVERY")]
    assert not set(yard.traffic.records[1].keeps) & {yard.site.zone(yard.site.node_number["P2"])}
