"""Commands without acknowledgement or effect, and passed stop lines."""

import pytest
from msgspec import structs

from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.contracts import CommandMode, HoldReason, RobotHealth, RobotStatus
from pendula.fleet.explain import sentence
from pendula.fleet.map.geometry import turn_urad
from pendula.fleet.tick import OrderKind, TickInputs
from pendula.fleet.tick.health import is_stuck, is_unheard
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.reasons import resource_id
from pendula.fleet.tick.records import Record, Stop, Waiting, hold_of
from tests.fleet.sites import scene
from tests.fleet.tick.troubled import Hall
from tests.fleet.tick.yard import Yard


@pytest.mark.req("FLT-FAIL-18", "FLT-FAIL-2", "FLT-RTP-7")
def test_a_truck_without_acknowledgements_gets_no_grant_and_a_stop() -> None:
    hall = Hall()
    hall.first.deaf = True
    hall.run(17)
    why, granted = hall.traffic.why("R1"), hall.record().grant_um

    assert (why.code, why.hold_reason, hall.mode()) == ("STOP_NO_COMMS", HoldReason.NO_COMMS, CommandMode.STOP)
    hall.run(100)
    assert hall.record().grant_um == granted
    assert hall.codes() == ["NO_COMMS"]


@pytest.mark.req("FLT-FAIL-18")
def test_a_truck_that_acknowledges_again_continues() -> None:
    hall = Hall()
    hall.first.deaf = True
    hall.run(40)
    hall.first.deaf = False

    assert hall.goes_on()


@pytest.mark.req("FLT-RTP-7", "FLT-RTP-8")
def test_a_stop_is_repeated_with_a_new_number_until_it_is_acknowledged() -> None:
    hall = Hall()
    hall.first.deaf = True
    hall.run(20)
    said = [hall.step().commands[0] for _ in range(5)]

    assert {one.mode for one in said} == {CommandMode.STOP}
    assert [one.seq for one in said] == list(range(said[0].seq, said[0].seq + 5))


@pytest.mark.req("FLT-RTP-7")
@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        ({"mute": True}, "STOP_OFFLINE"),
        ({"off": (0, 2_000_000)}, "STOP_POSE_JUMP"),
        ({"status": RobotStatus.FAULT}, "STOP_ROBOT_FAULT"),
    ],
)
def test_a_truck_that_must_stand_gets_a_stop_without_a_target(trouble: dict[str, object], code: str) -> None:
    hall = Hall()
    for name, value in trouble.items():
        setattr(hall.first, name, value)
    hall.run(30)
    outputs = hall.step().commands[0]

    assert (hall.traffic.why("R1").code, outputs.mode) == (code, CommandMode.STOP)
    assert outputs.targetS == outputs.stopLineS == outputs.currentS
    assert not outputs.speedLimitMps


@pytest.mark.req("FLT-RTP-7")
def test_a_truck_without_a_route_gets_a_stop_too() -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.run(3)
    yard.drivers["R1"].mute = True
    yard.run(30)

    assert yard.last is not None
    assert [one.mode for one in yard.last.commands] == [CommandMode.STOP, CommandMode.HOLD, CommandMode.HOLD]


@pytest.mark.req("FLT-FAIL-13", "FLT-FAIL-2")
def test_a_truck_that_does_not_move_to_its_target_is_stuck() -> None:
    hall = Hall()
    hall.first.jammed = True
    hall.run(51)
    assert hall.traffic.why("R1").code != "STOP_STUCK"
    hall.run(5)
    why = hall.traffic.why("R1")

    assert (why.code, why.hold_reason, hall.codes()) == ("STOP_STUCK", HoldReason.ROBOT_FAULT, ["ROBOT_FAULT"])
    assert hall.record().health is RobotHealth.STUCK


@pytest.mark.req("FLT-FAIL-13", "FLT-FAIL-11")
def test_a_stuck_truck_stays_until_it_is_cleared() -> None:
    hall = Hall()
    hall.first.jammed = True
    hall.run(60)
    hall.first.jammed = False
    hall.run(100)
    assert hall.mode() is CommandMode.STOP
    hall.order(OrderKind.CLEAR)

    assert hall.goes_on()


@pytest.mark.req("FLT-FAIL-13")
def test_a_truck_with_a_reported_obstacle_is_not_stuck_and_continues_by_itself() -> None:
    hall = Hall()
    hall.first.jammed = hall.first.obstructed = True
    hall.run(200)
    assert hall.traffic.why("R1").code != "STOP_STUCK"
    hall.first.jammed = hall.first.obstructed = False

    assert hall.goes_on()


