"""Inputs from a faulty program: they free no space, move no truck and stop no other truck."""

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec import structs

from pendula.fleet import AtNode, Fleet, Planner, RoutePlan, Truck, plan_route
from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.contracts import CommandMode, Phase, RobotHealth
from pendula.fleet.tick import TickInputs, TickOutputs, Traffic, TrafficParams, TrafficRefused, phases
from pendula.fleet.tick.draft import Draft
from pendula.fleet.tick.observing import TruckReport
from pendula.kernel.errors import WrongUsage
from tests.fleet.sites import scene
from tests.fleet.tick.yard import Yard


def hall(ticks: int = 120) -> Yard:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.endless = True
    yard.run(ticks)
    return yard


def reports(yard: Yard, later_ms: int = 100) -> list[TruckReport]:
    return [structs.replace(yard._report(driver), at_ms=yard.now + later_ms) for driver in yard.drivers.values()]


def tick(yard: Yard, given: list[TruckReport], *routes: RoutePlan, later_ms: int = 100) -> TickOutputs:
    yard.now += later_ms
    outputs = yard.traffic.tick(TickInputs(yard.now, tuple(given), routes))
    for command in outputs.commands:
        yard.drivers[command.robotId].ack = command.seq
    return outputs


def first(given: list[TruckReport], **members: Any) -> list[TruckReport]:
    return [structs.replace(given[0], **members), *given[1:]]


def route(yard: Yard, robot_id: str = "R1", goal: str | None = None, **members: Any) -> RoutePlan:
    """From the rest node of the truck to a node and back."""
    site, driver = yard.site, yard.drivers[robot_id]
    stops = (driver.rest if goal is None else site.node_number[goal],)
    made = plan_route(Planner(site, FL_STD), robot_id, "mine", AtNode(driver.node, driver.yaw), stops, driver.rest)
    assert isinstance(made, RoutePlan)
    return changed(made, **members)


def codes(outputs: TickOutputs) -> list[tuple[str, str]]:
    return [(refusal.robot_id, refusal.code) for refusal in outputs.refused_routes]


@pytest.mark.req("FLT-DCL-4", "FLT-FAIL-1")
@pytest.mark.parametrize(
    "members",
    [
        {"x_um": float("nan")},
        {"y_um": 1.5},
        {"yaw_urad": 10**40},
        {"v_um_s": float("inf")},
        {"at_ms": None},
        {"last_ack_seq": "7"},
        {"status": "OK"},
        {"phase": "TO_PICK"},
    ],
)
def test_an_unreadable_report_is_dropped_and_stops_no_other_truck(members: dict[str, Any]) -> None:
    yard = hall()
    outputs = tick(yard, first(reports(yard), **members))

    assert outputs.error is None
    assert [(report.robot_id, report.code) for report in outputs.dropped_reports] == [("R1", "REPORT_MALFORMED")]


@pytest.mark.req("FLT-DCL-4")
def test_a_report_of_an_unknown_truck_is_dropped() -> None:
    yard = hall()
    outputs = tick(yard, [*reports(yard), structs.replace(reports(yard)[0], robot_id="ghost")])

    assert (outputs.error, [report.code for report in outputs.dropped_reports]) == (None, ["UNKNOWN_ROBOT"])


@pytest.mark.req("FLT-FAIL-1")
def test_a_truck_whose_clock_is_ahead_is_stale_until_its_time_is_right() -> None:
    yard = hall()
    for _ in range(7):
        outputs = tick(yard, first(reports(yard), at_ms=yard.now + 3_600_000))
    assert outputs.scene.records[0].health is RobotHealth.STALE
    outputs = tick(yard, reports(yard))

    assert (outputs.scene.records[0].health, outputs.dropped_reports) == (RobotHealth.HEALTHY, ())


@pytest.mark.req("FLT-FAIL-1")
def test_a_report_from_the_past_is_dropped() -> None:
    yard = hall()
    outputs = tick(yard, first(reports(yard), at_ms=yard.now - 1_000, x_um=0))

    assert [report.code for report in outputs.dropped_reports] == ["REPORT_OUTDATED"]
    assert outputs.scene.records[0].report_ms == yard.now - 100


