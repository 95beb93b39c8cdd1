"""The specification of the fleet, section by section: reservation, traffic control and faults.

Sections about interfaces, contracts, tasks, logs, replay and simulation are in `test_fleet.py`.
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from math import hypot, isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from pendula.cli.program import run as program
from pendula.fleet import Fleet, compile_map, envelope_of, ports
from pendula.fleet.compiler import samples
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import OperatorAction, PriorityClass
from pendula.fleet.map.trucks import spacing_um, stop_distance_um
from pendula.fleet.model import MoveStyle
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator import Fault, FaultKind
from pendula.fleet.tick import CommandMode, NodeLockPolicy, TickInputs, TickOutputs, Traffic, TrafficRefused
from pendula.fleet.tick.params import TrafficParams, faults
from pendula.fleet.tick.turns import order_of, rank_of
from tests.campaigns import campaign_after, campaign_except
from tests.fleet.scenarios.watching import false_blockers

MINUTE_MS = 60_000
RULES = ("I-1", "I-2", "I-3", "I-7", "I-8", "I-13", "I-14")


def pendula(*arguments: object) -> str:
    """The output of a command that succeeds."""
    with CliRunner().isolation() as (out, err, _):
        code = program([str(one) for one in arguments])
        sys.stdout.flush()
        assert code == 0, err.getvalue().decode()
        return out.getvalue().decode()


@cache
def ran(name: str, *options: str) -> dict[str, Any]:
    """`pendula fleet run` of a shipped scenario."""
    form: dict[str, Any] = json.loads(pendula("fleet", "run", name, "--json", *options))
    return form


@cache
def exported(name: str) -> tuple[dict[str, Any], ...]:
    """The ticks of a shipped scenario, run with a journal and exported."""
    with TemporaryDirectory() as folder:
        journal = Path(folder) / "journal"
        pendula("fleet", "run", name, "--journal", journal, "--json")
        return tuple(json.loads(line) for line in pendula("fleet", "export", journal).splitlines())


def results(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Lock result, command and state of every truck in every tick of a scenario."""
    for tick in exported(name):
        states = {one["robotId"]: one for one in tick["inputs"]["robotStates"]}
        commands = {command["robotId"]: command for command in tick["outputs"]["commands"]}
        for one in tick["decisions"]["lockResults"]:
            if one["robotId"] in states:
                yield one, commands[one["robotId"]], states[one["robotId"]]


def scenario_run(name: str, **changes: Any) -> Run:
    scenario = shipped(name)
    return Run(replace(scenario, traffic=replace(scenario.traffic, **changes), expect=()))


def until(run: Run, condition: Callable[[TickOutputs], bool]) -> TickOutputs:
    while run.now_ms < run.scenario.duration_ms:
        outputs = run.step()
        if condition(outputs):
            return outputs
    raise AssertionError("the moment did not come")


# -- 2: requirements ---


@pytest.mark.section("2.1 Normative words", interface="library")
def test_2_1_if_no_decision_is_possible_all_trucks_stop_with_the_reason() -> None:
    """If a requirement cannot be met at run time, the system enters a safe mode: it stops and reports the reason."""
    run = scenario_run("hall")
    until(run, lambda one: one.now_ms > 20_000)
    granted = [sorted(record.held) for record in run.traffic.records]

    outputs = run.traffic.tick(TickInputs(run.now_ms - 1_000))

    assert outputs.error is not None
    assert {command.mode for command in outputs.commands} == {CommandMode.STOP}
    assert [sorted(record.held) for record in run.traffic.records] == granted


# -- 4 and 5: model and safety ---


@pytest.mark.section("4.4 Safety envelope and following gap", interface="library")
def test_4_4_the_gap_is_separate_from_the_envelope() -> None:
    """The envelope always counts; the gap is a separate operating rule that can be 0 and never widens a shape."""
    wide = envelope_of(replace(FL_STD, min_following_gap_um=3_000_000))
    none = envelope_of(replace(FL_STD, min_following_gap_um=0))

    assert (wide.front_um, wide.rear_um, wide.side_um) == (none.front_um, none.rear_um, none.side_um)
    assert wide.spacing_um(MoveStyle.FORWARD, MoveStyle.FORWARD) - 3_000_000 == 4_400_000


@pytest.mark.section("5.2 Safety envelope (S1)", interface="command line")
@pytest.mark.parametrize("name", ["crossing", "near-lanes", "tail-swing", "follow"])
def test_5_2_no_two_envelopes_ever_overlap(name: str) -> None:
    """At no instant do the envelopes of two trucks intersect, checked from poses alone in every tick."""
    form = ran(name)

    assert form["invariants"]["I-2"]["checked"] > 200
    assert [form["invariants"][one]["violations"] for one in RULES] == [0] * len(RULES)