@pytest.mark.req("FLT-FAIL-13")
def test_a_truck_that_waits_for_another_truck_is_not_stuck() -> None:
    hall = Hall()
    hall.drivers["R2"].mute = hall.drivers["R3"].mute = True
    hall.run(600)

    assert "ROBOT_FAULT" not in hall.codes()


@pytest.mark.req("FLT-RTP-10", "FLT-FAIL-7", "FLT-TEST-27")
def test_a_truck_that_passes_its_stop_line_is_stopped_and_holds_what_it_covers() -> None:
    hall = Hall(1)
    record = hall.record()
    assert record.track is not None
    assert hall.first.plan is not None
    # It drives on, faster than commanded, to a third of a metre beyond.
    while hall.first.s < hall.record().hold_um + 330_000:
        hall.first.s += 100_000
        pose = hall.first.plan.pose_at(hall.first.s)
        hall.first.x, hall.first.y, hall.first.yaw, hall.first.v = pose.x_um, pose.y_um, pose.yaw_urad, 1_000_000
        hall.first.deaf = True
        hall.first.ack = hall.step().commands[0].seq
        if hall.record().doubt is not None:
            break
    doubt = hall.record().doubt

    assert hall.traffic.why("R1").code == "STOP_OVERRUN"
    assert hall.codes() == ["HOLDPOINT_OVERRUN"]
    assert doubt is not None
    assert hall.traffic._locks.truck(0).held >= set(doubt.extra)
    assert doubt.extra
    # Still stuck after a long time, because it was not cleared.
    hall.first.v = 0
    for _ in range(40):
        hall.first.ack = hall.step().commands[0].seq
    assert hall.record().doubt is not None
    assert hall.traffic.why("R1").code == "STOP_OVERRUN"
    assert hall.traffic._locks.truck(0).held >= set(doubt.extra)


@pytest.mark.req("FLT-FAIL-3")
@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        ({"status": RobotStatus.FAULT, "deaf": True, "off": (0, 2_000_000)}, "STOP_ROBOT_FAULT"),
        ({"status": RobotStatus.OFFLINE, "deaf": True}, "STOP_OFFLINE"),
        ({"mute": True, "deaf": True}, "STOP_OFFLINE"),
        ({"deaf": True, "off": (0, 2_000_000)}, "STOP_NO_COMMS"),
        ({"off": (0, 2_000_000)}, "STOP_POSE_JUMP"),
        ({}, "STOP_OPERATOR"),
    ],
)
def test_the_most_severe_of_several_reasons_applies(trouble: dict[str, object], code: str) -> None:
    hall = Hall()
    hall.order(OrderKind.PAUSE)
    for name, value in trouble.items():
        setattr(hall.first, name, value)
    hall.run(30)

    assert hall.traffic.why("R1").code == code


@pytest.mark.req("FLT-FAIL-3")
def test_a_silent_truck_with_a_reported_fault_has_a_fault() -> None:
    hall = Hall()
    hall.first.status = RobotStatus.FAULT
    hall.step()
    hall.first.mute = True
    hall.run(30)

    assert hall.traffic.why("R1").code == "STOP_ROBOT_FAULT"


@pytest.mark.req("FLT-FAIL-2", "FLT-FAIL-3")
def test_every_stop_has_one_reason_and_stops_are_ordered_like_reasons() -> None:
    order = [HoldReason.ROBOT_FAULT, HoldReason.OFFLINE, HoldReason.NO_COMMS, HoldReason.SAFETY_STOP]
    found = [hold_of(one) for one in Stop]

    assert found == sorted(found, key=[*order, HoldReason.TRAFFIC_HOLD].index)
    assert [one for one in Stop if hold_of(one) is HoldReason.TRAFFIC_HOLD] == [Stop.SAFE_STATE]


@pytest.mark.req("FLT-FAIL-1", "FLT-RTP-8")
def test_a_truck_cannot_acknowledge_an_unsent_command() -> None:
    hall = Hall()
    sent = hall.record().seq
    hall.first.deaf, hall.first.ack = True, sent + 1_000
    hall.step()

    assert hall.record().ack_seq == sent


@pytest.mark.req("FLT-FAIL-2", "FLT-FAIL-7")
def test_a_truck_with_a_reported_fault_continues_after_two_healthy_seconds() -> None:
    hall = Hall()
    hall.first.status = RobotStatus.FAULT
    hall.run(10)
    assert hall.traffic.why("R1").hold_reason is HoldReason.ROBOT_FAULT
    hall.first.status = RobotStatus.OK
    hall.run(20)
    assert hall.mode() is CommandMode.STOP

    assert hall.goes_on()