@pytest.mark.req("FLT-DCL-1")
def test_of_two_reports_of_one_time_the_same_counts_in_any_order() -> None:
    digests = []
    for turn in (1, -1):
        yard = hall()
        inputs = reports(yard)
        digests.append(tick(yard, [*inputs, structs.replace(inputs[0], x_um=inputs[0].x_um + 50_000)][::turn]).digest())

    assert digests[0] == digests[1]


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-16", "FLT-DCL-2")
@pytest.mark.parametrize("back_ms", [1, 100, 3_600_000])
def test_a_clock_that_goes_back_stops_all_trucks_and_loses_nothing(back_ms: int) -> None:
    yard = hall()
    before = yard.traffic.snapshot()
    outputs = tick(yard, reports(yard), later_ms=-back_ms)
    after = outputs.snapshot()

    assert outputs.error == f"the clock went back from {yard.now + back_ms} to {yard.now}"
    assert {command.mode for command in outputs.commands} == {CommandMode.STOP}
    assert (after.edgeGroups, after.nodeLocks, after.robots) == (before.edgeGroups, before.nodeLocks, before.robots)


def test_a_time_that_is_not_a_whole_number_stops_all_trucks() -> None:
    yard = hall()
    outputs = yard.traffic.tick(TickInputs(yard.now + 0.5, tuple(reports(yard))))  # type: ignore[arg-type]

    assert outputs.error is not None
    assert {command.mode for command in outputs.commands} == {CommandMode.STOP}


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-10")
def test_after_an_hour_without_a_tick_a_truck_drives_only_after_two_seconds_of_reports() -> None:
    yard = hall()
    outputs = tick(yard, [], later_ms=3_600_000)
    for _ in range(20):
        assert {command.mode for command in outputs.commands} == {CommandMode.STOP}
        outputs = tick(yard, reports(yard))
    outputs = tick(yard, reports(yard))

    assert CommandMode.STOP not in {command.mode for command in outputs.commands}


@pytest.mark.req("FLT-FAIL-1", "FLT-PLAN-15")
def test_repeated_reports_far_beyond_the_grant_are_never_accepted() -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(1), [FL_STD])
    stream = yard.fleet.streams[0]
    yard.send("R1", stream.pick_node_ids[0], stream.drop_node_ids[0])
    while yard.drivers["R1"].v == 0 or yard.drivers["R1"].s < 1_000_000:
        yard.step()
    plan, record = yard.drivers["R1"].plan, yard.traffic._records[0]
    assert plan is not None
    far = plan.pose_at(record.grant_um + 1_000_000)
    for _ in range(200):
        given = first(reports(yard), x_um=far.x_um, y_um=far.y_um, yaw_urad=far.yaw_urad, v_um_s=0)
        outputs = tick(yard, given)

    assert (outputs.scene.records[0].health, outputs.commands[0].mode) == (RobotHealth.POSE_JUMP, CommandMode.STOP)


def test_a_route_for_an_unknown_truck_is_refused() -> None:
    yard = hall(1)
    outputs = tick(yard, reports(yard), changed(from_elsewhere(yard), robot_id="ghost"))

    assert codes(outputs) == [("ghost", "UNKNOWN_ROBOT")]


def wrong_map(yard: Yard) -> RoutePlan:
    site = scene("hall-demo")
    made = plan_route(Planner(site, FL_STD), "R1", "mine", AtNode(site.node_number["PK1"]), (site.node_number["AP1"],))
    assert isinstance(made, RoutePlan)
    return made


def not_home(yard: Yard) -> RoutePlan:
    site, driver = yard.site, yard.drivers["R1"]
    goal = site.node_number[yard.fleet.streams[0].pick_node_ids[0]]
    made = plan_route(Planner(site, FL_STD), "R1", "mine", AtNode(driver.node, driver.yaw), (goal,))
    assert isinstance(made, RoutePlan)
    return made


def over_a_rest(yard: Yard) -> RoutePlan:
    return route(yard, goal=yard.truck["R2"].park_node_id)


def from_elsewhere(yard: Yard) -> RoutePlan:
    site, rest = yard.site, yard.drivers["R1"].rest
    begin = site.node_number[yard.fleet.streams[0].pick_node_ids[0]]
    closed = yard.traffic.closed["R1"]
    made = plan_route(Planner(site, FL_STD), "R1", "mine", AtNode(begin), (rest,), rest, closed=closed)
    assert isinstance(made, RoutePlan)
    return made


@pytest.mark.req("FLT-DCL-4", "FLT-FAIL-12", "FLT-PLAN-10")
@pytest.mark.parametrize(
    ("make", "code"),
    [
        (wrong_map, "ROUTE_OF_ANOTHER_MAP"),
        (not_home, "ROUTE_NOT_TO_REST"),
        (over_a_rest, "ROUTE_OVER_CLOSED"),
        (from_elsewhere, "ROUTE_STARTS_ELSEWHERE"),
    ],
)
def test_an_impossible_route_is_refused_for_good(make: Callable[[Yard], RoutePlan], code: str) -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.step()
    outputs = tick(yard, reports(yard), make(yard))

    assert (outputs.error, codes(outputs)) == (None, [("R1", code)])
    assert yard.traffic._records[0].pending is None