@pytest.mark.section("5.3 Turning radius and node lock (S2)", interface="library")
def test_5_3_the_radius_of_a_node_lock_is_that_of_the_formula() -> None:
    """The locked disc reaches the farthest corner of the envelope around the pivot, margins counted once."""
    head, tail, side = 1.3 + 0.6 + 0.2, 1.7 + 0.4 + 0.2, 0.5 + 0.2 + 0.2
    run = scenario_run("crossing-turn")
    outputs = until(run, lambda one: bool(one.snapshot().nodeLocks))
    locked = outputs.snapshot().nodeLocks[0]

    assert isclose(float(locked.radiusM), max(hypot(head, side), hypot(tail, side)), abs_tol=1e-6)


@pytest.mark.section("5.3 Turning radius and node lock (S2)", interface="command line")
@pytest.mark.parametrize("name", ["crossing-turn", "crossing-every"])
def test_5_3_a_locked_node_belongs_to_one_truck_alone(name: str) -> None:
    """While a truck holds a node lock, no other envelope enters its disc."""
    assert ran(name)["invariants"]["I-7"] == {"checked": ran(name)["invariants"]["I-2"]["checked"], "violations": 0}


@pytest.mark.section("5.4 Swept envelope in bends (S3)", interface="command line")
def test_5_4_the_tail_swinging_out_of_a_bend_excludes_a_nearby_lane() -> None:
    """A lane that only the swinging tail reaches conflicts with the bend; one a little farther away does not."""
    near, apart = (ran(name)["metrics"]["waitMsByReason"] for name in ("tail-swing", "tail-swing-apart"))

    assert sum(near.values()) > 0
    assert apart == {}


@pytest.mark.section("5.5 Safety stop and traffic hold", interface="library")
def test_5_5_the_reasons_to_stand_are_distinguished() -> None:
    """Waiting in traffic, a stop for safety, a fault of the truck and silence are different hold reasons."""
    found = set()
    for kind in (None, FaultKind.POSE_JUMP, FaultKind.FAULT, FaultKind.OFFLINE):
        run = scenario_run("follow")
        run.run(20_000)
        if kind is not None:
            run.world.start_fault(0, Fault(kind, 6_000, x_um=0, y_um=2_000_000))
        for _ in range(50):
            found |= {result.holdReason.value for result in run.step().results}

    assert found == {"NONE", "TRAFFIC_HOLD", "SAFETY_STOP", "ROBOT_FAULT", "OFFLINE"}


# -- 6: the map compiler, as far as it concerns traffic ---


@pytest.mark.section("6.4 Edge groups with one direction", interface="command line")
def test_6_4_a_lane_is_driven_in_one_direction_at_a_time() -> None:
    """Both directions of a single lane share an edge group, which carries traffic one way at any moment."""
    form = ran("head-on")

    assert form["unmet"] == []
    assert form["invariants"]["I-1"]["violations"] == 0
    assert form["metrics"]["swings"]["directionFlips"] <= 1


@pytest.mark.section("6.5 Geometry conflicts", interface="command line")
def test_6_5_lanes_that_run_close_together_exclude_each_other() -> None:
    """Two lanes without a common node conflict exactly where their swept areas overlap."""
    near, apart = (ran(name)["metrics"]["waitMsByReason"] for name in ("near-lanes", "near-lanes-apart"))

    assert near["WAIT_CONFLICT"] > 0
    assert apart == {}


@pytest.mark.section("6.6 Critical sections (L1)", interface="library")
def test_6_6_a_section_is_entered_only_with_its_token() -> None:
    """A truck in a critical section holds its token, and one truck holds it at a time."""
    run = scenario_run("spur")
    holders = []
    while not run.is_over:
        outputs = run.step()
        snapshot = outputs.snapshot()
        inside = {
            robot for lock in snapshot.csLocks or () for robot in lock.robotIds if lock.criticalSectionId == "SPUR-P"
        }
        on_spur = {
            one.robotId
            for group in snapshot.edgeGroups
            if group.edgeGroupKey == "M<->P"
            for one in group.occupants
            if one.state == "OCCUPIED"
        }
        assert on_spur <= inside
        holders.append(inside)

    assert {len(holder) for holder in holders} == {0, 1}
    assert set().union(*holders) == {"R1", "R2"}


# -- 8: the corridor ---


