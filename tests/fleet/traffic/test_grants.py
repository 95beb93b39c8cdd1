"""Units, routes and releases on maps small enough to check by hand."""

import pytest

from pendula.fleet.traffic.grants import (
    Accepted,
    Blocked,
    Effort,
    Granted,
    RouteRefused,
    Rule,
    Wait,
    accept_route,
    extend,
    release,
    release_passed,
    take_beside,
)
from pendula.fleet.traffic.lock_state import Demand, Exclusion, LockState
from pendula.fleet.traffic.refuge import blocked_by_graph, blocked_through, cycle_of, reach, refuge


def way(*cells: int) -> Demand:
    return Demand.of_rows([[cell] for cell in cells], [[cell] for cell in cells])


def head_on() -> LockState:
    """Cells 0, 1, 2 in a row; truck 0 rests on 3 and drives them upwards, truck 1 rests on 4 and drives them down."""
    state = LockState(Exclusion.of_pairs(5, []), 2)
    accept_route(state, 0, way(3, 0, 1, 2, 3))
    accept_route(state, 1, way(4, 2, 1, 0, 4))
    return state


@pytest.mark.req("FLT-DCL-9", "FLT-DCL-14", "FLT-LIVE-4")
def test_a_unit_after_which_two_would_stand_nose_to_nose_is_refused_with_the_cycle() -> None:
    state = head_on()
    extend(state, 0)

    assert extend(state, 1) == Blocked(Wait.SAFE_STATE, 2, (0,), (0, 1))
    assert sorted(state.truck(1).held) == [4]


def test_without_the_rule_both_drive_in_and_the_graph_shows_the_cycle() -> None:
    state = head_on()
    extend(state, 0, rule=Rule.OFF)
    extend(state, 1, rule=Rule.OFF)

    assert cycle_of(blocked_by_graph(state)) == (0, 1)


@pytest.mark.req("FLT-RES-12", "FLT-DCL-14")
def test_a_held_unit_is_refused_with_its_holder() -> None:
    state = head_on()
    for _ in range(3):
        extend(state, 0)

    assert extend(state, 1) == Blocked(Wait.HELD, 2, (0,))


@pytest.mark.req("FLT-OSC-3")
def test_a_refused_unit_is_not_granted_without_a_search_while_the_witness_does_not_allow_it() -> None:
    state = head_on()
    extend(state, 0)
    extend(state, 1)
    effort = Effort(left=0)

    assert extend(state, 1, effort=effort) == Blocked(Wait.POSTPONED)
    assert effort == Effort(left=0)


@pytest.mark.req("FLT-LIVE-13")
def test_a_new_witness_grants_a_refused_unit_though_the_trucks_of_its_cycle_stand() -> None:
    state = LockState(Exclusion.of_pairs(9, []), 4)
    for truck, cells in enumerate(((5, 1, 3, 4, 5), (6, 3, 0, 6), (7, 0, 3, 2, 1, 7), (8, 3, 4, 3, 2, 8))):
        accept_route(state, truck, way(*cells))

    def grant(i: int) -> Granted | Blocked:
        answer = extend(state, i)
        release_passed(state, i, state.truck(i).position)
        return answer

    for i in (3, 2, 3, 0):
        grant(i)
    refused = grant(2)
    # Truck 3 goes home; trucks 0 and 2 do not move.
    for _ in range(3):
        grant(3)

    assert refused == Blocked(Wait.SAFE_STATE, 3, (0,), (0, 2))
    assert state.witness[0] == (2, 3)
    assert extend(state, 2, effort=Effort(left=0)) == Granted(2)


@pytest.mark.req("FLT-LIVE-13")
def test_a_route_that_starts_at_rest_is_always_accepted() -> None:
    state = head_on()
    extend(state, 0)

    assert accept_route(state, 1, way(4, 2, 1, 4)) == Accepted()


@pytest.mark.req("FLT-LIVE-4")
def test_a_refused_route_leaves_the_old_one_in_force() -> None:
    state = LockState(Exclusion.of_pairs(6, []), 2)
    accept_route(state, 0, way(3, 0, 1, 2, 3))
    accept_route(state, 1, way(4, 2, 5, 4))
    extend(state, 0)
    extend(state, 1)
    old, witness = state.truck(1), list(state.witness)

    assert accept_route(state, 1, way(4, 2, 1, 0, 4), 1) == RouteRefused((0, 1))
    assert state.truck(1) is old
    assert state.witness == witness


