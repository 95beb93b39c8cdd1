"""A truck at an impossible position stops, both places are protected, and it recovers once its position is certain."""

import pytest
from msgspec.structs import replace

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import CommandMode, HoldReason, RobotStatus
from pendula.fleet.map.routes import Pose
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.tick import OrderKind, TickInputs, orders
from pendula.fleet.tick.observing import is_jump
from pendula.fleet.tick.phases import release_passed_resources
from pendula.fleet.tick.records import Retraction
from pendula.fleet.traffic.lock_state import LockState
from tests.fleet.tick.troubled import Hall

ASIDE = (300_000, 2_000_000)
# Its inflation is 0.15 m, not 0.2.
EXACT = replace(FL_STD, localization_error=replace(FL_STD.localization_error, value_um=50_000))


def jumped(off: tuple[int, int] = ASIDE) -> Hall:
    hall = Hall()
    hall.first.off = off
    hall.step()
    return hall


def onto_the_second() -> Hall:
    hall = Hall()
    second = hall.drivers["R2"]
    hall.first.off = (second.x - hall.first.x, second.y - hall.first.y)
    hall.step()
    return hall


@pytest.mark.req("FLT-FAIL-4", "FLT-FAIL-2", "FLT-PLAN-15")
def test_a_truck_that_jumps_is_stopped_in_the_same_tick() -> None:
    hall = jumped()

    assert (hall.mode(), hall.traffic.why("R1").code) == (CommandMode.STOP, "STOP_POSE_JUMP")
    assert hall.traffic.why("R1").hold_reason is HoldReason.SAFETY_STOP
    assert hall.codes() == ["POSE_JUMP"]


@pytest.mark.req("FLT-FAIL-7")
def test_the_drive_between_the_last_good_report_and_the_first_bad_one_counts() -> None:
    hall = Hall()
    one = hall.first
    one.mute = True
    hall.run(4)
    # No report arrived, but it drove on as commanded.
    assert one.plan is not None
    one.s += 400_000
    pose = one.plan.pose_at(one.s)
    one.x, one.y, one.yaw = pose.x_um, pose.y_um, pose.yaw_urad
    one.mute, one.off = False, ASIDE
    hall.step()
    assert hall.codes() == ["POSE_JUMP"]
    one.off = (0, 0)

    assert hall.goes_on()


@pytest.mark.req("FLT-FAIL-5", "FLT-MAP-1")
def test_a_truck_that_jumped_is_protected_at_its_old_and_its_reported_place() -> None:
    hall = Hall()
    before = set(hall.record().keeps)
    hall.first.off = ASIDE
    hall.step()
    pose = hall.record().pose
    assert pose is not None
    around = hall.traffic._ground.discs.resources(pose.x_um, pose.y_um, 2_469_818 + 200_000)

    assert around
    assert hall.traffic._locks.truck(0).held >= before | set(around)


@pytest.mark.req("FLT-FAIL-6", "FLT-GEO-16")
def test_a_truck_with_a_grant_at_the_reported_place_stops_and_keeps_its_grant() -> None:
    hall = Hall()
    kept = set(hall.record(1).keeps)
    second = hall.drivers["R2"]
    hall.first.off = (second.x - hall.first.x, second.y - hall.first.y)
    hall.step()
    why = hall.traffic.why("R2")

    assert (hall.mode(1), why.code, why.blocker) == (CommandMode.STOP, "STOP_FOREIGN_OCCUPANCY", "R1")
    assert set(hall.record(1).keeps) >= kept - {one for one, free in hall.record(1).held.items() if free <= 0}
    assert hall.codes("R2") == ["FOREIGN_OCCUPANCY"]


@pytest.mark.req("FLT-FAIL-5")
def test_a_truck_that_jumps_again_is_protected_at_the_new_place() -> None:
    hall = jumped()
    first = set(hall.traffic._locks.truck(0).held)
    far = hall.site.network.edges[hall.site.edge_number["A1->WEST"]].path.point(1_000_000)
    hall.first.off = (far[0] - hall.first.x, far[1] - hall.first.y)
    hall.step()
    pose = hall.record().pose
    assert pose is not None
    around = set(hall.traffic._ground.discs.resources(pose.x_um, pose.y_um, 2_469_818 + 200_000))

    assert not around <= first
    assert hall.traffic._locks.truck(0).held >= first | around


