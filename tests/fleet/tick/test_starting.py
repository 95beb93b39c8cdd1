"""Trucks that are elsewhere than expected when a fleet starts."""

import pytest

from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.contracts import CommandMode, HoldReason
from pendula.fleet.explain import sentence
from pendula.fleet.tick import TickOutputs, Traffic
from pendula.fleet.tick.orders import awaits_person
from tests.fleet.sites import scene
from tests.fleet.tick.yard import Yard

CONFLICT = "STOP_OCCUPANCY_CONFLICT"


def conflicts(outputs: TickOutputs) -> list[tuple[object, object]]:
    return [(one.robotId, one.details["by"]) for one in outputs.alerts if one.code == "OCCUPANCY_CONFLICT"]


def begun(x_m: float, y_m: float) -> tuple[Yard, TickOutputs]:
    """R2 says at once that it is there; everybody else is at rest."""
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    second = yard.drivers["R2"]
    second.x, second.y, second.yaw = int(x_m * 1_000_000), int(y_m * 1_000_000), 0
    return yard, yard.step()


@pytest.mark.req("FLT-FAIL-15", "FLT-GEO-15")
def test_two_trucks_that_start_too_close_both_stand_with_an_alert() -> None:
    # R1 rests in P1, at (14, -8).
    yard, outputs = begun(14.0, -4.5)
    first = [yard.traffic.why(one) for one in ("R1", "R2")]
    yard.run(100)
    later = [yard.traffic.why(one) for one in ("R1", "R2")]

    for whys in (first, later):
        assert [one.hold_reason for one in whys] == [HoldReason.SAFETY_STOP] * 2
        assert [(one.code, one.blocker) for one in whys] == [(CONFLICT, "R2"), (CONFLICT, "R1")]
    assert conflicts(outputs) == [("R1", "R2"), ("R2", "R1")]
    assert yard.last is not None
    assert [one.mode for one in yard.last.commands[:2]] == [CommandMode.STOP] * 2


@pytest.mark.req("FLT-FAIL-15")
def test_two_trucks_that_start_too_close_far_from_their_rest_nodes_both_report_it() -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    for name, x in (("R1", 21_000_000), ("R2", 23_000_000)):
        yard.drivers[name].x, yard.drivers[name].y, yard.drivers[name].yaw = x, 0, 0
    outputs = yard.step()
    yard.run(100)

    assert conflicts(outputs) == [("R1", "R2"), ("R2", "R1")]
    assert [one.stop_code for one in yard.traffic.records[:2]] == [CONFLICT] * 2


@pytest.mark.req("FLT-FAIL-15", "FLT-OBS-7")
def test_a_truck_that_starts_too_close_names_the_other_and_a_remedy() -> None:
    yard, _ = begun(14.0, -4.5)

    assert sentence(yard.traffic.why("R2")) == (
        "R2 stops: since the start it and R1 are closer together than two trucks may be; "
        "drive one of them away by hand, or take it out (REMOVE_ROBOT)."
    )


@pytest.mark.req("FLT-FAIL-15")
def test_trucks_that_start_too_close_need_a_person_until_one_has_driven_away() -> None:
    def waiting() -> list[str]:
        traffic = yard.traffic
        return [one.robot_id for one in traffic.records if awaits_person(one, traffic.now_ms, traffic.params)]

    yard, _ = begun(14.0, -4.5)
    at_once = waiting()
    yard.run(30)
    then = waiting()
    second = yard.drivers["R2"]
    for x, y in [(0, 100_000)] * 45 + [(100_000, 0)] * 70:
        second.x, second.y = second.x + x, second.y + y
        yard.step()
    yard.run(30)

    assert (at_once, then, waiting()) == ([], ["R2"], [])
    assert [one.stop_code for one in yard.traffic.records[:2]] == [None, None]


@pytest.mark.req("FLT-FAIL-15", "FLT-OBS-4")
def test_a_start_too_close_raises_one_alert_even_in_a_restored_fleet() -> None:
    yard, _ = begun(14.0, -4.5)
    twin = Traffic.from_state(yard.site, yard.fleet, yard.profiles, yard.params, yard.traffic.state())
    ours = yard.step()
    yard.traffic, yard.now = twin, yard.now - 100
    theirs = yard.step()

    assert conflicts(ours) == []
    assert (theirs.digest(), theirs.alerts) == (ours.digest(), ours.alerts)


@pytest.mark.req("FLT-FAIL-14", "FLT-FAIL-7", "FLT-PLAN-2")
def test_a_truck_that_starts_elsewhere_on_the_map_is_routed_from_there() -> None:
    yard, outputs = begun(21.0, 0.0)
    assert outputs.commands[1].mode is CommandMode.STOP
    accepted = [plan for _ in range(30) for plan in yard.step().accepted_routes]

    assert [(one.robot_id, one.reason) for one in accepted] == [("R2", "RECOVERY")]
    assert not set(yard.traffic.records[1].keeps) & {yard.site.zone(yard.site.node_number["P2"])}
