"""A search that lets trucks sleep finds what one finds that asks everybody again and again."""

from random import Random

from pendula.fleet.traffic.demand import Demand
from pendula.fleet.traffic.grants import Rule, accept_route, extend
from pendula.fleet.traffic.lock_state import LockState
from pendula.fleet.traffic.resources import Exclusion
from pendula.fleet.traffic.search import Outlook, Search, find_witness
from tests.fleet.traffic.tiny_maps import tiny_map

RING, TRUCKS = 24, 12


class Sleepless(Search):
    """Asks anew every time."""

    def outlook(self, i: int) -> Outlook:
        self.wake(list(self.asleep))
        return super().outlook(i)


def crowd(seed: int) -> LockState:
    """Trucks on a ring of cells, each with a rest cell of its own, left standing wherever there is room."""
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
    """A tiny map on which a truck has gone a unit farther than anybody judged."""
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


def searched(kind: type[Search], state: LockState) -> tuple[object, ...]:
    search = kind(state, 30, waiting=dict.fromkeys(state.known(), 0))
    found = search.solved(state.known())
    return found, search.moves, search.waiting, search.stuck, search.cycle, search.nodes


def test_who_sleeps_misses_nothing() -> None:
    for seed in range(200):
        assert searched(Search, under_way(seed)) == searched(Sleepless, under_way(seed)), seed
    for seed in range(60):
        assert searched(Search, crowd(seed)) == searched(Sleepless, crowd(seed)), seed


def test_a_search_leaves_the_state_as_it_was() -> None:
    for seed in range(60):
        state = crowd(seed)
        before = [(state.truck(i).position, state.standing(i).tolist()) for i in state.known()]
        find_witness(state, state.known(), state.witness, 30)

        assert [(state.truck(i).position, state.standing(i).tolist()) for i in state.known()] == before
        assert not any(state.watched.at(resource) for resource in range(len(state.exclusion)))
        assert not state.marks.any()