@pytest.mark.req("FLT-LIVE-7")
def test_a_route_past_the_rest_node_of_another_truck_is_refused() -> None:
    state = head_on()

    assert accept_route(state, 0, way(3, 0, 4, 3)) == RouteRefused((0, 1))


def test_a_truck_is_not_admitted_where_another_stands() -> None:
    state = LockState(Exclusion.of_pairs(3, [(0, 1)]), 2)
    accept_route(state, 0, way(0))

    assert accept_route(state, 1, way(1)) == RouteRefused((1, 0))
    assert state.known() == [0]


def test_a_way_must_begin_on_what_its_truck_holds() -> None:
    state = head_on()

    with pytest.raises(ValueError, match="does not hold"):
        accept_route(state, 0, way(1, 3))


@pytest.mark.req("FLT-RES-13", "FLT-TEST-48")
def test_a_resource_needed_again_on_the_granted_way_is_not_released() -> None:
    state = LockState(Exclusion.of_pairs(4, []), 1)
    accept_route(state, 0, way(3, 0, 1, 0, 2, 3))
    for _ in range(4):
        extend(state, 0)

    assert release_passed(state, 0, 2) == [3]
    assert release_passed(state, 0, 4) == [0, 1]


@pytest.mark.req("FLT-RES-13")
def test_the_standing_set_of_a_truck_is_never_released() -> None:
    state = head_on()
    extend(state, 0)
    release(state, 0, [0, 3])

    assert sorted(state.truck(0).held) == [0]


@pytest.mark.req("FLT-LIVE-3", "FLT-TEST-45")
def test_a_section_with_room_for_two_lets_two_in_and_names_both_to_the_third() -> None:
    state = LockState(Exclusion.of_pairs(7, [], {6: 2}), 3)
    for i in range(3):
        accept_route(state, i, Demand.of_rows([[3 + i], [i, 6], [3 + i]], [[3 + i], [i, 6], [3 + i]]))

    assert [extend(state, i) for i in range(3)] == [Granted(1), Granted(1), Blocked(Wait.HELD, 6, (0, 1))]


@pytest.mark.req("FLT-LIVE-2")
def test_the_refuge_is_the_first_position_that_blocks_no_other_and_reach_ends_before_an_obstacle() -> None:
    state = LockState(Exclusion.of_pairs(8, []), 2)
    accept_route(state, 0, way(6, 0, 1, 2, 3, 6))
    accept_route(state, 1, way(7, 0, 1, 3, 7))
    state.place(1, 3)
    state.place(0, 1)

    assert refuge(state, 0) == 1
    assert reach(state, 0) == 3
    state.place(1, 0)
    assert refuge(state, 0) == 3


@pytest.mark.req("FLT-RES-10")
def test_a_truck_is_blocked_by_others_directly_and_through_others() -> None:
    graph = {0: 0b010, 1: 0b100, 2: 0}

    assert blocked_through(graph, 0) == {1, 2}
    assert cycle_of(graph) == ()


@pytest.mark.req("FLT-LIVE-13")
def test_a_convoy_on_a_ring_gets_home_although_no_truck_is_ever_out_of_the_way() -> None:
    cells = 12
    state = LockState(Exclusion.of_pairs(cells + 4, []), 4)
    for i in range(4):
        rounds = [(3 * i + k) % cells for k in range(2 * cells)]
        accept_route(state, i, way(cells + i, *rounds, cells + i))
    for _ in range(400):
        for i in range(4):
            extend(state, i)
            release_passed(state, i, state.truck(i).position)

    assert [state.truck(i).position for i in range(4)] == [2 * cells + 1] * 4


@pytest.mark.req("FLT-LIVE-12", "FLT-PERF-1")
def test_a_tick_without_search_budget_grants_what_the_witness_allows_and_postpones_the_rest() -> None:
    state = head_on()
    spent = Effort(left=0)

    assert extend(state, 0, effort=spent) == Granted(1)
    assert extend(state, 1, effort=spent) == Blocked(Wait.POSTPONED)