@pytest.mark.req("FLT-FAIL-5", "FLT-FAIL-9")
def test_a_truck_in_doubt_keeps_an_acknowledged_retraction() -> None:
    hall = Hall()
    record = hall.record()
    assert record.track is not None
    ahead = record.track.taken(record.at_um + 2_000_000, record.grant_um)
    last = max(one.resource for one in ahead if one.resource < len(hall.site.cells))
    del record.held[last]
    record.retraction = Retraction(record.seq, record.at_um, (last,))
    hall.first.off = ASIDE
    hall.run(3)

    assert hall.record().ack_seq > record.seq
    assert last in hall.record().keeps
    assert last in hall.traffic._locks.truck(0).held


@pytest.mark.req("FLT-FAIL-4")
def test_a_distance_possible_since_the_last_report_is_not_a_jump() -> None:
    hall = Hall()
    record, profile = hall.record(), hall.record().profile
    here = Pose(0, 0, 0)

    def jumps(far_um: int, passed_ms: int) -> bool:
        return is_jump(here, Pose(0, far_um, 0), passed_ms, record, hall.params)

    for passed_ms in (0, 100, 1_000):
        driven = profile.v_max_um_s * passed_ms // 1000
        assert (jumps(driven + 500_000, passed_ms), jumps(driven + 500_001, passed_ms)) == (False, True)


@pytest.mark.req("FLT-FAIL-6")
def test_a_truck_stops_if_either_of_two_lost_trucks_may_be_in_its_grant() -> None:
    hall = Hall()
    second, third = hall.drivers["R2"], hall.drivers["R3"]
    hall.first.off = ASIDE
    hall.step()
    second.off = (third.x - second.x, third.y - second.y)
    hall.step()

    assert (hall.mode(2), hall.traffic.why("R3").blocker) == (CommandMode.STOP, "R2")


@pytest.mark.req("FLT-FAIL-6", "FLT-FAIL-7")
def test_a_truck_stopped_for_a_lost_truck_continues_after_its_recovery() -> None:
    hall = onto_the_second()
    hall.first.off = (0, 0)
    hall.run(30)

    assert hall.traffic.why("R2").code != "STOP_FOREIGN_OCCUPANCY"
    assert hall.goes_on("R2")


@pytest.mark.req("FLT-FAIL-7")
def test_a_recovered_truck_continues_after_two_seconds_of_steady_poses() -> None:
    hall = jumped()
    hall.run(10)
    hall.first.off = (0, 0)
    stopped = 0
    while hall.mode() is CommandMode.STOP:
        hall.step()
        stopped += 1
    # The report that brings it back is a jump, so steadiness begins with the next one.
    assert stopped == 22
    assert hall.goes_on()


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-5")
def test_an_impossible_position_is_not_trusted_however_steady() -> None:
    hall = jumped()
    kept = set(hall.traffic._locks.truck(0).held)
    hall.run(300)

    assert (hall.mode(), hall.traffic.why("R1").code) == (CommandMode.STOP, "STOP_POSE_JUMP")
    assert hall.traffic._locks.truck(0).held >= kept


@pytest.mark.req("FLT-FAIL-1", "FLT-PLAN-14")
def test_a_jump_ahead_on_the_own_route_releases_nothing() -> None:
    hall = Hall()
    record = hall.record()
    assert record.track is not None
    here, there = (record.track.plan.pose_at(record.at_um + far) for far in (0, 2_400_000))
    kept = set(record.keeps)
    hall.first.off = (there.x_um - here.x_um, there.y_um - here.y_um)
    hall.run(100)

    assert hall.traffic.why("R1").code == "STOP_POSE_JUMP"
    assert hall.traffic._locks.truck(0).held >= kept


@pytest.mark.req("FLT-FAIL-1", "FLT-PLAN-14")
def test_the_end_of_a_grant_is_kept_whatever_position_is_reported() -> None:
    hall = Hall()
    draft = hall.traffic._draft(TickInputs(hall.now + 100))
    record = draft.records[0]
    needed = {one for one, free in record.held.items() if free > record.passed_um}
    before = set(record.held)
    record.bound_um = 1_000_000_000
    release_passed_resources(draft)

    assert needed
    assert needed <= set(record.held) < before
    assert needed <= draft.locks.truck(0).held