@pytest.mark.req("FLT-FAIL-17")
def test_three_impossible_reports_in_a_row_make_a_truck_stale() -> None:
    hall = Hall()
    outputs = []
    for _ in range(4):
        hall.first.clock_ms = 3_600_000
        hall.step()
        outputs.append(hall.traffic.why("R1").code)
    hall.first.clock_ms = 0
    hall.step()

    assert outputs[2:] == ["STOP_STALE_TELEMETRY"] * 2
    assert "STOP_STALE_TELEMETRY" not in outputs[:2]
    assert hall.traffic.why("R1").code != "STOP_STALE_TELEMETRY"


@pytest.mark.req("FLT-FAIL-17")
@pytest.mark.parametrize(("ahead_ms", "dropped"), [(200, []), (201, ["REPORT_FROM_THE_FUTURE"])])
def test_a_clock_may_be_ahead_by_a_fifth_of_a_second(ahead_ms: int, dropped: list[str]) -> None:
    hall = Hall()
    hall.first.clock_ms = ahead_ms
    outputs = hall.step()

    assert [one.code for one in outputs.dropped_reports] == dropped


@pytest.mark.req("FLT-FAIL-17")
def test_three_outdated_reports_in_a_row_make_a_truck_stale() -> None:
    hall = Hall()
    hall.first.clock_ms = -10_000
    dropped = [one.code for _ in range(3) for one in hall.step().dropped_reports]

    assert dropped == ["REPORT_OUTDATED"] * 3
    assert hall.traffic.why("R1").code == "STOP_STALE_TELEMETRY"


@pytest.mark.req("FLT-FAIL-18")
@pytest.mark.parametrize(("after_ms", "unheard"), [(1_500, False), (1_501, True)])
def test_a_truck_loses_communication_after_1500_ms_without_a_new_acknowledgement(after_ms: int, unheard: bool) -> None:
    record = Hall().record().copied()
    record.seq, record.ack_seq, record.ack_ms = 20, 19, 0
    silent = structs.replace(record.profile, capabilities=("stop",))

    assert is_unheard(record, after_ms, TrafficParams()) is unheard
    record.profile = silent
    assert not is_unheard(record, after_ms, TrafficParams())


def turning() -> Hall:
    """The hall just after R1 was commanded to turn."""
    hall = Hall()
    while hall.mode() is not CommandMode.TURN:
        hall.step()
        assert hall.now < 300_000
    return hall


@pytest.mark.req("FLT-FAIL-13", "FLT-FAIL-2", "FLT-RTP-12")
def test_a_truck_that_ignores_a_turn_is_stuck_with_that_reason() -> None:
    hall = turning()
    hall.first.jammed = True
    hall.run(49)
    assert hall.traffic.why("R1").code != "STOP_STUCK"
    while "ROBOT_FAULT" not in hall.codes():
        hall.step()
        assert hall.now < 300_000
    why = hall.traffic.why("R1")
    alert = next(one for one in hall.alerts if one.code == "ROBOT_FAULT")

    assert (why.code, why.hold_reason, hall.record().health) == (
        "STOP_STUCK",
        HoldReason.ROBOT_FAULT,
        RobotHealth.STUCK,
    )
    assert sentence(why) == "R1 stops: it got a command to turn and does not."
    # What it was told last, where it may get to, who is in its way: all that somebody has to know who goes there.
    assert (alert.robotId, alert.details["command"], alert.details["blocker"]) == ("R1", "TURN", None)
    assert (alert.details["holdPointUm"], alert.details["lastAckSeq"]) == (hall.record().hold_um, hall.record().ack_seq)


@pytest.mark.req("FLT-FAIL-13", "FLT-FAIL-11")
def test_a_truck_that_did_not_turn_continues_when_it_is_cleared() -> None:
    hall = turning()
    hall.first.jammed = True
    hall.run(60)
    hall.first.jammed = False
    hall.run(100)
    assert hall.mode() is CommandMode.STOP
    hall.order(OrderKind.CLEAR)

    assert hall.goes_on()


@pytest.mark.req("FLT-FAIL-13")
def test_a_truck_that_turns_slowly_or_reports_an_obstacle_is_not_stuck() -> None:
    for obstructed in (False, True):
        hall = turning()
        hall.first.jammed, hall.first.obstructed = True, obstructed
        act = hall.record().act
        assert act is not None
        assert act.yaw_urad is not None
        away = -1 if turn_urad(hall.first.yaw, act.yaw_urad) > 0 else 1
        for _ in range(12):
            # Six degrees in four seconds, the longer way round.
            hall.first.yaw += 0 if obstructed else away * 105_000
            hall.run(40)
        assert "ROBOT_FAULT" not in hall.codes()