@pytest.mark.req("FLT-LIVE-13")
@pytest.mark.parametrize(
    ("rule", "granted"), [(Rule.WITNESS, True), (Rule.ACYCLIC, True), (Rule.BANKER, False)], ids=str
)
def test_the_bankers_algorithm_refuses_what_a_step_aside_would_solve(rule: Rule, granted: bool) -> None:
    """Truck 1 can step aside to cell 2, but neither gets all the way to rest before the other has moved."""
    state = LockState(Exclusion.of_pairs(5, []), 2)
    accept_route(state, 0, way(3, 0, 1, 3))
    accept_route(state, 1, way(4, 1, 2, 0, 4))
    extend(state, 0, rule=rule)

    assert isinstance(extend(state, 1, rule=rule), Granted) is granted
    assert [state.truck(i).position for i in (0, 1)] == [1, int(granted)]


@pytest.mark.req("FLT-DCL-6")
def test_a_unit_is_granted_whole_or_not_at_all() -> None:
    state = LockState(Exclusion.of_pairs(6, []), 2)
    accept_route(state, 0, Demand.of_rows([[3], [0, 1, 2], [3]], [[3], [2], [3]]))
    accept_route(state, 1, way(4, 1, 4))
    extend(state, 1)

    assert extend(state, 0) == Blocked(Wait.HELD, 1, (1,))
    assert sorted(state.truck(0).held) == [3]


@pytest.mark.req("FLT-LIVE-13")
@pytest.mark.parametrize(
    ("rule", "expected"), [(Rule.ACYCLIC, RouteRefused((0, 1))), (Rule.WITNESS, Accepted())], ids=["acyclic", "witness"]
)
def test_a_route_through_the_refuge_of_another_needs_an_order_of_moves(
    rule: Rule, expected: Accepted | RouteRefused
) -> None:
    """Truck 0 waits for truck 1 in bay 3. Truck 2 needs to drive through it, and blocks no other at its start."""
    state = LockState(Exclusion.of_pairs(7, []), 3)
    accept_route(state, 0, way(4, 0, 3, 1, 2, 4), rule=rule)
    accept_route(state, 1, way(5, 2, 1, 0, 5), rule=rule)
    assert [extend(state, i, rule=rule) for i in (0, 1)] == [Granted(1), Granted(1)]

    assert accept_route(state, 2, way(6, 3, 6), rule=rule) == expected


@pytest.mark.req("FLT-DCL-5", "FLT-LIVE-13")
def test_a_resource_beside_the_way_is_taken_only_if_the_stored_witness_still_holds() -> None:
    state = head_on()
    extend(state, 0)
    witness = list(state.witness)
    rows = [[2, 4], [2], [1], [0], [4]]
    needed_by_another = take_beside(state, 1, Demand.of_rows(rows, rows), 2)
    after = list(state.witness), sorted(state.truck(1).held), state.truck(1).demand.last
    held_by_another = take_beside(state, 1, Demand.of_rows([[0, 4], [4]], [[0, 4], [4]]), 0)

    assert (needed_by_another, held_by_another) == (False, False)
    assert after == (witness, [4], 4)
    assert extend(state, 0) == Granted(2)


@pytest.mark.req("FLT-DCL-5", "FLT-LIVE-13")
def test_a_resource_beside_the_way_that_no_other_needs_is_kept_until_it_is_released() -> None:
    state = LockState(Exclusion.of_pairs(6, []), 2)
    accept_route(state, 0, way(3, 0, 1, 2, 3))
    accept_route(state, 1, way(4, 2, 1, 0, 4))
    extend(state, 0)
    need = [[0, 5], [1], [2], [3]]
    taken = take_beside(state, 0, Demand.of_rows(need, [[0, 5], [1], [2], [3]]), 5)

    assert taken
    assert 5 in state.truck(0).held
    assert state.truck(0).position == 0
    assert [extend(state, 0) for _ in range(3)] == [Granted(1), Granted(2), Granted(3)]
    assert {i for i, _ in state.witness} <= {0, 1}
