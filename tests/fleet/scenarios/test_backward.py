"""An edge that is driven backward to a pick, with a follower behind: the tail leads."""

from dataclasses import dataclass
from decimal import Decimal

import pytest
from msgspec.structs import replace

from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.contracts import CommandMode, HoldComponents, LockResult, Phase
from pendula.fleet.model import MoveStyle, SourceMap
from pendula.fleet.scenarios import Run, Scenario, shipped
from pendula.fleet.scenarios.model import Robot
from pendula.fleet.tasks import TaskOrder
from pendula.fleet.units import micro

CELL_UM = 500_000


@dataclass(frozen=True)
class Limits:
    grants_um: int
    node_um: int


def limits(result: LockResult) -> Limits:
    components = result.holdComponents
    assert isinstance(components, HoldComponents)
    assert isinstance(components.grantsS, Decimal)
    assert isinstance(components.nodeS, Decimal)
    return Limits(micro(components.grantsS), micro(components.nodeS))


def lane(style: MoveStyle) -> SourceMap:
    """30 m to a pick in M, driven in a style; behind it the ways to two rest nodes part."""
    sketch = Sketch("lane")
    for name, x, y in (("W", -12, 0), ("A", 0, 0), ("M", 30, 0), ("B", 60, 0), ("E1", 75, 8), ("E2", 75, -8)):
        sketch.node(name, x, y)
    sketch.lane("W", "A", back=False)
    sketch.lane("A", "M", style=style, back=False)
    sketch.lane("M", "B")
    sketch.lane("B", "E1")
    sketch.lane("B", "E2")
    return sketch.done()


def waiting_behind(style: MoveStyle) -> tuple[Limits, Run]:
    """The reason and the position of the follower behind a truck that loads in M."""
    ends = {"R1": "E1", "R2": "E2"}
    tasks = [TaskOrder(f"T{name}", "M", end, 0, (name,), pick_ms=60_000) for name, end in ends.items()]
    robots = Robot("R1", "E1", start="A", came_from_id="W"), Robot("R2", "E2", start="W")
    run = Run(Scenario("lane", "", lane(style), (FL_STD,), robots, 200_000, tasks=tuple(tasks)))
    while run.now_ms < 200_000:
        outputs = run.step()
        leader, follower = outputs.scene.records
        if leader.phase is Phase.LOADING and not follower.v_um_s and follower.at_um > 30_000_000:
            return limits(outputs.results[1]), run
    raise AssertionError("the follower never stood behind the leader")


@pytest.mark.req("FLT-TEST-19", "FLT-GEO-9", "FLT-DCL-11")
def test_a_truck_driving_backward_stops_earlier_before_a_locked_node() -> None:
    forward, run = waiting_behind(MoveStyle.FORWARD)
    backward, _ = waiting_behind(MoveStyle.BACKWARD)
    spacing = run.site.envelope.spacing_um

    assert forward.node_um - backward.node_um == 200_000
    assert 0 <= forward.grants_um - backward.grants_um <= CELL_UM
    assert spacing(MoveStyle.FORWARD, MoveStyle.BACKWARD) - spacing(MoveStyle.FORWARD, MoveStyle.FORWARD) == 200_000


@pytest.mark.req("FLT-TEST-19", "FLT-RTP-12")
def test_a_turn_is_commanded_only_while_the_truck_holds_the_lock_of_its_node() -> None:
    run = Run(shipped("backward"))
    turns = 0
    while run.now_ms < 60_000:
        outputs = run.step()
        for record, command in zip(outputs.scene.records, outputs.commands, strict=True):
            if command.mode is CommandMode.TURN:
                turns += 1
                assert record.act is not None
                assert run.site.zone(record.act.node) in record.held

    assert turns > 20


@pytest.mark.req("FLT-RTP-3", "FLT-RTP-4")
def test_a_command_has_one_driving_style_for_its_whole_path() -> None:
    # With this seed its reported position is before the node in which it has turned.
    run = Run(replace(shipped("backward"), seed=1))
    styles: set[MoveStyle] = set()
    short = 0
    while not run.is_over and run.now_ms < run.scenario.duration_ms:
        outputs = run.step()
        for aim, command in zip(outputs.aims, outputs.commands, strict=True):
            if command.mode is not CommandMode.GO or aim.plan is None:
                continue
            first, last = aim.plan.segment_at(aim.at_um + 1), aim.plan.segment_at(aim.target_um)
            ahead = [run.site.network.edges[segment.edge] for segment in aim.plan.segments[first : last + 1]]
            if ahead[0].style is not ahead[-1].style:
                # It has turned in the node, and its reported position is a little before it.
                short += 1
                node = run.site.network.nodes[ahead[-1].start].at
                assert tuple(map(micro, command.pathSlice[0])) == (node.x_um, node.y_um)
            assert command.movestyle is ahead[-1].style
            styles.add(command.movestyle)

    assert short > 0
    assert styles == {MoveStyle.FORWARD, MoveStyle.BACKWARD}
