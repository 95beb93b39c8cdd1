"""Operator orders to a truck: it stands, keeps its resources, and continues when it may."""

from collections.abc import Sequence

import pytest

from pendula.fleet import explain
from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.contracts import CommandMode, HoldReason
from pendula.fleet.tick import Order, OrderKind, TickInputs, TickOutputs
from pendula.fleet.tick.orders import awaits_person, releasable
from pendula.fleet.tick.reasons import resource_id
from tests.fleet.sites import scene
from tests.fleet.tick.troubled import Hall
from tests.fleet.tick.yard import TICK_MS, Yard


def hall(ticks: int = 120) -> Yard:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.endless = True
    yard.run(ticks)
    return yard


def ordered(yard: Yard, *orders: Order) -> TickOutputs:
    yard.orders = orders
    return yard.step()


def modes(outputs: TickOutputs) -> list[CommandMode]:
    return [one.mode for one in outputs.commands]


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-2")
def test_a_paused_truck_stops_at_once_with_the_operator_as_the_reason() -> None:
    yard = hall()
    outputs = ordered(yard, Order("op-1", OrderKind.PAUSE, "R1"))

    assert outputs.commands[0].mode is CommandMode.STOP
    assert (yard.traffic.why("R1").code, outputs.results[0].holdReason) == ("STOP_OPERATOR", HoldReason.SAFETY_STOP)
    assert [(one.order_id, one.code) for one in outputs.applied_orders] == [("op-1", None)]


@pytest.mark.req("FLT-FAIL-11", "FLT-RES-11")
def test_a_paused_truck_keeps_its_resources() -> None:
    yard = hall()
    ordered(yard, Order("op-1", OrderKind.PAUSE, "R1"))
    # What it has passed already is freed once it has said so often enough.
    yard.run(10)
    early = set(yard.traffic._records[0].keeps)
    yard.run(200)

    assert set(yard.traffic._records[0].keeps) == early


@pytest.mark.req("FLT-FAIL-11")
def test_a_resumed_truck_continues() -> None:
    troubled = Hall()
    troubled.order(OrderKind.PAUSE)
    troubled.run(20)
    troubled.order(OrderKind.RESUME)

    assert troubled.goes_on()


@pytest.mark.req("FLT-FAIL-11")
def test_the_whole_fleet_can_be_paused_and_resumed() -> None:
    yard = hall()
    paused = ordered(yard, Order("op-1", OrderKind.PAUSE))
    resumed = ordered(yard, Order("op-2", OrderKind.RESUME))

    assert set(modes(paused)) == {CommandMode.STOP}
    assert CommandMode.STOP not in modes(resumed)


@pytest.mark.req("FLT-DCL-1", "FLT-DCL-4")
def test_orders_take_effect_by_time_and_id() -> None:
    pause = Order("op-2", OrderKind.PAUSE, "R1", at_ms=5)
    resume = Order("op-1", OrderKind.RESUME, "R1", at_ms=5)
    late = Order("op-0", OrderKind.RESUME, "R1", at_ms=9)

    def stops(orders: Sequence[Order]) -> bool:
        return ordered(hall(), *orders).commands[0].mode is CommandMode.STOP

    assert [stops((pause, resume)), stops((resume, pause)), stops((late, pause, resume))] == [True, True, False]


@pytest.mark.req("FLT-FAIL-1")
def test_an_order_for_an_unknown_truck_has_no_effect() -> None:
    yard = hall()
    outputs = ordered(yard, Order("op-1", OrderKind.PAUSE, "ghost"))

    assert [one.code for one in outputs.applied_orders] == ["UNKNOWN_ROBOT"]
    assert CommandMode.STOP not in modes(outputs)


@pytest.mark.req("FLT-DCL-2")
def test_a_pause_survives_a_restart_of_traffic() -> None:
    yard = hall()
    ordered(yard, Order("op-1", OrderKind.PAUSE, "R1"))
    again = type(yard.traffic).from_state(yard.site, yard.fleet, yard.profiles, yard.params, yard.traffic.state())
    yard.now += TICK_MS
    reports = tuple(yard._report(one) for one in yard.drivers.values())

    assert again.tick(TickInputs(yard.now, reports)).commands[0].mode is CommandMode.STOP


def offline() -> Hall:
    troubled = Hall()
    troubled.first.mute = True
    troubled.run(30)
    return troubled


def names(hall: Hall) -> set[str]:
    return {resource_id(hall.site, one) for one in hall.record().keeps}


