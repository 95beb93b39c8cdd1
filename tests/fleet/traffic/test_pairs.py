"""Two trucks that block each other for good are detected without a search, and no others."""

from collections.abc import Callable
from itertools import combinations, product

import pytest

from pendula.fleet.traffic.grants import Rule, accept_route
from pendula.fleet.traffic.lock_state import Demand, Exclusion, LockState
from pendula.fleet.traffic.search import Search, find_witness, positions_of, put_back, stuck_together
from tests.fleet.traffic.oracle import Judge
from tests.fleet.traffic.test_search import crowd, under_way
from tests.fleet.traffic.tiny_maps import tiny_map


class Patient(Search):
    """Refuses nothing early."""

    def hopeless(self) -> tuple[int, ...]:
        return ()


def differences(seed: int) -> list[object]:
    """Positions of two trucks on a tiny map at which brute force disagrees."""
    tiny = tiny_map(seed)
    state, judge = LockState(tiny.exclusion(), len(tiny.ways)), Judge(tiny.pairs, tiny.capacity)
    ways = [way[0] for way in tiny.ways]
    for i, way in enumerate(ways):
        accept_route(state, i, way.demand(), rule=Rule.OFF)
    found: list[object] = []
    for i, j in combinations(range(len(ways)), 2):
        for at_i, at_j in product(range(len(ways[i].need)), range(len(ways[j].need))):
            safe = judge.can_all_rest([ways[i], ways[j]], [at_i, at_j])
            if stuck_together(state, i, at_i, j, at_j) == safe:
                found.append((i, at_i, j, at_j))
    return found


@pytest.mark.req("FLT-LIVE-13")
def test_two_trucks_are_stuck_where_brute_force_finds_no_schedule_and_only_there() -> None:
    assert [seed for seed in range(80) if differences(seed)] == []


@pytest.mark.req("FLT-LIVE-13")
@pytest.mark.parametrize(("state_of", "seeds"), [(under_way, 300), (crowd, 20)])
def test_an_early_refusal_agrees_with_the_whole_search(state_of: Callable[[int], LockState], seeds: int) -> None:
    early = 0
    for seed in range(seeds):
        state = state_of(seed)
        for i in state.known():
            found, search = find_witness(state, [i], [], 30)
            early += bool(search.hopeless_pair)
            assert (found is not None) == accepted_in_the_end(state, i), (seed, i)

    assert early > 0


def accepted_in_the_end(state: LockState, i: int) -> bool:
    """The result of a search without early refusals."""
    before = positions_of(state)
    search = Patient(state, 30, waiting={i: 0})
    found = search.solved([i])
    search.wake(list(search.asleep))
    put_back(state, before)
    return found


def met_on_a_lane(room: int | None, length: int = 60) -> LockState:
    """Two trucks from both ends of a lane, which both drive the whole of it; one of them can
    move aside at one cell at most."""
    state = LockState(Exclusion.of_pairs(length + 3, []), 2)
    lane = list(range(length))
    aside = [[cell] if cell != room else [length + 2] for cell in lane]
    for i, rows in enumerate((aside, [[cell] for cell in reversed(lane)])):
        accept_route(state, i, Demand.of_rows([*rows, [length + i]], [*rows, [length + i]]), rule=Rule.OFF)
    return state


@pytest.mark.req("FLT-LIVE-13")
@pytest.mark.parametrize(
    ("room", "begins", "expected"),
    [(None, 20, True), (22, 20, False), (18, 20, True), (None, 0, False)],
    ids=["no place to pass", "a place ahead", "a place behind", "farther than it looks"],
)
def test_two_trucks_that_met_on_a_lane_are_stuck_if_neither_can_move_aside(
    room: int | None, begins: int, expected: bool
) -> None:
    state = met_on_a_lane(room)

    assert stuck_together(state, 0, begins, 1, begins) is expected


@pytest.mark.req("FLT-LIVE-13")
def test_a_truck_that_waits_until_another_is_far_ahead_is_not_stuck() -> None:
    state = LockState(Exclusion.of_pairs(64, []), 2)
    # The first keeps cell 60 along a way that is longer than the checked part.
    kept = [*([cell, 60] for cell in range(50)), [61]]
    accept_route(state, 0, Demand.of_rows(kept, kept), rule=Rule.OFF)
    accept_route(state, 1, Demand.of_rows([[62], [60], [63]], [[62], [60], [63]]), rule=Rule.OFF)

    assert not stuck_together(state, 0, 0, 1, 0)