@pytest.mark.req("FLT-FAIL-8", "FLT-PLAN-3")
def test_a_truck_that_slides_off_its_route_is_off_route() -> None:
    hall = Hall()
    along = abs(hall.first.yaw) < 800_000 or abs(hall.first.yaw) > 2_300_000
    hall.first.off = (0, 300_000) if along else (300_000, 0)
    hall.step()

    assert (hall.traffic.why("R1").code, hall.codes()) == ("STOP_OFF_ROUTE", ["OFF_ROUTE"])


@pytest.mark.req("FLT-FAIL-8")
@pytest.mark.parametrize(
    ("profile", "aside_um", "code"),
    [
        (FL_STD, 190_000, None),
        (FL_STD, 210_000, "STOP_OFF_ROUTE"),
        (EXACT, 140_000, None),
        (EXACT, 160_000, "STOP_OFF_ROUTE"),
    ],
)
def test_a_truck_farther_beside_its_route_than_its_inflation_is_off_route(
    profile: RobotProfile, aside_um: int, code: str | None
) -> None:
    hall = Hall(profile=profile)
    along = abs(hall.first.yaw) < 800_000 or abs(hall.first.yaw) > 2_300_000
    hall.first.off = (0, aside_um) if along else (aside_um, 0)
    hall.step()

    assert hall.record().stop_code == code


@pytest.mark.req("FLT-FAIL-7", "FLT-FAIL-8", "FLT-PLAN-8")
def test_a_truck_that_slid_continues_once_it_is_on_the_map_again() -> None:
    hall = Hall()
    along = abs(hall.first.yaw) < 800_000 or abs(hall.first.yaw) > 2_300_000
    hall.first.off = (0, 300_000) if along else (300_000, 0)
    hall.run(10)
    hall.first.off = (0, 0)

    assert hall.goes_on()


@pytest.mark.req("FLT-FAIL-7")
def test_a_truck_that_slid_stands_until_it_was_on_its_route_for_two_seconds() -> None:
    hall = Hall()
    along = abs(hall.first.yaw) < 800_000 or abs(hall.first.yaw) > 2_300_000
    # Farther than it could drive back by itself.
    hall.first.off = (0, 600_000) if along else (600_000, 0)
    beside = {hall.mode() for _ in range(60) if hall.step()}
    hall.first.off = (0, 0)
    back = [hall.mode() for _ in range(30) if hall.step()]

    assert beside == {CommandMode.STOP}
    assert [one is CommandMode.STOP for one in back] == [True] * 20 + [False] * 10


@pytest.mark.req("FLT-EVO-13")
def test_a_truck_with_low_confidence_is_off_route() -> None:
    hall = Hall()
    hall.first.sure = 400_000
    hall.step()

    assert hall.traffic.why("R1").code == "STOP_OFF_ROUTE"


@pytest.mark.req("FLT-EVO-13", "FLT-FAIL-7")
def test_a_truck_with_low_confidence_stands_until_two_seconds_of_confidence() -> None:
    hall = Hall()
    hall.first.sure = 499_999
    unsure = {hall.mode() for _ in range(60) if hall.step()}
    hall.first.sure = 500_000
    sure = [hall.mode() for _ in range(30) if hall.step()]

    assert unsure == {CommandMode.STOP}
    assert hall.codes() == ["OFF_ROUTE"]
    assert [one is CommandMode.STOP for one in sure] == [True] * 20 + [False] * 10


@pytest.mark.req("FLT-FAIL-10")
@pytest.mark.parametrize("trouble", [{"mute": True}, {"status": RobotStatus.FAULT}, {"status": RobotStatus.OFFLINE}])
def test_a_truck_elsewhere_after_silence_or_a_fault_has_jumped(trouble: dict[str, object]) -> None:
    hall = Hall()
    for name, value in trouble.items():
        setattr(hall.first, name, value)
    hall.run(30)
    hall.first.mute, hall.first.status, hall.first.off = False, RobotStatus.OK, ASIDE
    hall.step()

    assert hall.traffic.why("R1").code == "STOP_POSE_JUMP"


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-7", "FLT-PLAN-10")
def test_a_carried_truck_continues_from_there_after_relocate() -> None:
    hall = Hall(1)
    record = hall.record()
    assert record.track is not None
    old = record.track.plan
    site = hall.site
    edge = site.edge_number["A3->A2"] if hall.first.x < 20_000_000 else site.edge_number["A1->A2"]
    path = site.network.edges[edge].path
    hall.first.x, hall.first.y = path.point(7_000_000)
    hall.first.yaw, hall.first.v = path.heading(7_000_000), 0
    kept = set(record.keeps)
    hall.run(50)
    assert hall.traffic.why("R1").code == "STOP_POSE_JUMP"
    outputs = hall.order(OrderKind.RELOCATE, edge=edge, s_um=7_100_000)
    new = outputs.accepted_routes[0]

    assert (new.route_id, new.revision, new.reason) == (old.route_id, old.revision + 1, "RECOVERY")
    assert not kept & set(hall.record().keeps)
    assert hall.goes_on()