@pytest.mark.req("FLT-FAIL-11", "FLT-RES-13")
def test_resources_released_by_force_are_named_and_available_to_others() -> None:
    hall = offline()
    group = sorted(one for one in names(hall) if one.startswith("EDGE_GROUP:"))[0]
    outputs = hall.order(OrderKind.FORCE_RELEASE, resources=(group,))

    assert [(one.code, one.freed) for one in outputs.applied_orders] == [(None, (group,))]
    assert group not in names(hall)


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-9", "FLT-TEST-44")
def test_a_release_with_the_last_place_of_a_silent_truck_releases_nothing() -> None:
    hall = offline()
    held = names(hall)
    free = set(releasable(hall.record(), hall.now, hall.params))
    outputs = hall.order(OrderKind.FORCE_RELEASE, resources=tuple(sorted(held)))

    assert [one.code for one in outputs.applied_orders] == ["ROBOT_STILL_THERE"]
    assert set() < free < held == names(hall)


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-9")
def test_a_truck_that_fell_silent_in_motion_keeps_what_it_may_have_reached() -> None:
    hall = offline()
    record = hall.record()
    before = releasable(record, hall.now, hall.params)
    record.v_um_s = 8_000_000

    assert before
    assert releasable(record, hall.now, hall.params) == []


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-1")
def test_no_resource_of_a_truck_that_may_move_is_released() -> None:
    hall = Hall()
    held = hall.traffic._locks.truck(0).held
    outputs = hall.order(OrderKind.REMOVE)

    assert [one.code for one in outputs.applied_orders] == ["ROBOT_NOT_STOPPED"]
    assert hall.traffic._locks.truck(0).held & held


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-1")
@pytest.mark.parametrize(("paused", "code"), [(False, "ROBOT_NOT_STOPPED"), (True, "ROBOT_STILL_THERE")])
def test_traffic_releases_nothing_under_a_truck(paused: bool, code: str) -> None:
    hall = Hall()
    if paused:
        hall.order(OrderKind.PAUSE)
        hall.run(40)
    held = hall.traffic._locks.truck(0).held
    outputs = hall.order(OrderKind.FORCE_RELEASE, resources=tuple(sorted(names(hall))))

    assert [(one.code, one.freed) for one in outputs.applied_orders] == [(code, ())]
    assert hall.traffic._locks.truck(0).held & held


@pytest.mark.req("FLT-FAIL-11")
def test_a_paused_truck_that_still_rolls_does_not_count_as_standing() -> None:
    hall = Hall()
    hall.order(OrderKind.PAUSE)
    hall.first.v = 300_000
    hall.first.deaf = True
    hall.step()
    outputs = hall.order(OrderKind.REMOVE)

    assert [(one.code, one.message) for one in outputs.applied_orders] == [
        ("ROBOT_NOT_STOPPED", "R1 reports v = 0.3 m/s")
    ]


@pytest.mark.req("FLT-FAIL-11")
def test_a_removed_truck_holds_nothing_and_blocks_no_truck() -> None:
    hall = offline()
    outputs = hall.order(OrderKind.REMOVE)

    assert outputs.applied_orders[0].freed
    assert hall.traffic._locks.truck(0).held == set()
    assert explain.sentence(hall.traffic.why("R1")).startswith("R1 is set aside: an operator removed it or freed its ")
    assert hall.goes_on("R2")


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-11")
def test_a_removed_truck_that_reports_again_stands_until_it_is_relocated() -> None:
    hall = offline()
    hall.order(OrderKind.REMOVE)
    hall.run(20)
    assert "when it reports again, set its position" in explain.sentence(hall.traffic.why("R1"))
    hall.first.mute = False
    hall.run(60)

    assert hall.traffic.why("R1").code == "STOP_OPERATOR"
    assert hall.mode() is CommandMode.STOP
    assert "; it reports again: set its position (RELOCATE)" in explain.sentence(hall.traffic.why("R1"))
    assert awaits_person(hall.record(0), hall.now, hall.traffic.params)


@pytest.mark.req("FLT-FAIL-11", "FLT-OBS-7")
def test_a_truck_is_not_relocated_into_the_grant_of_another() -> None:
    hall = offline()
    hall.order(OrderKind.REMOVE)
    second, record = hall.drivers["R2"], hall.record(1)
    assert record.track is not None
    segment = record.track.segments[record.track.segment_at(record.at_um)]
    hall.first.x, hall.first.y, hall.first.yaw, hall.first.v = second.x, second.y, second.yaw, 0
    hall.first.mute = False
    hall.run(5)
    outputs = hall.order(OrderKind.RELOCATE, edge=segment.edge, s_um=record.at_um - segment.route_s0_um)
    hall.run(60)

    (refused,) = outputs.applied_orders
    assert refused.code == "PLACE_HELD"
    assert refused.message.startswith(
        "R1 needs EDGE_GROUP:A3<->P2 there, which conflicts with EDGE_GROUP:A3<->P2 of R2"
    )
    assert refused.message.endswith(": move one of the two trucks away")
    assert hall.traffic.why("R1").code == "STOP_OPERATOR"
    assert explain.sentence(hall.traffic.why("R1")).startswith("R1 is set aside: ")


