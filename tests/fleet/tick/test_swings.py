"""Swings are changes back and forth within a window; ordinary traffic is not counted."""

from dataclasses import replace

import pytest

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import CommandMode
from pendula.fleet.map.planner import AtNode
from pendula.fleet.scenarios import shipped, shipped_names
from pendula.fleet.scenarios.model import Calm
from pendula.fleet.tick.records import Record, Waiting
from pendula.fleet.tick.swings import Swings
from pendula.fleet.tick.track import Ground, track_of
from tests.fleet.routes import route
from tests.fleet.sites import scene

SITE = scene("head-on-lane")
GO, HOLD = CommandMode.GO, CommandMode.HOLD


def truck() -> Record:
    """A truck that waits on its way through the lane."""
    node = SITE.node_number["A"]
    record = Record(SITE, 0, "R1", FL_STD, rest=SITE.node_number["B"], short_um=200_000, node=node)
    record.track = track_of(Ground(SITE), route(SITE, AtNode(node), "B", rest="B"), record.short_um, 0, {})
    record.acted = len(record.track.acts)
    record.waiting = Waiting("WAIT_SPACING", 0, 1, None)
    record.hold_um = record.target_um = 5_000_000
    return record


def counted(*modes: CommandMode, every_ms: int = 1_000, step_um: int = 0) -> int:
    """The changes of a truck with these results, one after the other, and distances between."""
    swings, record = Swings(SITE), truck()
    edge = SITE.edge_number["A->B"]
    for number, mode in enumerate(modes):
        swings.note(record, mode, every_ms * number)
        swings.note_places([(edge, 1_000_000 + step_um * number)], every_ms * number)
    return swings.most("goHoldChanges")


@pytest.mark.req("FLT-OSC-10")
def test_changes_between_go_and_hold_are_counted_in_ten_seconds() -> None:
    assert counted(GO, HOLD, GO, HOLD) == 3
    assert counted(GO, HOLD, GO, HOLD, every_ms=5_000) == 2


@pytest.mark.req("FLT-OSC-10")
def test_new_routes_are_counted_in_a_minute() -> None:
    swings = Swings(SITE)
    again = replace(route(SITE, AtNode(SITE.node_number["A"]), "B", rest="B"), revision=2)
    for now in (0, 30_000, 59_999, 60_000, 90_000):
        swings.note_routes([again], now)

    assert swings.worst["replans"] == (3, again.robot_id, 59_999)


def test_moving_up_by_a_place_in_a_queue_is_no_swing() -> None:
    assert counted(HOLD, GO, HOLD, GO, step_um=2_500_000) == 2


def test_a_truck_that_holds_to_turn_has_no_blocker() -> None:
    swings, record = Swings(SITE), truck()
    record.acted = 0
    assert record.act is not None
    record.hold_um = record.act.s_um
    for number, mode in enumerate((GO, HOLD, CommandMode.TURN, GO)):
        swings.note(record, mode, 1_000 * number)

    assert swings.most("goHoldChanges") == 0


@pytest.mark.req("FLT-OSC-10", "FLT-OSC-8")
def test_hold_points_and_targets_that_go_back_add_up() -> None:
    swings, record = Swings(SITE), truck()
    for number, (hold_um, target_um) in enumerate(((5, 4), (3, 4), (6, 3), (4, 5))):
        record.hold_um, record.target_um = hold_um, target_um
        swings.note(record, GO, 1_000 * number)

    assert (swings.most("holdBackUm"), swings.most("targetBackUm")) == (4, 1)


def test_a_target_drawn_back_by_a_safety_stop_is_no_swing() -> None:
    swings, record = Swings(SITE), truck()
    swings.note(record, GO, 0)
    record.stop_code, record.hold_um = "STOP_POSE_JUMP", 0
    swings.note(record, CommandMode.STOP, 100)
    record.stop_code = None
    swings.note(record, HOLD, 200)

    assert swings.worst == {}


@pytest.mark.req("FLT-OSC-10")
def test_a_lane_flips_when_a_truck_comes_the_other_way_while_one_waits_for_the_former_direction() -> None:
    swings, there, back = Swings(SITE), SITE.edge_number["A->B"], SITE.edge_number["B->A"]
    beside, waiting = (SITE.edge_number["W1->A"], 0), truck()
    waiting.number, waiting.waiting = 2, None
    swings.note(waiting, HOLD, 0)
    swings.note_places([(there, 1), beside], 0)
    swings.note_places([(back, 1), beside], 1_000)
    # The lane is free, and no truck waits to drive from A to B.
    swings.note_places([beside, (there, 1)], 2_000)
    swings.note_places([(back, 1), beside], 3_000)
    assert swings.most("directionFlips") == 0

    waiting.waiting = Waiting("WAIT_EDGE_DIRECTION", 0, 1, None)
    swings.note(waiting, HOLD, 4_000)
    swings.note_places([beside, (there, 1)], 4_000)
    assert swings.most("directionFlips") == 0
    swings.note_places([(back, 1), beside], 5_000)
    assert swings.worst["directionFlips"] == (1, "A<->B", 5_000)


@pytest.mark.req("FLT-OSC-10")
def test_a_truck_that_loads_and_then_waits_makes_no_swing() -> None:
    swings, record = Swings(SITE), truck()
    swings.note(record, GO, 0)
    assert record.track is not None
    record.track = replace(record.track, plan=replace(record.track.plan, route_id="next trip"))
    record.hold_um = record.target_um = 0
    for number, mode in enumerate((HOLD, GO, HOLD)):
        swings.note(record, mode, 1_000 * (number + 1))

    assert swings.most("goHoldChanges") == 2


def test_a_dead_end_does_not_flip() -> None:
    swings = Swings(SITE)
    swings.note_places([(SITE.edge_number["W1->A"], 1), (SITE.edge_number["B->A"], 0)], 0)
    swings.note_places([(SITE.edge_number["B->A"], 0), (SITE.edge_number["A->W1"], 1)], 100)

    assert swings.most("directionFlips") == 0


@pytest.mark.req("FLT-OSC-10")
@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_scenario_expects_no_swings(name: str) -> None:
    (calm,) = [expectation for expectation in shipped(name).expect if isinstance(expectation, Calm)]

    # A lane that drains for a waiting truck flips for that truck and back.
    assert calm == Calm(direction_flips=2 if name == "direction-starvation" else 1)
