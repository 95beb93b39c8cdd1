"""A truck a little beside its line drives back by itself where that endangers no other truck; otherwise the answer says
what has to move."""

from decimal import Decimal
from random import Random

import pytest
from msgspec.structs import replace

from bench.fleet_throughput_loads import endless
from pendula.fleet import compile_map
from pendula.fleet.compiler.generated_maps import live_map
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import AnchorPlace, CommandMode, OperatorAction
from pendula.fleet.explain import truck
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator import Fault, FaultKind
from pendula.fleet.tasks.operators import ActionResult
from pendula.fleet.units import MILLION
from tests.campaigns import campaign_after, campaign_except

MINUTE_MS = 60_000


def under_way(name: str, number: int = 0, at_ms: int = 8_000) -> Run:
    """A shipped scenario with one truck at speed."""
    run = Run(replace(shipped(name), expect=()))
    while run.now_ms < at_ms or run.world.trucks[number].v_um_s < 500_000:
        run.step()
    return run


def pushed(run: Run, by_um: int, number: int = 0, upto_ms: int = 10_000) -> Run:
    """The same after a push to one side, when that was noticed and poses have been steady."""
    run.world.start_fault(number, Fault(FaultKind.PUSHED, 1, y_um=by_um))
    run.run(run.now_ms + upto_ms)
    return run


def asked(run: Run, kind: str, number: int = 0) -> ActionResult:
    """What a person who clears or relocates a truck where it is is answered."""
    one = run.world.trucks[number]
    anchor = AnchorPlace(run.site.network.edges[one.edge].key, Decimal(one.on_um) / MILLION)
    robot = run.world.robot_ids[number]
    act = OperatorAction("1.0.0", f"op-{kind}-{run.now_ms}", run.now_ms, "anna", kind, "I see it", robotId=robot)
    run.act(replace(act, anchor=anchor) if kind == "RELOCATE" else act)
    run.step()
    return run.engine.inbox._answered[act.actionId][1]


def sentence(run: Run, robot_id: str = "R1") -> str:
    return truck(run.traffic, run.dispatch, robot_id).sentence


@pytest.mark.req("FLT-FAIL-8", "FLT-FAIL-7")
@pytest.mark.parametrize("by_um", campaign_after(1, [275_000, -275_000, 400_000]))
def test_a_truck_pushed_slightly_beside_its_line_creeps_back_and_continues(by_um: int) -> None:
    run = pushed(under_way("near-lanes-apart"), by_um, upto_ms=4_000)
    record = run.traffic.records[0]
    told = run.step().aims[0]
    between = record.stop_code, told.mode, told.speed_um_s, sentence(run)
    run.run(run.now_ms + MINUTE_MS)

    assert between[:3] == ("STOP_OFF_ROUTE", CommandMode.GO, 100_000)
    assert between[3] == "R1 drives back to its line, slowly, where no other truck may drive."
    assert (run.traffic.records[0].stop_code, run.world.trucks[0].aside_um) == (None, 0)
    assert run.measures.breaches == []
    assert "STOP_IGNORED" not in run.measures.alerts


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-8")
def test_a_rejoining_truck_gets_a_line_from_its_pose_and_stays_within_its_grant() -> None:
    run = pushed(under_way("near-lanes-apart"), 300_000, upto_ms=4_000)
    granted = run.traffic.records[0].grant_um
    targets = set()
    while run.traffic.records[0].rejoin_um is not None:
        outputs = run.step()
        told, pose = outputs.commands[0], run.traffic.records[0].pose
        if told.mode is CommandMode.GO and outputs.aims[0].straight:
            assert pose is not None
            assert tuple(round(float(one) * MILLION) for one in told.pathSlice[0]) == (pose.x_um, pose.y_um)
            assert told.stopLineS == told.targetS
            targets.add(outputs.aims[0].target_um)

    assert len(targets) == 1
    assert max(targets) <= granted


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-8")
def test_a_truck_that_is_paused_or_too_far_from_its_line_does_not_drive_back() -> None:
    far = pushed(under_way("near-lanes-apart"), 700_000)
    paused = under_way("near-lanes-apart")
    paused.act(OperatorAction("1.0.0", "p", paused.now_ms, "anna", "PAUSE_ROBOT", "look", robotId="R1"))
    pushed(paused, 300_000)

    assert [run.step().aims[0].mode for run in (far, paused)] == [CommandMode.STOP, CommandMode.STOP]