@pytest.mark.req("FLT-FAIL-13")
def test_a_long_turn_does_not_count_for_the_drive_after_it() -> None:
    hall = turning()
    act = hall.record().act
    assert act is not None
    assert act.yaw_urad is not None
    hall.first.jammed = True
    hall.run(45)
    hall.first.yaw = act.yaw_urad
    # It sets out late as well, but not too late.
    hall.run(45)

    assert hall.record().act != act
    assert "ROBOT_FAULT" not in hall.codes()


@pytest.mark.req("FLT-FAIL-13")
def test_a_truck_that_stops_short_of_its_node_is_stuck() -> None:
    hall = Hall()
    left = 0
    while not 150_000 < left < 300_000:
        hall.step()
        act = hall.record().act
        left = 0 if act is None else act.s_um - hall.first.s
        assert hall.now < 300_000
    hall.first.jammed = True
    hall.run(56)

    assert hall.traffic.why("R1").code == "STOP_STUCK"


@pytest.mark.req("FLT-RTP-7")
def test_a_truck_that_ignores_a_stop_is_named_once() -> None:
    hall = Hall()
    hall.order(OrderKind.PAUSE)
    assert hall.first.plan is not None
    granted = hall.record().grant_um
    for _ in range(120):
        hall.first.s += 3_000
        pose = hall.first.plan.pose_at(hall.first.s)
        hall.first.x, hall.first.y, hall.first.yaw, hall.first.v = pose.x_um, pose.y_um, pose.yaw_urad, 30_000
        hall.first.deaf = True
        hall.first.ack = hall.step().commands[0].seq
    why = hall.traffic.why("R1")

    assert hall.codes() == ["STOP_IGNORED"]
    assert sentence(why) == "R1 stops: an operator paused it; it drives on despite a command to stop."
    assert hall.record().grant_um == granted
    hall.first.v = 0
    hall.step()
    assert sentence(hall.traffic.why("R1")) == "R1 stops: an operator paused it."


def sent_ahead(ahead_um: int = 1_000_000) -> Record:
    """A truck that is sent so far ahead on its way, and for which nothing is in the way."""
    record = Hall().record().copied()
    record.waiting = record.crawl_ms = None
    record.acted = 0 if record.track is None else len(record.track.acts)
    record.target_um = record.at_um + ahead_um
    return record


def sticks(record: Record, moves_um: int = 0) -> bool:
    """Whether it is stuck after a little more than five seconds in which it came so far."""
    params = TrafficParams()
    begin = record.at_um
    for now in range(0, 5_101, 100):
        record.at_um = begin + moves_um * now // 5_100
        found = is_stuck(record, now, params)
    return found


@pytest.mark.req("FLT-FAIL-13")
@pytest.mark.parametrize(("ahead_um", "stuck"), [(300_000, False), (300_001, True)])
def test_a_truck_must_move_to_a_target_more_than_thirty_centimetres_ahead(ahead_um: int, stuck: bool) -> None:
    assert sticks(sent_ahead(ahead_um)) is stuck


@pytest.mark.req("FLT-FAIL-13")
@pytest.mark.parametrize(("moves_um", "stuck"), [(49_999, True), (50_000, False)])
def test_less_than_five_centimetres_do_not_count_as_movement(moves_um: int, stuck: bool) -> None:
    assert sticks(sent_ahead(), moves_um) is stuck


@pytest.mark.req("FLT-FAIL-13")
@pytest.mark.parametrize(("left_um", "stuck"), [(500_000, False), (500_001, True)])
def test_a_near_hold_point_explains_why_a_waiting_truck_stands(left_um: int, stuck: bool) -> None:
    record = sent_ahead()
    record.waiting = Waiting("WAIT_NODE", None, 1, None)
    record.hold_um = record.at_um + left_um

    assert sticks(record) is stuck


@pytest.mark.req("FLT-FAIL-13")
def test_the_alert_of_a_stuck_truck_names_the_blocker_and_its_place() -> None:
    hall = Hall()
    draft = hall.traffic._draft(TickInputs(hall.now + 100))
    record = draft.records[0]
    zone = hall.site.zone(hall.site.node_number["A1"])
    record.waiting, record.stop_code = Waiting("WAIT_NODE", zone, 1, None), Stop.STUCK
    draft.failed(record, [2])
    found = draft.alerts[-1].details

    assert (found["blocker"], found["resource"], found["cutOff"]) == ("R2", resource_id(hall.site, zone), ["R3"])
    assert (found["holdPointUm"], found["lastAckSeq"]) == (record.hold_um, record.ack_seq)
