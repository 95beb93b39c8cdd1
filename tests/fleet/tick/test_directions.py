"""Directions of lanes rank trucks; they lock nothing."""

import pytest

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.planner import AtNode
from pendula.fleet.tick import turns
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import Record, Waiting
from pendula.fleet.tick.track import Ground, track_of
from pendula.fleet.tick.turns import Directions, Queue
from tests.fleet.routes import route
from tests.fleet.sites import scene

SITE = scene("head-on-lane")
LANE = next(number for number, group in enumerate(SITE.network.groups) if group.key == "A<->B")
TWO_WAY = turns.two_way(SITE)
NOW = 50_000
# A cell before the lane that blocks trucks coming out of it.
MOUTH = int(SITE.cells.first[SITE.edge_number["W1->A"]])


def truck(number: int, start: str, goal: str) -> Record:
    """A truck in the mouth of the lane, about to enter it."""
    node = SITE.node_number[start]
    plan = route(SITE, AtNode(node), goal, rest=goal)
    record = Record(SITE, number, f"R{number}", FL_STD, rest=SITE.node_number[goal], short_um=200_000, node=node)
    record.track = track_of(Ground(SITE), plan, record.short_um, 0, {})
    return record


def east(number: int = 0) -> Record:
    return truck(number, "A", "B")


def west(number: int = 1) -> Record:
    return truck(number, "B", "A")


def way(record: Record) -> bool:
    return turns.entered_next(record, TWO_WAY)[LANE]


def waits(record: Record, for_ms: int, code: str = "WAIT_EDGE_DIRECTION") -> Record:
    cell = int(SITE.cells.first[SITE.edge_number["B->A"]])
    record.waiting = Waiting(code, cell, 0, None)
    record.waiting_since_ms = NOW - for_ms
    return record


def drained(for_ms: int, code: str = "WAIT_EDGE_DIRECTION", active: bool | None = None) -> Directions:
    """Lanes after a truck has waited for a time at the eastern end of one that is driven in a direction, or in none."""
    lanes = Directions(active={} if active is None else {LANE: active}, ways={LANE: frozenset({MOUTH})})
    turns.drain(lanes, [east(), waits(west(), for_ms, code)], TWO_WAY, NOW, TrafficParams())
    return lanes


@pytest.mark.req("FLT-OSC-9")
def test_an_empty_lane_keeps_its_direction_while_a_truck_requests_it() -> None:
    first, second = east(), west()
    kept = Directions(empty_since={LANE: (way(first), NOW)})

    assert turns.against(kept, [first, second], TWO_WAY) == {1}


@pytest.mark.req("FLT-OSC-9")
def test_the_other_direction_is_free_at_once_if_no_truck_requests_the_old_one() -> None:
    kept = Directions(empty_since={LANE: (way(east()), NOW)})

    assert turns.against(kept, [west()], TWO_WAY) == frozenset()


@pytest.mark.req("FLT-OSC-9")
def test_an_empty_lane_is_forgotten_after_a_while() -> None:
    kept = Directions(active={LANE: True})
    turns.look(kept, [], TWO_WAY, NOW, 1_000)
    assert kept.empty_since == {LANE: (True, NOW)}

    turns.look(kept, [], TWO_WAY, NOW + 1_001, 1_000)
    assert kept.empty_since == {}


@pytest.mark.req("FLT-RES-18")
@pytest.mark.parametrize(("for_ms", "closed"), [(20_000, False), (20_001, True)])
def test_a_lane_drains_when_the_other_end_has_waited_too_long(for_ms: int, closed: bool) -> None:
    assert (LANE in drained(for_ms).drained) is closed


@pytest.mark.req("FLT-RES-18")
def test_a_truck_that_would_enter_against_the_waiter_is_kept_out() -> None:
    assert turns.kept_out_by(drained(30_000), east(), TWO_WAY, Queue(), ()) == (1, LANE)


@pytest.mark.req("FLT-RES-18", "FLT-RES-10")
def test_the_blocker_of_the_waiter_is_not_kept_out() -> None:
    assert turns.kept_out_by(drained(30_000), east(), TWO_WAY, Queue({1: {2}, 2: {0}}), ()) is None


@pytest.mark.req("FLT-RES-18")
def test_the_waiter_itself_may_enter() -> None:
    assert turns.kept_out_by(drained(30_000), west(), TWO_WAY, Queue(), ()) is None


@pytest.mark.req("FLT-RES-18")
def test_a_lane_drains_whatever_resource_the_waiter_lacks() -> None:
    assert LANE in drained(30_000, "WAIT_CRITICAL_SECTION").drained


@pytest.mark.req("FLT-RES-18", "FLT-LIVE-10")
def test_nothing_drains_for_a_truck_that_waits_for_a_safe_state() -> None:
    assert drained(30_000, "WAIT_SAFE_STATE").drained == {}


@pytest.mark.req("FLT-RES-18")
def test_a_lane_driven_in_the_direction_of_the_waiter_does_not_drain() -> None:
    assert (LANE in drained(30_000, active=way(east())).drained, drained(30_000, active=way(west())).drained) == (
        True,
        {},
    )


@pytest.mark.req("FLT-RES-18", "FLT-DCL-18")
def test_a_truck_about_to_enter_stays_out_of_the_mouth_too() -> None:
    far = truck(0, "W1", "B")

    assert turns.kept_out_by(drained(30_000), far, TWO_WAY, Queue(), (MOUTH,)) == (1, LANE)
    assert turns.kept_out_by(drained(30_000), far, TWO_WAY, Queue(), ()) is None


@pytest.mark.req("FLT-RES-18")
def test_a_truck_with_another_goal_passes_the_mouth() -> None:
    assert turns.kept_out_by(drained(30_000), truck(0, "W1", "W2"), TWO_WAY, Queue(), (MOUTH,)) is None