def beside_another() -> Run:
    """Two trucks abreast on lanes as near as they may be, one of them pushed towards the other."""
    run = under_way("near-lanes-apart", at_ms=35_000)
    for one in (0, 1):
        run.world.start_fault(one, Fault(FaultKind.STAND, MINUTE_MS))
    run.run(run.now_ms + 5_000)
    y = [record.pose.y_um for record in run.traffic.records if record.pose is not None]
    return pushed(run, 300_000 if y[1] > y[0] else -300_000, upto_ms=8_000)


@pytest.mark.req("FLT-FAIL-6", "FLT-FAIL-11")
def test_another_truck_beside_the_line_is_named_as_the_one_to_move() -> None:
    run = beside_another()
    stands, cleared, relocated = sentence(run), asked(run, "CLEAR_FAULT"), asked(run, "RELOCATE")

    assert run.traffic.records[0].rejoin_um is None
    for text in (stands, cleared.message, relocated.message):
        assert "cannot drive back beside R2 (it holds EDGE_GROUP:" in text
        assert " m to the " in text
        assert "move that away, or push R1 0." in text
    assert (cleared.code, relocated.code) == ("NOTHING_TO_CLEAR", "PLACE_HELD")


@pytest.mark.campaign
@pytest.mark.req("FLT-FAIL-11")
def test_relocating_a_truck_that_jumped_beside_its_line_makes_it_rejoin() -> None:
    run = under_way("near-lanes-apart")
    # A report from elsewhere in between: its place is torn, so it stays until a person has looked.
    run.world.start_fault(0, Fault(FaultKind.POSE_JUMP, 500, x_um=5_000_000))
    pushed(run, 300_000)
    before = run.traffic.records[0].stop_code, run.traffic.records[0].rejoin_um
    answer = asked(run, "RELOCATE")
    run.run(run.now_ms + MINUTE_MS)

    assert before == ("STOP_POSE_JUMP", None)
    assert answer.code is None
    assert run.traffic.records[0].stop_code is None


def driven_with_pushes(seed: int, minutes: int) -> Run:
    """Five trucks at work; every few seconds one of them is pushed to a side."""
    sample, random = live_map(seed, 5), Random(seed)
    scenario = endless(sample, "pushed", minutes * MINUTE_MS, seed)
    run = Run(replace(scenario, profiles=(FL_STD,)), compile_map(sample.source, (FL_STD,)))
    next_ms = 5_000
    while run.now_ms < scenario.duration_ms:
        run.step()
        if run.now_ms >= next_ms:
            next_ms = run.now_ms + random.randrange(8_000, 30_000)
            number = random.randrange(5)
            # Beside the envelope without inflation there are 0.2 m that no truck may use up twice.
            if abs(run.world.trucks[number].aside_um) < 100_000:
                side = [random.choice((-1, 1)) * random.randrange(60_000, 180_000) for _ in range(2)]
                run.world.start_fault(number, Fault(FaultKind.PUSHED, 1, x_um=side[0], y_um=side[1]))
    return run


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-8", "FLT-TEST-41")
@pytest.mark.parametrize("seed", campaign_except((1,), range(2)))
def test_no_pushed_truck_enters_the_envelope_of_another(seed: int) -> None:
    run = driven_with_pushes(seed, 2)

    assert run.measures.breaches == []


@pytest.mark.long
@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-8", "FLT-TEST-41")
@pytest.mark.parametrize("seed", range(2, 22))
def test_no_pushed_truck_enters_the_envelope_of_another_in_a_long_run(seed: int) -> None:
    run = driven_with_pushes(seed, 15)

    assert run.measures.breaches == []
