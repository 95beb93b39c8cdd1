"""Reports become progress: noise does not pull back, a jump does not move, a turn is done in its node."""

import pytest

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import RobotHealth, RobotStatus
from pendula.fleet.tick.health import judge
from pendula.fleet.tick.observing import TruckReport, release_bound_um, take_in
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.track import Ground, track_of
from tests.fleet.routes import on, route
from tests.fleet.sites import scene

SITE = scene("hall-demo")
PARAMS = TrafficParams()


class Observed:
    """A truck on the way into the spur of the demonstration hall, with its whole way granted."""

    def __init__(self, at_mm: int = 3_000) -> None:
        plan = route(SITE, on(SITE, "LM1->LM2", at_mm / 1000), "AP1", rest="PK2")
        self.record = Record(SITE, 0, "R2", FL_STD, rest=0, short_um=200_000, node=0)
        self.record.track = track_of(Ground(SITE), plan, 200_000, at_mm * 1000, {})
        self.record.granted = len(self.record.track.stands) - 1
        self.record.at_um = at_mm * 1000
        self.now = 0
        self.report(at_mm)

    def report(self, x_mm: int, *, y_mm: int = 0, yaw_mrad: int = 0, v_mm_s: int = 400, after_ms: int = 100) -> Record:
        self.now += after_ms
        take_in(
            self.record,
            TruckReport("R2", self.now, x_mm * 1000, y_mm * 1000, yaw_mrad * 1000, v_mm_s * 1000),
            PARAMS,
            self.now,
        )
        judge(self.record, self.now, PARAMS)
        return self.record


@pytest.mark.req("FLT-OSC-5")
def test_noise_does_not_pull_a_truck_back() -> None:
    truck = Observed()
    truck.report(3_100)

    assert truck.report(3_020).at_um == 3_100_000


@pytest.mark.req("FLT-RES-13", "FLT-EVO-6")
def test_the_release_bound_follows_the_worst_of_the_last_samples_and_never_falls() -> None:
    truck = Observed()
    bounds = []
    for x in (3_040, 3_080, 3_120, 3_060, 3_100, 3_140, 3_180, 3_220, 3_260):
        truck.report(x)
        bounds.append(release_bound_um(truck.record, truck.now))

    assert bounds == sorted(bounds)
    assert bounds[-1] == 3_100_000 - 100_000


def test_a_jump_stops_the_truck_and_does_not_move_it() -> None:
    truck = Observed()
    record = truck.report(5_000)

    assert (record.health, record.stop_code, record.at_um) == (RobotHealth.POSE_JUMP, "STOP_POSE_JUMP", 3_000_000)


def test_a_truck_beside_its_route_is_off_route() -> None:
    assert Observed().report(3_050, y_mm=400).stop_code == "STOP_OFF_ROUTE"


@pytest.mark.req("FLT-RTP-12", "FLT-RTP-4")
def test_a_turning_truck_is_in_its_node_until_the_turn_is_done() -> None:
    truck = Observed(9_800)
    truck.report(9_900)
    truck.report(10_000, v_mm_s=0)
    turning = truck.report(10_000, yaw_mrad=1_500, v_mm_s=0)
    assert (turning.at_um, turning.acted, turning.stop_code) == (10_000_000, 0, None)

    assert truck.report(10_000, yaw_mrad=3_120, v_mm_s=0).acted == 1


@pytest.mark.parametrize(
    ("age_ms", "expected"), [(500, RobotHealth.HEALTHY), (501, RobotHealth.STALE), (2_001, RobotHealth.OFFLINE)]
)
def test_a_silent_truck_is_stale_and_then_offline(age_ms: int, expected: RobotHealth) -> None:
    truck = Observed()
    judge(truck.record, truck.now + age_ms, PARAMS)

    assert truck.record.health is expected


def test_a_truck_that_reports_a_fault_is_failed() -> None:
    truck = Observed()
    truck.record.status = RobotStatus.FAULT
    judge(truck.record, truck.now, PARAMS)

    assert (truck.record.health, truck.record.stop_code) == (RobotHealth.FAULT, "STOP_ROBOT_FAULT")