@pytest.mark.req("FLT-FAIL-14")
def test_after_a_restart_nothing_is_granted_before_all_trucks_have_reported() -> None:
    hall = Hall()
    hall.drivers["R3"].mute = True
    hall.order(OrderKind.RESTARTED, None)
    granted = [hall.record(number).grant_um for number in (0, 1)]
    hall.run(60)
    why = hall.traffic.why("R1")

    assert [hall.record(number).grant_um for number in (0, 1)] == granted
    assert (why.code, why.blocker) == ("WAIT_SAFE_STATE", "R3")
    hall.drivers["R3"].mute = False
    assert hall.goes_on("R1")


@pytest.mark.req("FLT-FAIL-14")
def test_after_a_restart_no_route_is_accepted_before_all_trucks_have_reported() -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.drivers["R3"].mute = True
    yard.send("R1", "A1")
    early = [plan.robot_id for _ in range(10) for plan in yard.step().accepted_routes]
    yard.drivers["R3"].mute = False
    later = [plan.robot_id for _ in range(3) for plan in yard.step().accepted_routes]

    assert (early, later) == ([], ["R1"])


@pytest.mark.req("FLT-FAIL-14")
def test_after_a_restart_a_long_delayed_report_does_not_count() -> None:
    hall = Hall()
    third = hall.drivers["R3"]
    third.mute = True
    hall.order(OrderKind.RESTARTED, None)
    granted = [hall.record(number).grant_um for number in (0, 1)]
    hall.run(10)
    # What it said 600 ms ago arrives now, and goes on arriving.
    third.mute, third.clock_ms = False, -600
    hall.run(30)

    assert [hall.record(number).grant_um for number in (0, 1)] == granted
    assert hall.traffic.why("R1").blocker == "R3"
    third.clock_ms = 0
    assert hall.goes_on("R1")