@pytest.mark.section("8.1 Lookahead and lookback", interface="library")
def test_8_1_the_corridor_reaches_as_far_as_the_lookahead() -> None:
    """A truck reserves its way up to `lookaheadM` ahead; another horizon is another reservation."""
    ahead = []
    for lookahead_um in (5_300_000, 8_000_000, 30_000_000):
        run = scenario_run("near-lanes-apart", lookahead_um=lookahead_um)
        run.run(8_000)
        groups = run.traffic.snapshot().edgeGroups
        own = [one.reservedAheadM for group in groups for one in group.occupants if one.robotId == "R1"]
        ahead.append(float(sum(own)))

    assert 5.3 <= ahead[0] <= 5.8
    assert 8 <= ahead[1] <= 8.5
    assert ahead[2] > 15


@pytest.mark.section("8.1 Lookahead and lookback", interface="library")
def test_8_1_the_reservation_of_a_follower_ends_where_the_lookback_begins() -> None:
    """Behind a truck `lookbackM` of its way stays reserved: a follower reserves up to there."""
    ends = []
    for lookback_um in (1_000_000, 3_000_000):
        run = scenario_run("follow", lookahead_um=30_000_000, lookback_um=lookback_um)
        run.run(20_000)
        ends.append(run.traffic.records[1].reserved_um)

    assert ends[1] < ends[0]


@pytest.mark.section("8.1 Lookahead and lookback", interface="library")
def test_8_1_the_digest_of_a_run_includes_the_horizon() -> None:
    """The scenario `hall` has another digest with another lookahead."""
    digests = set()
    for lookahead_um in (5_300_000, 8_000_000, 30_000_000):
        run = scenario_run("hall", lookahead_um=lookahead_um)
        run.run(15_000)
        digests.add(run.result().form["digest"])

    assert len(digests) == 3


@pytest.mark.section("8.2 Stopping distance (S4)", interface="library")
def test_8_2_the_stopping_distance_is_that_of_the_formula() -> None:
    """Braking, latency and the static margins, at the speed of the truck."""
    for v in (0.0, 0.4, 0.8, 1.2):
        expected = v * v / (2 * 0.8) + v * 0.45 + 0.10 + 0.08 + 0.02
        assert isclose(stop_distance_um(FL_STD, round(v * 1e6)) / 1e6, expected, abs_tol=1e-5)


@pytest.mark.section("8.2 Stopping distance (S4)", interface="command line")
@pytest.mark.parametrize("name", ["crossing", "follow"])
def test_8_2_every_truck_can_stop_before_its_hold_point(name: str) -> None:
    """A hold point is never closer than the stopping distance."""
    assert ran(name)["invariants"]["I-8"]["violations"] == 0


@pytest.mark.section("8.2 Stopping distance (S5)", interface="library")
def test_8_2_a_too_short_lookahead_is_refused() -> None:
    """A fleet does not start with a lookahead below the stopping distance."""
    site = compile_map(samples.straight_lane(), [FL_STD])
    found = faults(TrafficParams(lookahead_um=5_259_999), [FL_STD], site.params)

    assert [one.split(":")[0] for one in found] == ["LOOKAHEAD_TOO_SHORT"]
    with pytest.raises(TrafficRefused, match="LOOKAHEAD_TOO_SHORT"):
        Traffic.create(site, Fleet(()), [FL_STD], TrafficParams(lookahead_um=5_000_000))


@pytest.mark.section("8.3 Part of an edge", interface="command line")
def test_8_3_a_truck_reserves_a_part_of_an_edge() -> None:
    """A reservation is an interval of an edge, and a conflict ends it in the middle of the edge."""
    cut = [one["holdPoint"] for one, _, _ in results("follow") if not one["ok"] and one["robotId"] == "R2"]

    assert any(point["kind"] == "ON_EDGE" and 0 < point["sM"] < 30 for point in cut)


@pytest.mark.section("8.4 Node locks in the corridor", interface="library")
def test_8_4_with_that_policy_every_node_passed_is_locked() -> None:
    """With `nodeLockPolicy` every, the next node of the way is locked; otherwise those where a truck acts."""
    locked = []
    for policy in NodeLockPolicy:
        run = scenario_run("crossing", node_lock_policy=policy)
        found: set[str] = set()
        while not run.is_over:
            found |= {one.nodeId for one in run.step().snapshot().nodeLocks}
        locked.append("X" in found)

    assert dict(zip(NodeLockPolicy, locked, strict=True)) == {NodeLockPolicy.TURNING: False, NodeLockPolicy.EVERY: True}


@pytest.mark.section("8.4 Node locks in the corridor", interface="command line")
def test_8_4_a_wait_for_a_node_lock_is_marked_as_a_node_entry() -> None:
    """A truck that waits for the lock of the node ahead has a hold point of kind AT_NODE_ENTRY."""
    waits = [one for one, _, _ in results("crossing-turn") if one["reasonCode"] == "WAIT_NODE"]

    assert waits
    assert {one["holdPoint"]["kind"] for one in waits} == {"AT_NODE_ENTRY"}


# -- 9: resources and queues ---


