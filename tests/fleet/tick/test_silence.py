"""A silent truck keeps all its resources, and the alert names the trucks it cuts off."""

import pytest

from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.contracts import HoldReason, RobotStatus
from pendula.fleet.explain import sentence
from pendula.fleet.tick import Order, OrderKind, granting
from pendula.fleet.tick.snapshot import robot_state
from pendula.fleet.tick.traffic import Traffic
from pendula.fleet.traffic.grants import in_the_way
from pendula.fleet.traffic.lock_state import LockState
from pendula.fleet.units import metres
from tests.fleet.sites import scene
from tests.fleet.tick.troubled import Hall
from tests.fleet.tick.yard import Yard


def silent_on_its_way() -> Yard:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.endless = True
    yard.run(120)
    yard.drivers["R1"].mute = True
    return yard


@pytest.mark.req("FLT-FAIL-9", "FLT-FAIL-2")
def test_a_silent_truck_is_offline_by_the_age_of_its_report_with_an_alert() -> None:
    yard = silent_on_its_way()
    codes = [alert.code for _ in range(22) for alert in yard.step().alerts]

    assert codes.count("ROBOT_OFFLINE") == 1
    assert yard.traffic.why("R1").hold_reason is HoldReason.OFFLINE


@pytest.mark.req("FLT-FAIL-9", "FLT-EVO-13")
def test_a_truck_is_stale_after_half_a_second_of_silence_and_offline_after_two() -> None:
    hall = Hall()
    hall.first.mute = True
    codes = [hall.traffic.why("R1").code for _ in range(21) if hall.step()]

    assert [codes.index(one) + 1 for one in ("STOP_STALE_TELEMETRY", "STOP_OFFLINE")] == [6, 21]


@pytest.mark.req("FLT-FAIL-9")
def test_a_failed_truck_that_falls_silent_raises_one_offline_alert() -> None:
    hall = Hall()
    hall.first.off = (300_000, 2_000_000)
    hall.run(5)
    hall.first.mute = True
    hall.run(60)
    outputs = [one for one in hall.alerts if one.robotId == "R1"]

    assert [one.code for one in outputs] == ["POSE_JUMP", "ROBOT_OFFLINE"]
    assert outputs[1].details["keptResources"] == len(hall.traffic._locks.truck(0).held)


@pytest.mark.req("FLT-FAIL-9", "FLT-FAIL-3")
@pytest.mark.parametrize("latched", [False, True])
def test_a_truck_with_a_fault_that_falls_silent_raises_an_offline_alert(latched: bool) -> None:
    hall = Hall()
    if latched:
        hall.first.jammed = True
        hall.run(80)
    else:
        hall.first.status = RobotStatus.FAULT
        hall.run(5)
    hall.first.mute = True
    hall.run(60)

    assert hall.codes() == ["ROBOT_FAULT", "ROBOT_OFFLINE"]
    assert hall.traffic.why("R1").hold_reason is HoldReason.ROBOT_FAULT


@pytest.mark.req("FLT-FAIL-9")
def test_a_truck_with_rare_reports_raises_one_offline_alert_until_it_recovers() -> None:
    hall = Hall()
    for _ in range(5):
        hall.first.mute = True
        hall.run(25)
        hall.first.mute = False
        hall.run(5)
    at_first = hall.codes()
    hall.run(40)
    hall.first.mute = True
    hall.run(25)

    assert at_first == ["ROBOT_OFFLINE"]
    assert hall.codes() == ["ROBOT_OFFLINE"] * 2


@pytest.mark.req("FLT-FAIL-7", "FLT-FAIL-10", "FLT-RES-13")
def test_silence_restarts_the_time_of_steadiness() -> None:
    hall = Hall()
    hall.first.mute = True
    hall.run(30)
    kept = set(hall.record().keeps)
    hall.first.mute = False
    hall.run(10)
    hall.first.mute = True
    hall.run(50)
    hall.first.mute = False
    back = [hall.record().doubt is None for _ in range(22) if hall.step()]

    # Two seconds of reports, whatever was heard before the silence.
    assert back == [False] * 20 + [True] * 2
    assert kept >= set(hall.record().keeps)


