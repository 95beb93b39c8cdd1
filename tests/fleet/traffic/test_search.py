"""The search for a witness: sleeping trucks change no result, and a convoy gets home without a branch."""

from random import Random

import pytest

from pendula.fleet.traffic.grants import Rule, accept_route, extend
from pendula.fleet.traffic.lock_state import Demand, Exclusion, LockState
from pendula.fleet.traffic.search import Outlook, Search, find_witness
from tests.fleet.traffic.tiny_maps import tiny_map

RING, TRUCKS = 24, 12


class Sleepless(Search):
    """Checks all trucks every time, also those that nothing woke."""

    def go(self, i: int, position: int) -> None:
        super().go(i, position)
        self.wake(list(self.asleep))

    def outlook(self, i: int) -> Outlook:
        self.wake(list(self.asleep))
        return super().outlook(i)


def crowd(seed: int) -> LockState:
    """Trucks on a ring of cells, each with its own rest cell, at random free cells."""
    random = Random(seed)
    state = LockState(Exclusion.of_pairs(RING + TRUCKS, []), TRUCKS)
    for i in range(TRUCKS):
        start, way = random.randrange(RING), random.choice((1, -1))
        cells = [(start + way * k) % RING for k in range(random.randint(3, RING))]
        rows = [[RING + i], *([cell] for cell in cells), [RING + i]]
        unwanted = [random.random() < 0.4 for _ in rows]
        accept_route(state, i, Demand.of_rows(rows, rows, unwanted), rule=Rule.OFF)
        position = random.randrange(len(rows))
        if not state.blockers.at(rows[position][0]) & ~(1 << i):
            state.place(i, position)
    return state


def under_way(seed: int) -> LockState:
    """A tiny map on which a truck has moved a unit farther than was checked."""
    random, tiny = Random(seed), tiny_map(seed)
    state = LockState(tiny.exclusion(), len(tiny.ways))
    for i, ways in enumerate(tiny.ways):
        accept_route(state, i, ways[0].demand())
    for _ in range(random.randrange(6)):
        extend(state, random.randrange(len(state)))
    i = random.randrange(len(state))
    if state.truck(i).position < state.truck(i).goal:
        state.place(i, state.truck(i).position + 1)
    return state


def convoy(unwanted: bool) -> LockState:
    """Three trucks on a ring of cells, one behind the other, each of which drives all of it before it rests."""
    state = LockState(Exclusion.of_pairs(RING + 3, []), 3)
    for i in range(3):
        rows = [*([(8 * i + k) % RING] for k in range(RING)), [RING + i]]
        marks = [unwanted] * RING + [False]
        accept_route(state, i, Demand.of_rows(rows, rows, marks), rule=Rule.OFF)
    return state


def searched(kind: type[Search], state: LockState) -> tuple[object, ...]:
    search = kind(state, 30, waiting=dict.fromkeys(state.known(), 0))
    found = search.solved(state.known())
    return found, search.moves, search.waiting, search.stuck, search.cycle, search.nodes


def test_sleeping_trucks_change_no_result_of_a_search() -> None:
    for seed in range(200):
        assert searched(Search, under_way(seed)) == searched(Sleepless, under_way(seed)), seed
    # In the last a truck is woken within a round, and moves in it.
    for seed in (*range(100), 489):
        assert searched(Search, crowd(seed)) == searched(Sleepless, crowd(seed)), seed


def test_a_search_restores_the_state() -> None:
    for seed in range(60):
        state = crowd(seed)
        before = [(state.truck(i).position, state.standing(i).tolist()) for i in state.known()]
        find_witness(state, state.known(), state.witness, 30)

        assert [(state.truck(i).position, state.standing(i).tolist()) for i in state.known()] == before
        assert not any(state.watched.at(resource) for resource in range(len(state.exclusion)))
        assert not state.marks.any()


@pytest.mark.req("FLT-LIVE-12")
def test_a_search_stays_within_its_budget_and_restores_the_state() -> None:
    cut = 0
    for seed in range(60):
        state = crowd(seed)
        before = [(state.truck(i).position, state.standing(i).tolist()) for i in state.known()]
        whole, thorough = find_witness(state, state.known(), state.witness, 30)
        found, search = find_witness(state, state.known(), state.witness, 30, looks=5)

        assert search.looks <= 5
        assert found == (whole if thorough.looks <= 5 else None)
        assert found is not None or search.cycle
        assert [(state.truck(i).position, state.standing(i).tolist()) for i in state.known()] == before
        assert not any(state.watched.at(resource) for resource in range(len(state.exclusion)))
        cut += thorough.looks > 5
    assert cut


@pytest.mark.req("FLT-LIVE-13")
@pytest.mark.parametrize("unwanted", [False, True], ids=["open lane", "windows everywhere"])
def test_a_convoy_on_a_ring_gets_home_without_a_branch(unwanted: bool) -> None:
    found, search = find_witness(convoy(unwanted), [0], [], 0)

    assert found is not None
    assert search.stuck == (0, 1, 2)


def face_to_face() -> LockState:
    """The first truck drives a, b, c, d to rest; the second has farther to go and comes from d, over c and e, to a. The
    third needs a, b and e, so no truck waits there for good."""
    a, b, c, d, e = range(5)
    ways = [[a, b, c, d, 10], [d, c, e, a, 5, 6, 11], [7, a, b, e, 12]]
    state = LockState(Exclusion.of_pairs(13, []), 3)
    for i, way in enumerate(ways):
        rows = [[cell] for cell in way]
        accept_route(state, i, Demand.of_rows(rows, rows), rule=Rule.OFF)
    return state


@pytest.mark.req("FLT-LIVE-13")
def test_the_truck_with_the_longest_way_moves_first_if_the_other_order_fails() -> None:
    found, search = find_witness(face_to_face(), [0], [], 0)

    assert search.stuck == (0, 1)
    # The second truck goes to e, out of the way of the first.
    assert found is not None
    assert found[:2] == [(1, 2), (0, 4)]