@pytest.mark.section("9.1 Resource ids", interface="command line")
@pytest.mark.parametrize("name", campaign_except(("crossing-turn",), ["spur", "crossing-turn"]))
def test_9_1_resources_are_named_by_kind_and_id(name: str) -> None:
    """Every resource that a result names is `EDGE_GROUP:`, `NODE:`, `CONFLICT:` or `CS:` and an id."""
    named = {one["blocker"]["blockerResourceId"] for one, _, _ in results(name) if one["blocker"]}
    named |= {one["requestedResourceId"] for one, _, _ in results(name) if "requestedResourceId" in one}

    assert named
    assert {one.split(":")[0] for one in named} <= {"EDGE_GROUP", "NODE", "CONFLICT", "CS"}
    assert all(one.split(":", 1)[1] for one in named)


@pytest.mark.section("9.2 Policies of resources", interface="library")
def test_9_2_a_lane_takes_several_trucks_of_one_direction_and_a_node_takes_one() -> None:
    """A lane has a direction and spacing instead of a count; a node has room for one truck."""
    run = scenario_run("follow")
    most = 0
    while not run.is_over:
        snapshot = run.step().snapshot()
        nodes = [one.nodeId for one in snapshot.nodeLocks]
        assert len(nodes) == len(set(nodes))
        most = max(
            most,
            *(
                len({one.robotId for one in group.occupants if one.state != "RESERVED"})
                for group in snapshot.edgeGroups
            ),
        )

    assert most == 2


@pytest.mark.section("9.3 Queues and fairness (L2)", interface="library")
def test_9_3_class_then_age_of_the_request_then_id() -> None:
    """The higher class is first, then the older request, then the smaller robot id."""
    run = scenario_run("hall")
    run.run(500)
    a, b, c, d = (record.copied() for record in run.traffic.records)
    for one, rank, asked in ((a, 10, 100), (b, 20, 400), (c, 20, 300), (d, 20, 300)):
        one.rank, one.request_ms, one.reserved_ms = rank, asked, {}

    assert [one.robot_id for one in order_of([a, b, c, d], None, frozenset(), 500)] == ["R3", "R4", "R2", "R1"]


@pytest.mark.section("9.3 Queues and fairness (L2)", interface="library")
def test_9_3_waiting_raises_the_rank_up_to_a_common_cap() -> None:
    """A truck on its way to park reaches the rank of one with a task, and none outranks another forever."""
    run = scenario_run("hall")
    run.run(500)
    record = run.traffic.records[0].copied()
    ranks = []
    for priority in (PriorityClass.PARK, PriorityClass.TASK):
        record.priority, record.waiting_since_ms = priority, 0
        ranks.append([rank_of(record, at_ms, run.traffic.params) for at_ms in (0, 5_000, 60_000)])

    assert ranks == [[10, 15, 30], [20, 25, 30]]


@pytest.mark.section("9.4 Atomic ticks (I1)", interface="command line")
def test_9_4_equal_inputs_give_equal_outcomes() -> None:
    """Two runs of one scenario have the same digest; the order of inputs never matters."""
    first = ran("crossing")["digest"]
    ran.cache_clear()

    assert ran("crossing")["digest"] == first


# -- 10: deterministic corridor locking ---


@pytest.mark.section("10.1 Who holds keeps, the others cut short", interface="library")
def test_10_1_nothing_is_taken_from_a_truck_that_holds_it() -> None:
    """In a conflict the holder keeps its grant and the other truck stops before the conflict."""
    run = scenario_run("crossing")
    before = [0, 0]
    while not run.is_over:
        for record in run.step().scene.records:
            assert record.grant_um >= before[record.number] or record.granted == 0
            before[record.number] = record.grant_um

    assert run.measures.violations == {}


@pytest.mark.section("10.1 Who holds keeps, the others cut short", interface="library")
def test_10_1_a_reservation_yields_to_a_truck_that_needs_the_place_now() -> None:
    """A reservation beyond the immediate need of a truck never makes another one wait."""
    run = scenario_run("crossing", lookahead_um=30_000_000)
    until(run, lambda one: one.scene.records[0].reserved_um > 25_000_000)
    run.world.start_fault(0, Fault(FaultKind.STAND, 30_000))
    waited = False
    while run.traffic.records[1].grant_um <= 28_000_000:
        waited |= run.step().scene.records[1].waiting is not None

    assert not waited