@pytest.mark.req("FLT-LIVE-9")
def test_a_lost_truck_names_the_trucks_it_cuts_off_at_its_reported_place() -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.send("R3", "A1")
    yard.run(150)
    first, third = yard.drivers["R1"], yard.drivers["R3"]
    rest = yard.site.network.nodes[third.rest].at
    alerts = []
    # Beside where it rests, and then where the third one has to go back to.
    for off in ((0, -700_000), (rest.x_um - first.x, rest.y_um - first.y)):
        first.off = off
        alerts += [one for _ in range(3) for one in yard.step().alerts if one.robotId == "R1"]

    assert [(one.code, one.details["cutOff"]) for one in alerts] == [("POSE_JUMP", []), ("POSE_JUMP", ["R3"])]


@pytest.mark.req("FLT-FAIL-9", "FLT-RES-11", "FLT-RES-12")
def test_a_silent_truck_keeps_its_cells_and_requests_nothing() -> None:
    yard = silent_on_its_way()
    early = set(yard.traffic._records[0].keeps)
    yard.run(1_000)

    assert set(yard.traffic._records[0].keeps) == early
    assert yard.traffic._locks.truck(0).frozen


@pytest.mark.req("FLT-FAIL-10")
def test_a_truck_back_at_its_old_place_continues() -> None:
    hall = Hall()
    hall.first.mute = True
    hall.run(60)
    hall.first.mute = False

    assert hall.goes_on()


@pytest.mark.req("FLT-FAIL-9", "FLT-RES-13")
def test_cells_passed_in_silence_are_released_after_a_delayed_recovery() -> None:
    hall = Hall()
    hall.run(30)
    hall.first.mute = True
    hall.run(25)
    silent = set(hall.record().keeps)
    # It was refused something before, and is not asked for some seconds whether it can go on.
    hall.record().again_ms = hall.now + 4_000
    hall.first.mute = False
    hall.run(35)
    back, frozen = set(hall.record().keeps), hall.traffic._locks.truck(0).frozen
    hall.run(25)

    assert (back, frozen) == (silent, True)
    assert not silent <= set(hall.record().keeps)
    assert hall.traffic._locks.truck(0).held == set(hall.record().keeps)


def cut_off_by_a_silent_truck() -> Hall:
    hall = Hall()
    hall.first.mute = True
    hall.run(1_200)
    return hall


@pytest.mark.req("FLT-OBS-7", "FLT-LIVE-9")
def test_a_truck_that_is_cut_off_names_its_blocker() -> None:
    outputs = cut_off_by_a_silent_truck().traffic.why("R2")

    assert (outputs.code, outputs.blocker, outputs.chain) == ("WAIT_SAFE_STATE", "R1", ("R2", "R1"))
    assert outputs.resource is not None
    assert sentence(outputs).startswith(
        "R2 waits: R1, which is offline, blocks its only route to its parking place; it continues when R1 is back or "
        "removed; for "
    )


@pytest.mark.req("FLT-OSC-6", "FLT-TEST-49", "FLT-LIVE-9")
def test_a_truck_that_is_cut_off_raises_a_notice_and_then_the_alert_of_a_wait() -> None:
    hall = cut_off_by_a_silent_truck()
    outputs = [one for one in hall.alerts if one.robotId == "R2"]

    assert [(one.code, one.details["by"], one.details["waitMs"]) for one in outputs] == [
        ("WAIT_NOTICE", "R1", 15_000),
        ("WAIT_TOO_LONG", "R1", 90_000),
    ]


@pytest.mark.req("FLT-PERF-2")
def test_the_blocker_of_a_truck_that_is_cut_off_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def counted(state: LockState, i: int) -> tuple[int, int] | None:
        looked.append(i)
        return in_the_way(state, i)

    monkeypatch.setattr(granting, "in_the_way", counted)
    cut_off_by_a_silent_truck()

    assert looked.count(1) == 1


