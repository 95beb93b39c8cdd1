"""The columns of a lock state follow from demands and positions, whatever its history."""

from random import Random

import numpy as np

from pendula.fleet.traffic.grants import accept_route, extend, freeze
from pendula.fleet.traffic.lock_state import LockState, trucks_of
from tests.fleet.traffic.tiny_maps import TinyMap, tiny_map


def started(tiny: TinyMap, count: int | None = None) -> LockState:
    state = LockState(tiny.exclusion(), count or len(tiny.ways))
    for i, ways in enumerate(tiny.ways):
        accept_route(state, i, ways[0].demand())
    return state


def columns_by_hand(state: LockState) -> dict[str, list[int]]:
    """For every resource the trucks of each column, from plain sets."""
    result = {name: [0] * len(state.exclusion) for name in ("blockers", "wanted", "needers")}
    rows = [set(state.exclusion.row(r).tolist()) for r in range(len(state.exclusion))]
    for i in state.known():
        truck = state.truck(i)
        stand = truck.held if truck.frozen else set(truck.demand.stands(truck.position).tolist())
        need = set() if truck.frozen else set(truck.demand.needs(truck.position, truck.goal).tolist())
        for resource, row in enumerate(rows):
            result["blockers"][resource] |= bool(row & stand) << i
            result["wanted"][resource] |= (resource in need) << i
            result["needers"][resource] |= bool(row & need) << i
    return result


def columns(state: LockState) -> dict[str, list[int]]:
    kept = {"blockers": state.blockers, "wanted": state.wanted, "needers": state.needers}
    return {name: [column.at(r) for r in range(len(state.exclusion))] for name, column in kept.items()}


def test_columns_follow_from_positions_when_trucks_are_placed_forth_and_back() -> None:
    for seed in range(60):
        random = Random(seed)
        state = started(tiny_map(seed))
        for _ in range(6):
            i = random.randrange(len(state))
            state.place(i, random.randint(0, state.truck(i).demand.last))
            assert columns(state) == columns_by_hand(state)


def test_columns_follow_from_goals_when_a_truck_has_failed() -> None:
    for seed in range(60):
        random = Random(seed)
        state = started(tiny_map(seed))
        for _ in range(4):
            extend(state, random.randrange(len(state)))
        freeze(state, random.randrange(len(state)), [random.randrange(2)])
        for i in state.moving():
            extend(state, i)
        assert columns(state) == columns_by_hand(state)


def in_the_way_of_all(state: LockState) -> set[tuple[int, int, int]]:
    resources = np.arange(len(state.exclusion), dtype=np.int64)
    return {(i, r, j) for i in state.known() for r, j in state.in_the_way(i, resources)}


def test_a_resource_a_failed_truck_reaches_into_excludes_only_itself_until_it_is_held_whole() -> None:
    tried = 0
    for seed in range(60):
        state = started(tiny_map(seed))
        others = [i for i in state.known() if i]
        rows = {r: set(state.exclusion.row(r).tolist()) for r in range(len(state.exclusion))}
        taken = set().union(*(truck.held for truck in map(state.truck, state.known())))
        free = [r for r, row in rows.items() if len(row) > 1 and row.isdisjoint(taken) and r not in state.sharers]
        if not (free and others):
            continue
        tried += 1
        freeze(state, 0, [])
        before, columns_before = in_the_way_of_all(state), columns(state)["blockers"]
        freeze(state, 0, [], free[:1])
        reached, columns_after = in_the_way_of_all(state) - before, columns(state)["blockers"]
        state.hold(0, free[:1])
        whole = in_the_way_of_all(state) - before
        state.drop(0, free[:1])

        assert reached == {(i, free[0], 0) for i in others}
        assert [r for r in rows if columns_before[r] != columns_after[r]] == [free[0]]
        assert whole == {(i, r, 0) for i in others for r in rows[free[0]]}
        assert in_the_way_of_all(state) == before
    assert tried > 5


def test_more_trucks_than_a_word_has_bits_are_stored() -> None:
    tiny = tiny_map(0)
    state = LockState(tiny.exclusion(), 130)
    accept_route(state, 129, tiny.ways[0][0].demand())
    own = int(state.truck(129).demand.stands(0)[0])

    assert trucks_of(state.blockers.at(own)) == [129]


def test_a_copy_is_independent() -> None:
    state = started(tiny_map(4))
    before = columns(state), list(state.witness), sorted(state.truck(0).held)
    twin = state.copy()
    extend(twin, 0)

    assert (columns(state), list(state.witness), sorted(state.truck(0).held)) == before
    assert not np.array_equal(twin.owner, state.owner)


def test_a_dropped_resource_leaves_no_entry_of_the_trucks_that_shared_it() -> None:
    state = started(tiny_map(3))
    assert len(state.known()) > 1
    [free] = [np.flatnonzero(state.owner == -1)[:1].tolist()]
    for i in (0, 1):
        state.hold(i, free)

    state.drop(1, free)

    assert (int(state.owner[free[0]]), state.crowd) == (0, {})