@pytest.mark.section("10.2 Inputs and outputs of a tick", interface="command line")
def test_10_2_every_tick_records_its_inputs_and_decisions() -> None:
    """From states a tick makes results with hold point and blocker, hold reasons and commands for every truck."""
    for tick in exported("crossing")[5:]:
        robots = ["R1", "R2"]
        assert [one["robotId"] for one in tick["inputs"]["robotStates"]] == robots
        assert [one["robotId"] for one in tick["decisions"]["lockResults"]] == robots
        assert [command["robotId"] for command in tick["outputs"]["commands"]] == robots
        for one in tick["decisions"]["lockResults"]:
            assert (one["blocker"] is None) is one["ok"]
            assert one["holdPoint"]["kind"] in ("ON_EDGE", "AT_NODE_ENTRY")


@pytest.mark.section("10.2 Inputs and outputs of a tick", interface="library")
@pytest.mark.parametrize(
    "name", campaign_after(1, ["crossing", "spur", "crossing-turn", "head-on", "follow", "pose-jump"])
)
def test_10_2_the_named_blocker_holds_the_named_resource(name: str) -> None:
    """A blocked result names a truck and what that truck holds in the snapshot of the same tick."""
    run = scenario_run(name)
    wrong: list[str] = []
    blocked = 0
    while not run.is_over and run.now_ms < 2 * MINUTE_MS:
        outputs = run.step()
        blocked += sum(result.blocker is not None for result in outputs.results)
        wrong += false_blockers(outputs)

    assert blocked > 0
    assert wrong == []


@pytest.mark.section("10.2 Inputs and outputs of a tick", interface="command line")
def test_10_2_why_names_the_requested_resource_and_what_the_blocker_holds() -> None:
    """The explanation of a standing truck has both, and a sentence."""
    reason = json.loads(pendula("fleet", "why", "follow", "--at", "40000", "--robot", "R2", "--json"))

    assert reason["blockerRobotId"] == "R1"
    assert reason["blockerResourceId"].split(":")[0] in ("EDGE_GROUP", "NODE")
    assert reason["requestedResourceId"] == "EDGE_GROUP:A<->M"
    assert "R1" in reason["sentence"]


@pytest.mark.section("10.3 Minimal locks where a truck is", interface="library")
@pytest.mark.parametrize("name", campaign_except(("crossing",), ["crossing", "head-on"]))
def test_10_3_a_truck_always_holds_the_lane_or_the_node_it_is_in(name: str) -> None:
    """On an edge a truck holds its edge group in its direction, in a node the node."""
    run = scenario_run(name)
    while not run.is_over:
        outputs = run.step()
        snapshot = outputs.snapshot()
        lanes = {(one.robotId, group.edgeGroupKey) for group in snapshot.edgeGroups for one in group.occupants}
        nodes = {one.robotId for one in snapshot.nodeLocks}
        for truck, record in zip(run.world.trucks, outputs.scene.records, strict=True):
            network = run.site.network
            on = record.robot_id, network.groups[network.group_of[truck.edge]].key
            assert on in lanes or record.robot_id in nodes


@pytest.mark.section("10.3 Minimal locks where a truck is", interface="library")
@pytest.mark.parametrize("policy", list(NodeLockPolicy))
def test_10_3_a_truck_that_stands_in_a_node_holds_the_node(policy: NodeLockPolicy) -> None:
    """Whatever the policy for passing, a truck that stops in a node takes its lock."""
    run = scenario_run("crossing", node_lock_policy=policy)
    until(run, lambda one: one.scene.records[0].v_um_s > 1_000_000 and one.scene.records[0].at_um > 22_900_000)
    run.act(OperatorAction("1.0.0", "p", run.now_ms, "anna", "PAUSE_ROBOT", "look", robotId="R1"))
    run.run(run.now_ms + 3_000)

    assert [one.robotId for one in run.traffic.snapshot().nodeLocks if one.nodeId == "X"] == ["R1"]


@pytest.mark.section("10.4 Probe and commit", interface="library")
def test_10_4_a_unit_is_granted_whole_or_not_at_all() -> None:
    """All resources of a unit are free together, or the reservation ends before it."""
    run = scenario_run("spur")
    while not run.is_over:
        for record in run.step().scene.records:
            if record.track is None or record.stop_code is not None:
                continue
            ahead = record.track.taken(record.at_um, record.grant_um)
            assert all(one.resource in record.held for one in ahead)


@pytest.mark.section("10.5 Direction lock of an edge group", interface="command line")
def test_10_5_head_on_one_truck_waits_before_the_mouth() -> None:
    """Of two trucks with opposite directions in a lane one waits outside, and both arrive."""
    form = ran("head-on")

    assert form["unmet"] == []
    assert form["metrics"]["alerts"] == []