def test_of_two_routes_for_one_truck_the_later_revision_counts() -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.step()
    yard.send("R1", *(yard.fleet.streams[0].pick_node_ids[:1]))
    mine = yard.submitted.pop("R1")
    outputs = tick(yard, reports(yard), changed(mine, revision=2), mine)

    assert codes(outputs) == [("R1", "ROUTE_SUPERSEDED")]
    assert [route.revision for route in outputs.accepted_routes] == [2]
    assert codes(tick(yard, reports(yard), mine)) == [("R1", "ROUTE_OUTDATED")]


@pytest.mark.req("FLT-DCL-2")
def test_routes_of_a_failed_tick_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.step()

    def fails(draft: Draft) -> None:
        raise ArithmeticError("planted")

    monkeypatch.setattr("pendula.fleet.tick.traffic.PHASES", (fails,))

    assert codes(tick(yard, reports(yard), route(yard))) == [("R1", "TICK_FAILED")]


@pytest.mark.req("FLT-DCL-2")
@pytest.mark.parametrize("after", range(len(phases.PHASES) + 1))
def test_a_process_killed_during_a_tick_leaves_the_previous_state(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    yard = hall(60)
    before = yard.traffic.state()

    def ends(draft: Draft) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as planted:
        planted.setattr("pendula.fleet.tick.traffic.PHASES", (*phases.PHASES[:after], ends))
        with pytest.raises(KeyboardInterrupt):
            tick(yard, reports(yard), *yard.submitted.values())

    assert yard.traffic.state() == before


def test_a_tick_within_a_tick_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = hall(5)
    messages: list[str] = []

    def again(draft: Draft) -> None:
        with pytest.raises(WrongUsage) as refused:
            yard.traffic.tick(TickInputs(yard.now))
        messages.append(str(refused.value))

    with monkeypatch.context() as planted:
        planted.setattr("pendula.fleet.tick.traffic.PHASES", (again, *phases.PHASES))
        assert tick(yard, reports(yard)).error is None

    assert messages == ["a tick is under way: one thread at a time calls tick"]
    assert tick(yard, reports(yard)).error is None


def test_bytes_that_are_not_a_state_are_refused() -> None:
    with pytest.raises(TrafficRefused, match="not a traffic state"):
        Traffic.from_state(scene("reference-hall"), reference_fleet(3), [FL_STD], None, b"nonsense")


@pytest.mark.req("FLT-FAIL-12")
def test_a_state_of_other_parameters_is_refused() -> None:
    yard = hall(10)

    with pytest.raises(TrafficRefused, match="another map, fleet or set of parameters"):
        Traffic.from_state(yard.site, yard.fleet, [FL_STD], TrafficParams(starve_ms=61_000), yard.traffic.state())


@pytest.mark.req("FLT-FAIL-12")
def test_a_state_of_a_fleet_with_other_rest_nodes_is_refused() -> None:
    yard = hall(10)
    first, two, *others = yard.fleet.trucks
    swapped = (
        Truck(first.robot_id, first.profile_id, two.park_node_id),
        Truck(two.robot_id, two.profile_id, first.park_node_id),
    )
    fleet = Fleet((*swapped, *others), yard.fleet.streams)

    with pytest.raises(TrafficRefused, match="another map, fleet"):
        Traffic.from_state(yard.site, fleet, [FL_STD], None, yard.traffic.state())


@pytest.mark.req("FLT-FAIL-12")
def test_a_state_of_trucks_with_other_brakes_is_refused() -> None:
    yard = hall(10)
    slow = structs.replace(FL_STD, brake_um_s2=FL_STD.brake_um_s2 // 2)

    with pytest.raises(TrafficRefused):
        Traffic.from_state(yard.site, yard.fleet, [slow], None, yard.traffic.state())


def test_a_truck_rerouted_in_every_tick_stays_safe_and_gets_home() -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    goals = [name for stream in yard.fleet.streams for name in (*stream.pick_node_ids, *stream.drop_node_ids)]
    for turn in range(150):
        if yard.drivers["R1"].s == 0:
            yard.send("R1", goals[turn % len(goals)])
        yard.step()
    yard.run(2_000)

    assert yard.drivers["R1"].phase is Phase.IDLE