def carried(hall: Hall, edge: int, s_um: int) -> None:
    path = hall.site.network.edges[edge].path
    hall.first.x, hall.first.y = path.point(s_um)
    hall.first.yaw, hall.first.v = path.heading(s_um), 0


@pytest.mark.req("FLT-FAIL-7")
@pytest.mark.parametrize("refused", ["the others would be worse off", "the place is held"])
def test_the_old_place_is_kept_until_the_truck_may_continue_from_the_new_one(
    monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    hall = Hall(1)
    edge = hall.site.edge_number["A3->A2" if hall.first.x < 20_000_000 else "A1->A2"]
    kept = set(hall.record().keeps)
    carried(hall, edge, 7_000_000)
    hall.run(30)
    with monkeypatch.context() as refusing:
        if refused == "the place is held":
            refusing.setattr(LockState, "in_the_way", lambda *_: [(7, 0)])
        else:
            refusing.setattr(orders, "thaw", lambda *_, **__: None)
        outputs = hall.order(OrderKind.RELOCATE, edge=edge, s_um=7_000_000)

    assert [one.code for one in outputs.applied_orders] == ["PLACE_HELD" if refused == "the place is held" else None]
    assert outputs.accepted_routes == ()
    assert hall.traffic._locks.truck(0).held >= kept
    assert hall.traffic.why("R1").code == "STOP_POSE_JUMP"


@pytest.mark.req("FLT-FAIL-7", "FLT-FAIL-11", "FLT-FAIL-1")
def test_relocate_of_a_silent_truck_is_refused_and_earlier_steady_time_does_not_count() -> None:
    hall = Hall(1)
    edge = hall.site.edge_number["A3->A2" if hall.first.x < 20_000_000 else "A1->A2"]
    carried(hall, edge, 7_000_000)
    hall.run(50)
    hall.first.mute = True
    hall.run(7)
    outputs = hall.order(OrderKind.RELOCATE, edge=edge, s_um=7_000_000)
    doubt = hall.record().doubt

    assert [one.code for one in outputs.applied_orders] == ["ROBOT_SILENT"]
    assert doubt is not None
    assert not orders.is_settled(hall.record(), doubt, hall.now, hall.params)
    assert orders.is_settled(hall.record(), doubt, hall.record().report_ms + 100, hall.params)


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-11")
def test_relocate_does_not_apply_after_the_next_jump() -> None:
    hall = Hall(1)
    site = hall.site
    edge = site.edge_number["A3->A2"] if hall.first.x < 20_000_000 else site.edge_number["A1->A2"]
    path = site.network.edges[edge].path

    def carried(s_um: int) -> None:
        hall.first.x, hall.first.y = path.point(s_um)
        hall.first.yaw, hall.first.v = path.heading(s_um), 0

    carried(7_000_000)
    hall.run(5)
    hall.order(OrderKind.RELOCATE, edge=edge, s_um=7_000_000)
    carried(3_000_000)
    hall.run(50)
    lost = hall.traffic.why("R1").code
    outputs = hall.order(OrderKind.RELOCATE, edge=edge, s_um=3_000_000)

    assert (lost, [one.reason for one in outputs.accepted_routes]) == ("STOP_POSE_JUMP", ["RECOVERY"])


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-11")
def test_relocate_is_refused_if_the_truck_reports_another_place() -> None:
    hall = jumped()
    outputs = hall.order(OrderKind.RELOCATE, edge=hall.site.edge_number["A1->WEST"], s_um=1_000_000)

    assert [one.code for one in outputs.applied_orders] == ["POSE_DISAGREES"]


@pytest.mark.req("FLT-DCL-2")
def test_a_doubt_survives_a_restart_of_traffic() -> None:
    hall = jumped()
    again = type(hall.traffic).from_state(hall.site, hall.fleet, hall.profiles, hall.params, hall.traffic.state())

    assert again._records[0].doubt == hall.record().doubt
    assert again.state() == hall.traffic.state()