@pytest.mark.section("10.5 Spacing of an edge group", interface="library")
def test_10_5_the_spacing_is_of_leader_and_follower() -> None:
    """Rear of the leader's type, front and gap of the follower's."""
    long = replace(FL_STD, profile_id="LONG", head_um=2_000_000, tail_um=3_000_000, min_following_gap_um=0)
    forward = MoveStyle.FORWARD

    assert spacing_um(FL_STD, forward, FL_STD, forward) == 4_900_000
    assert spacing_um(long, forward, FL_STD, forward) == 4_900_000 + 1_300_000
    assert spacing_um(FL_STD, forward, long, forward) == 4_900_000 + 700_000 - 500_000


@pytest.mark.section("10.5 Spacing of an edge group", interface="command line")
def test_10_5_a_follower_keeps_its_distance_to_a_truck_that_stands() -> None:
    """Behind a leader that stands at 30 m a follower waits with its pivot at 25.10 m at most, and names its blocker."""
    assert ran("follow")["unmet"] == []
    waits = [one for one, _, _ in results("follow") if one["reasonCode"] == "WAIT_SPACING"]
    assert {one["blocker"]["blockerRobotId"] for one in waits} == {"R1"}


@pytest.mark.section("10.6 Hold point (S6)", interface="command line")
@pytest.mark.parametrize("name", ["crossing", "follow"])
def test_10_6_no_truck_is_sent_beyond_its_hold_point(name: str) -> None:
    """Neither target nor stop line of any command lies beyond the hold point of the same tick."""
    checked = 0
    for one, command, _ in results(name):
        if one["holdPoint"] is not None and command["routeId"]:
            limit = max(one["holdPoint"]["sOnRouteM"], command["currentS"])
            assert command["targetS"] <= limit
            assert command["stopLineS"] <= limit
            checked += 1

    assert checked > 500


@pytest.mark.section("10.7 Deadlocks", interface="command line")
def test_10_7_three_trucks_in_a_cycle_all_arrive() -> None:
    """Three trucks, each bound for the next corner of a triangle of 8 m with parking places, all arrive."""
    form = ran("triangle-8-refused")

    assert (form["unmet"], form["tasks"]["done"]) == ([], 3)
    assert "DEADLOCK_SUSPECTED" not in form["metrics"]["alerts"]


@pytest.mark.section("10.7 Deadlocks", interface="command line")
def test_10_7_without_the_rule_an_alert_is_raised_and_no_truck_collides() -> None:
    """Trucks that block each other permanently stand safely, and operators get an alert."""
    form = ran("triangle-8")

    assert form["metrics"]["alerts"] == ["DEADLOCK_CONFIRMED", "DEADLOCK_SUSPECTED"]
    assert form["violations"] == []


@pytest.mark.section("10.7 Deadlocks", interface="library")
def test_10_7_a_wait_that_prevents_a_deadlock_names_its_cycle() -> None:
    """A truck that cannot move up names the cycle of trucks that would block each other."""
    run = scenario_run("head-on")
    outputs = until(run, lambda one: any(found.cycle for found in one.results))
    waits = next(result for result in outputs.results if result.cycle)

    assert waits.reasonCode == "WAIT_SAFE_STATE"
    assert set(waits.cycle or ()) == {"R1", "R2"}
    assert waits.blocker is not None
    assert waits.blocker.blockerRobotId != waits.robotId


@pytest.mark.campaign
@pytest.mark.section("10.7 Deadlocks", interface="command line")
def test_10_7_a_truck_of_a_cycle_takes_a_detour_if_there_is_one() -> None:
    """A jam is resolved by another way forward, never by driving back."""
    assert ran("jam-with-a-way-round")["unmet"] == []


@pytest.mark.section("10.8 Anti-oscillation (O1)", interface="library")
@pytest.mark.parametrize("minutes", campaign_after(1, [1, 3]))
def test_10_8_the_order_of_a_queue_is_stable(minutes: int) -> None:
    """Two trucks in one queue do not change places while both wait in it."""
    run = scenario_run("hall")
    before: dict[str, list[str]] = {}
    changes = 0
    while run.now_ms < minutes * MINUTE_MS:
        now = {one.resourceId: [it.robotId for it in one.queue] for one in run.step().snapshot().queues or ()}
        for name in now.keys() & before.keys():
            both = set(now[name]) & set(before[name])
            changes += [one for one in now[name] if one in both] != [one for one in before[name] if one in both]
        before = now

    assert changes <= 2


@pytest.mark.section("10.8 Anti-oscillation (O2 to O4)", interface="command line")
@pytest.mark.parametrize("name", ["crossing", "follow", "head-on"])
def test_10_8_trucks_do_not_alternate_between_moving_and_holding(name: str) -> None:
    """Few changes between go and hold, no hold point or target that goes back, no change of route during a hold."""
    swings = ran(name)["metrics"]["swings"]

    assert swings["goHoldChanges"] <= 2
    assert (swings["holdBackUm"], swings["targetBackUm"], swings["replans"]) == (0, 0, 0)


