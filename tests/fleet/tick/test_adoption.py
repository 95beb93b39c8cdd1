"""A route replaces another from their common part on; what lies beyond is returned and acknowledged."""

import pytest
from msgspec import UNSET

from pendula.fleet import OnEdge, Planner, RoutePlan, plan_route, splice
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import LockSnapshot, Phase
from pendula.fleet.tick import TickInputs, TickOutputs, Traffic
from pendula.fleet.tick.observing import TruckReport
from tests.fleet.routes import on
from tests.fleet.sites import scene
from tests.fleet.tick.example import FLEET

SITE = scene("hall-demo")
LANE = "LM1->LM2"


class Change:
    """R1 alone on its lane, on its way into the spur and near enough to request it."""

    def __init__(self, at_m: float = 7.0) -> None:
        self.start = on(SITE, LANE, at_m)
        self.at_um = self.start.s_um
        self.traffic = Traffic.create(SITE, FLEET, [FL_STD], starts={"R1": self.start})
        self.now = self.heard = 0
        self.outputs = self.tick(self.route("AP1"))

    def route(self, *stops: str, start: OnEdge | None = None) -> RoutePlan:
        number = SITE.node_number
        planned = plan_route(
            Planner(SITE, FL_STD),
            "R1",
            f"to-{stops[0]}",
            start or self.start,
            tuple(number[stop] for stop in stops),
            number["PK1"],
            closed=self.traffic.closed["R1"],
        )
        assert isinstance(planned, RoutePlan)
        return planned

    def tick(self, *routes: RoutePlan, ack: int | None = None, v_mm_s: int = 0, ticks: int = 1) -> TickOutputs:
        """Reports acknowledge all commands, unless a limit is given."""
        for _ in range(ticks):
            self.now += 100
            heard = self.heard if ack is None else ack
            mine = TruckReport("R1", self.now, self.at_um, 0, 0, v_mm_s * 1000, phase=Phase.TO_PICK, last_ack_seq=heard)
            parked = SITE.network.nodes[SITE.node_number["PK2"]].at
            other = TruckReport("R2", self.now, parked.x_um, parked.y_um, 0, 0)
            self.outputs = self.traffic.tick(TickInputs(self.now, (mine, other), routes))
            assert self.outputs.error is None
            routes, self.heard = (), self.outputs.commands[0].seq
        return self.outputs

    def snapshot(self) -> LockSnapshot:
        return self.outputs.snapshot()

    def sections(self) -> list[str]:
        locks = self.snapshot().csLocks
        assert locks is not UNSET
        return [lock.criticalSectionId for lock in locks if "R1" in lock.robotIds]

    def grant_m(self) -> object:
        robots = self.snapshot().robots
        assert robots is not UNSET
        return robots[0].grantEndS


@pytest.mark.req("FLT-DCL-8", "FLT-DCL-19")
def test_a_spur_is_granted_as_one_unit_beyond_what_the_truck_can_use() -> None:
    assert Change().grant_m() == 16


def test_a_truck_takes_no_more_than_its_target_can_use() -> None:
    # 3 m of target, 0.1 m of buffer, 0.2 m of hysteresis and 0.12 m of driving, to the next standing position.
    assert Change(4.0).grant_m() == 7.5


@pytest.mark.req("FLT-RES-13", "FLT-EVO-6", "FLT-COR-6", "FLT-RES-12", "FLT-TEST-22")
def test_resources_a_changed_route_drops_stay_held_until_the_truck_acknowledges() -> None:
    change = Change()
    change.tick(ticks=20)
    outputs = change.tick(change.route("LM3"))
    seq = outputs.commands[0].seq
    late = change.tick(ack=seq - 1, ticks=30)

    retractions = late.snapshot().retractions
    assert retractions is not UNSET
    assert (change.grant_m(), change.sections(), len(retractions)) == (10, ["SPUR-AP1"], 1)

    change.tick(ack=seq)

    assert (change.sections(), change.snapshot().retractions) == ([], ())


@pytest.mark.req("FLT-RES-13", "FLT-COR-3")
def test_a_grant_is_not_shortened_to_where_the_truck_can_no_longer_stop() -> None:
    change = Change(8.6)
    change.tick(ticks=20)
    outputs = change.tick(change.route("LM3"), v_mm_s=1_200)

    assert [refusal.code for refusal in outputs.refused_routes] == ["ROUTE_LEAVES_TOO_EARLY"]
    assert change.grant_m() == 16


@pytest.mark.req("FLT-LIVE-10")
def test_a_route_that_does_not_fit_is_refused_every_time_and_never_pending() -> None:
    change = Change(8.6)
    change.tick(ticks=20)
    for _ in range(3):
        outputs = change.tick(change.route("LM3"), v_mm_s=1_200)
        assert [refusal.code for refusal in outputs.refused_routes] == ["ROUTE_LEAVES_TOO_EARLY"]

    assert [record.pending_since_ms for record in outputs.scene.records] == [None] * len(outputs.scene.records)


@pytest.mark.req("FLT-OSC-2")
def test_a_grant_is_not_shortened_before_it_was_held_for_a_while() -> None:
    change = Change()
    outputs = change.tick(change.route("LM3"))

    assert [refusal.code for refusal in outputs.refused_routes] == ["ROUTE_LEAVES_TOO_EARLY"]


def test_a_route_that_starts_elsewhere_is_refused() -> None:
    change = Change()
    outputs = change.tick(change.route("LM3", start=on(SITE, "LM2->LM1", 4.0)))

    assert [refusal.code for refusal in outputs.refused_routes] == ["ROUTE_STARTS_ELSEWHERE"]


def test_a_splice_behind_the_stop_line_keeps_the_grant() -> None:
    change = Change()
    old = change.route("AP1")
    number = SITE.node_number
    spliced = splice(
        Planner(SITE, FL_STD), old, 16_000_000, (number["LM3"],), "other", "OPERATOR", change.traffic.closed["R1"]
    )
    assert isinstance(spliced, RoutePlan)
    outputs = change.tick(spliced)

    assert ([route.route_id for route in outputs.accepted_routes], change.grant_m()) == (["other"], 16)