@pytest.mark.req("FLT-OBS-7", "FLT-FAIL-9")
def test_the_start_of_a_stop_survives_a_restart_of_the_program() -> None:
    hall = Hall()
    hall.first.mute = True
    hall.run(60)
    since = next(one.sinceMs for one in hall.alerts if one.code == "ROBOT_OFFLINE")
    assert hall.last is not None
    read = Traffic.from_state(scene("reference-hall"), reference_fleet(3), [FL_STD], None, hall.traffic.state())

    assert hall.now - since > 3_000
    assert hall.traffic.why("R1").wait_ms == hall.traffic.now_ms - since
    assert hall.last.results[0].waitMs == hall.traffic.now_ms - since
    assert read.why("R1").wait_ms == hall.traffic.now_ms - since


@pytest.mark.req("FLT-OBS-7")
def test_another_reason_restarts_the_time_of_a_stop() -> None:
    hall = Hall()
    hall.order(OrderKind.PAUSE)
    hall.run(20)
    paused = hall.traffic.why("R1").wait_ms
    hall.order(OrderKind.RESUME)

    assert paused == 2_000
    assert hall.traffic.why("R1").wait_ms == 0


@pytest.mark.req("FLT-FAIL-9", "FLT-API-3")
def test_the_state_of_a_silent_truck_is_offline_with_its_last_speed() -> None:
    hall = Hall()
    speed = hall.record().v_um_s
    hall.first.mute = True
    shown = [robot_state(hall.record(), hall.traffic.now_ms, None) for _ in range(22) if hall.step()]

    assert [one.status for one in shown if one is not None] == [RobotStatus.OK] * 20 + [RobotStatus.OFFLINE] * 2
    assert speed > 0
    assert shown[-1] is not None
    assert (shown[-1].v, shown[-1].health) == (metres(hall.record().v_um_s), "OFFLINE")


@pytest.mark.req("FLT-FAIL-9")
@pytest.mark.parametrize("latched", [False, True])
def test_the_state_of_a_faulty_truck_is_fault_even_if_silent(latched: bool) -> None:
    hall = Hall()
    if latched:
        hall.first.jammed = True
        hall.run(80)
    else:
        hall.first.status = RobotStatus.FAULT
        hall.run(5)
    spoken = robot_state(hall.record(), hall.traffic.now_ms, None)
    hall.first.mute = True
    hall.run(60)
    silent = robot_state(hall.record(), hall.traffic.now_ms, None)

    assert spoken is not None
    assert silent is not None
    assert (spoken.status, silent.status) == (RobotStatus.FAULT, RobotStatus.FAULT)


def never_heard() -> Yard:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.drivers["R2"].mute = True
    return yard


@pytest.mark.req("FLT-FAIL-9")
def test_a_truck_that_never_reported_raises_one_alert_after_the_same_time() -> None:
    yard = never_heard()
    alerts = [(tick, alert) for tick in range(100) for alert in yard.step().alerts]

    assert [(tick, one.code, one.robotId) for tick, one in alerts] == [(21, "ROBOT_OFFLINE", "R2")]
    assert alerts[0][1].details["neverHeard"] is True
    assert yard.traffic.request("R2") is None


@pytest.mark.req("FLT-FAIL-9")
def test_a_resumed_manager_does_not_repeat_the_alert_of_a_truck_that_never_reported() -> None:
    yard = never_heard()
    yard.run(50)
    yard.traffic = Traffic.from_state(
        yard.site, reference_fleet(3), [FL_STD], yard.traffic.params, yard.traffic.state()
    )

    assert [one.code for _ in range(50) for one in yard.step().alerts] == []


@pytest.mark.req("FLT-FAIL-9", "FLT-FAIL-14")
def test_a_truck_marked_absent_is_not_waited_for() -> None:
    yard = never_heard()
    yard.orders = (Order("op-1", OrderKind.ABSENT, "R2"),)
    outputs = [yard.step()]
    yard.orders = ()
    outputs += [yard.step() for _ in range(50)]

    assert not any("neverHeard" in one.details for tick in outputs for one in tick.alerts)