@pytest.mark.section("10.8 Anti-oscillation (O5)", interface="library")
def test_10_8_a_long_wait_escalates_in_steps() -> None:
    """A long wait for the same truck causes a notice, then one attempt to reroute, then an alert."""
    run = scenario_run("follow")
    until(run, lambda one: one.scene.records[1].waiting is not None)
    run.world.start_fault(0, Fault(FaultKind.OFFLINE, 3 * MINUTE_MS))
    run.run(min(run.now_ms + 2 * MINUTE_MS, run.scenario.duration_ms))

    assert {"WAIT_NOTICE"} <= {*run.measures.notices, *run.measures.alerts}
    assert "WAIT_TOO_LONG" in run.measures.alerts


@pytest.mark.section("10.9 Parking and preemption", interface="command line")
def test_10_9_a_truck_on_its_way_to_park_takes_a_task_at_the_next_node() -> None:
    """A truck on its way to park takes a new task at a node, not in the middle of an edge."""
    assert ran("preemption")["unmet"] == []


# -- 12: the rolling target ---


@pytest.mark.section("12.1 Rolling target", interface="command line")
def test_12_1_the_target_is_on_the_route_within_the_lookahead() -> None:
    """Every truck gets a target on its own route, `rtpLookaheadM` ahead at most."""
    moving = [command for _, command, _ in results("crossing") if command["mode"] == "GO"]

    assert moving
    assert all(0 <= one["targetS"] - one["currentS"] <= 3.000001 for one in moving)
    assert max(one["targetS"] - one["currentS"] for one in moving) > 2.9


@pytest.mark.section("12.2 Target and hold point (C1)", interface="command line")
@pytest.mark.parametrize("name", campaign_after(1, ["crossing", "follow"]))
def test_12_2_the_target_stays_short_of_the_hold_point_by_the_buffer(name: str) -> None:
    """The target is at most the hold point less the buffer; at a goal, or where the truck acts, it is the goal."""
    short = []
    for one, command, _ in results(name):
        if command["mode"] == "GO" and one["holdPoint"]["kind"] == "ON_EDGE":
            short.append(one["holdPoint"]["sOnRouteM"] - command["targetS"])

    assert min(short) >= 0
    assert sum(one < 0.0999 for one in short) <= len(short) // 50


@pytest.mark.section("12.3 Frequencies", interface="command line")
def test_12_3_there_is_a_command_for_every_truck_in_every_tick() -> None:
    """Locks and targets are decided ten times a second, with rising numbers."""
    ticks = exported("crossing")

    assert {later["nowMs"] - one["nowMs"] for one, later in pairwise(ticks)} == {100}
    for robot in (0, 1):
        numbers = [tick["outputs"]["commands"][robot]["seq"] for tick in ticks]
        assert all(later > one for one, later in pairwise(numbers))


@pytest.mark.section("12.4 Stop and pause", interface="library")
@pytest.mark.parametrize("kind", [FaultKind.POSE_JUMP, FaultKind.OFFLINE])
def test_12_4_a_truck_that_has_to_stop_gets_no_target(kind: FaultKind) -> None:
    """With SAFETY_STOP or OFFLINE no target ahead is sent, and STOP is repeated."""
    run = scenario_run("follow")
    run.run(20_000)
    run.world.start_fault(1, Fault(kind, 8_000, x_um=0, y_um=2_000_000))
    until(run, lambda one: one.results[1].holdReason.value in ("SAFETY_STOP", "OFFLINE"))
    for _ in range(20):
        aim = run.step().aims[1]
        assert aim.mode.value == "STOP"
        assert aim.target_um <= aim.at_um


# -- 13: failures ---


@pytest.mark.section("13.1 Pose jump", interface="command line")
def test_13_1_a_jump_stops_the_truck_and_protects_both_places() -> None:
    """A truck whose position jumps stops, keeps its locks, and continues when its position is known again."""
    form = ran("pose-jump")

    assert form["unmet"] == []
    assert form["violations"] == []


@pytest.mark.section("13.1 Pose jump", interface="library")
def test_13_1_locks_held_before_a_jump_are_not_granted_to_others() -> None:
    """Locks are only added: both places stay locked."""
    run = scenario_run("follow")
    run.run(20_000)
    before = {*run.traffic.records[0].keeps}
    run.world.start_fault(0, Fault(FaultKind.POSE_JUMP, 5_000, x_um=0, y_um=3_000_000))
    until(run, lambda one: one.scene.records[0].stop_code == "STOP_POSE_JUMP")
    record = run.traffic.records[0]
    assert record.doubt is not None

    assert len(before & {*record.keeps}) >= len(before) - 2
    assert {*record.doubt.extra} - before