@pytest.mark.req("FLT-FAIL-14", "FLT-FAIL-16")
def test_a_restart_survives_a_failed_first_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    hall = Hall()
    hall.drivers["R3"].mute = True

    def fail(_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr("pendula.fleet.tick.traffic.PHASES", (fail,))
        outputs = hall.traffic.tick(TickInputs(hall.now + 50, orders=(Order("op-1", OrderKind.RESTARTED),)))
    granted = [hall.record(number).grant_um for number in (0, 1)]
    hall.run(20)

    assert outputs.error is not None
    assert [hall.record(number).grant_um for number in (0, 1)] == granted
    assert hall.traffic.why("R1").blocker == "R3"


@pytest.mark.req("FLT-FAIL-14")
def test_an_absent_truck_delays_nothing_and_keeps_its_place() -> None:
    hall = Hall()
    hall.drivers["R3"].mute = True
    hall.order(OrderKind.RESTARTED, None)
    kept = set(hall.record(2).keeps)
    hall.run(60)
    outputs = hall.order(OrderKind.ABSENT, "R3")

    assert [one.code for one in outputs.applied_orders] == [None]
    assert hall.goes_on("R1")
    assert set(hall.record(2).keeps) == kept
    hall.drivers["R3"].mute = False
    hall.step()
    assert not hall.record(2).absent


@pytest.mark.req("FLT-FAIL-14", "FLT-FAIL-11")
def test_a_truck_removed_while_it_reported_delays_no_restart() -> None:
    hall = Hall()
    hall.order(OrderKind.PAUSE)
    hall.run(40)
    assert [one.code for one in hall.order(OrderKind.REMOVE).applied_orders] == [None]
    hall.first.mute = True
    hall.order(OrderKind.RESTARTED, None)

    hall.run(60)
    granted = hall.record(1).grant_um
    hall.run(60)

    assert hall.record(0).unheard
    assert hall.record(1).grant_um > granted


def removed_while_it_reports(ticks: int) -> Hall:
    """A truck that is paused and removed, reports for so many ticks more, and is switched off."""
    hall = Hall()
    hall.order(OrderKind.PAUSE)
    hall.run(40)
    assert [one.code for one in hall.order(OrderKind.REMOVE).applied_orders] == [None]
    hall.alerts = []
    hall.run(ticks)
    hall.first.mute = True
    return hall


@pytest.mark.req("FLT-FAIL-14", "FLT-FAIL-11")
def test_a_removed_truck_that_reported_for_a_while_delays_no_restart() -> None:
    hall = removed_while_it_reports(3)
    hall.order(OrderKind.RESTARTED, None)
    granted = [hall.record(number).grant_um for number in (1, 2)]
    hall.run(60)

    assert [hall.record(number).grant_um for number in (1, 2)] != granted
    assert hall.codes() == []


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-5")
def test_the_reported_place_of_a_removed_truck_is_closed_until_it_is_removed_again() -> None:
    hall = removed_while_it_reports(3)
    hall.run(30)
    record, held = hall.record(), hall.traffic._locks.truck(0).held
    kept = set(held)
    needed = awaits_person(record, hall.traffic.now_ms, hall.traffic.params)
    said = explain.sentence(hall.traffic.why("R1"))
    outputs = hall.order(OrderKind.REMOVE)
    record = hall.record()

    assert kept
    assert needed
    assert "stays closed until then, or until it is off and removed again (REMOVE_ROBOT)" in said
    assert [(one.code, bool(one.freed)) for one in outputs.applied_orders] == [(None, True)]
    assert hall.traffic._locks.truck(0).held == set()
    assert not awaits_person(record, hall.traffic.now_ms, hall.traffic.params)


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-5")
def test_removing_a_reporting_truck_releases_nothing_at_its_reported_place() -> None:
    hall = removed_while_it_reports(30)
    hall.first.mute = False
    hall.run(3)
    kept = set(hall.traffic._locks.truck(0).held)
    outputs = hall.order(OrderKind.REMOVE)

    assert kept
    assert [(one.code, one.freed) for one in outputs.applied_orders] == [(None, ())]
    assert hall.traffic._locks.truck(0).held == kept


@pytest.mark.req("FLT-FAIL-7", "FLT-FAIL-11", "FLT-DCL-2")
def test_a_truck_carried_to_its_own_rest_node_rests_there() -> None:
    hall = removed_while_it_reports(0)
    hall.run(30)
    network, rest = hall.site.network, hall.first.rest
    out = network.outgoing[rest][0]
    path = network.edges[out].path
    hall.first.x, hall.first.y = network.nodes[rest].at.x_um, network.nodes[rest].at.y_um
    hall.first.yaw, hall.first.v, hall.first.plan = path.heading(0), 0, None
    hall.first.mute = False
    hall.run(5)
    outputs = [hall.order(OrderKind.RESUME), hall.order(OrderKind.RELOCATE, edge=out, s_um=0)]
    later = [hall.step() for _ in range(40)]

    assert [one.code for each in outputs for one in each.applied_orders] == [None, None]
    assert [one.error for one in later if one.error is not None] == []
    assert (hall.record().stop_code, hall.record().doubt) == (None, None)


@pytest.mark.req("FLT-FAIL-11", "FLT-OBS-7")
def test_a_truck_too_far_beside_an_edge_is_not_relocated_to_it() -> None:
    hall = Hall()
    record = hall.record()
    assert record.track is not None
    segment = record.track.segments[record.track.segment_at(record.at_um)]
    hall.order(OrderKind.PAUSE)
    hall.run(40)
    along = abs(hall.first.yaw) < 800_000 or abs(hall.first.yaw) > 2_300_000
    x, y = hall.first.x, hall.first.y
    hall.first.off = (0, 3_000_000) if along else (3_000_000, 0)
    hall.run(5)
    # So far beside the lane it could drive back, but not as it looks.
    hall.first.off = (0, 300_000) if along else (300_000, 0)
    yaw, hall.first.yaw = hall.first.yaw, hall.first.yaw + 600_000
    hall.run(5)
    path = hall.site.network.edges[segment.edge].path
    s_um, _ = path.nearest(x, y, 0, path.length_um)
    beyond = hall.order(OrderKind.RELOCATE, edge=segment.edge, s_um=path.length_um + 1)
    beside = hall.order(OrderKind.RELOCATE, edge=segment.edge, s_um=s_um)
    hall.first.off, hall.first.yaw = (0, 0), yaw
    hall.run(5)
    there = hall.order(OrderKind.RELOCATE, edge=segment.edge, s_um=s_um)

    assert ["ends after" in one.message for one in beyond.applied_orders] == [True]
    (refused,) = beside.applied_orders
    assert refused.code == "POSE_DISAGREES"
    assert "more than 0.2 m beside" in refused.message
    assert [one.code for one in there.applied_orders] == [None]


@pytest.mark.req("FLT-FAIL-14")
def test_a_reporting_truck_cannot_be_marked_absent() -> None:
    outputs = Hall().order(OrderKind.ABSENT)

    assert [one.code for one in outputs.applied_orders] == ["ROBOT_REPORTS"]