@pytest.mark.section("13.2 Lost communication", interface="library")
@pytest.mark.parametrize("seconds", campaign_after(1, [20, 120]))
def test_13_2_a_silent_truck_keeps_its_locks_and_raises_an_alert(seconds: int) -> None:
    """After `robotOfflineMs` a truck is OFFLINE; no lock expires, and other trucks stay out."""
    run = scenario_run("follow")
    run.run(20_000)
    run.world.start_fault(0, Fault(FaultKind.OFFLINE, 10 * MINUTE_MS))
    until(run, lambda one: one.results[0].holdReason.value == "OFFLINE")
    kept = {*run.traffic.records[0].keeps}
    run.run(run.now_ms + seconds * 1_000)

    assert {*run.traffic.records[0].keeps} == kept
    assert "ROBOT_OFFLINE" in run.measures.alerts
    assert run.measures.violations == {}


@pytest.mark.section("13.2 Lost communication", interface="library")
def test_13_2_an_operator_can_free_the_place_of_a_truck_that_was_removed() -> None:
    """There is a procedure to clear, relocate and release; releasing needs a second confirmation."""
    run = scenario_run("follow")
    run.run(20_000)
    run.world.start_fault(0, Fault(FaultKind.OFFLINE, 10 * MINUTE_MS))
    until(run, lambda one: one.results[0].holdReason.value == "OFFLINE")
    first = OperatorAction(
        *("1.0.0", "op-1", run.now_ms, "anna", "REMOVE_ROBOT", "towed away"), robotId="R1", physicallySecured=True
    )
    run.act(first)
    run.run(run.now_ms + 1_000)
    kept = len(run.traffic.records[0].keeps)
    run.act(replace(first, actionId="op-2", ts=run.now_ms, confirmationOf="op-1"))
    run.run(run.now_ms + 1_000)

    assert kept > 0
    assert run.traffic.records[0].keeps == []


@pytest.mark.section("13.3 Off route", interface="library")
def test_13_3_a_truck_beside_its_route_stops() -> None:
    """Farther from its route than `offRouteThresholdM` a truck goes to SAFETY_STOP."""
    run = scenario_run("near-lanes-apart")
    until(run, lambda one: one.now_ms > 8_000 and one.scene.records[0].v_um_s > 500_000)
    run.world.start_fault(0, Fault(FaultKind.PUSHED, 1, y_um=300_000))
    outputs = until(run, lambda one: one.scene.records[0].stop_code is not None)

    assert outputs.results[0].reasonCode == "STOP_OFF_ROUTE"
    assert outputs.results[0].holdReason.value == "SAFETY_STOP"


@pytest.mark.section("13.4 Stuck", interface="library")
def test_13_4_a_truck_that_does_not_follow_its_command_is_detected() -> None:
    """No progress for `stuckTimeoutMs` with a command to move: a fault, with blocker, resource and last hold point."""
    run = scenario_run("near-lanes-apart")
    until(run, lambda one: one.now_ms > 8_000 and one.scene.records[0].v_um_s > 500_000)
    run.world.start_fault(0, Fault(FaultKind.STUCK, MINUTE_MS))
    outputs = until(run, lambda one: one.scene.records[0].stop_code == "STOP_STUCK")
    alert = next(one for one in outputs.alerts if one.robotId == "R1")

    assert outputs.results[0].holdReason.value == "ROBOT_FAULT"
    assert {"blocker", "resource", "holdPointUm", "lastAckSeq"} <= alert.details.keys()


# -- 15 and 16: tests and evolution ---


@pytest.mark.section("15.4 Invariants", interface="command line")
@pytest.mark.parametrize("name", campaign_after(1, ["crossing", "hall"]))
def test_15_4_the_invariants_hold_in_every_tick_and_the_same_inputs_give_the_same_locks(name: str) -> None:
    """One direction in an edge group, no overlapping envelopes, no target beyond the hold point, repeatable ticks."""
    first = ran(name)
    second = json.loads(pendula("fleet", "run", name, "--json"))

    assert {name: first["invariants"][name]["violations"] for name in RULES} == dict.fromkeys(RULES, 0)
    assert first["digest"] == second["digest"]
    for tick in exported("crossing"):
        for command in tick["outputs"]["commands"]:
            if command["mode"] == "GO":
                assert command["targetS"] <= command["stopLineS"]


@pytest.mark.section("16 Evolution", interface="library")
def test_16_planner_to_dispatcher_are_connected_by_protocols() -> None:
    """The interfaces of planner, corridor, lock manager and dispatcher survive the replacement of an algorithm."""
    chain = (ports.RoutePlanner, ports.CorridorBuilder, ports.LockManager, ports.TaskDispatcher)

    assert [port.__name__ for port in chain if Protocol not in port.__mro__] == []
