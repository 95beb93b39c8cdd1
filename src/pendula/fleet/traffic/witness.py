"""Schedules that bring everybody to rest (FLT-LIVE-13): whether the stored one survives a grant, and how to find one.

A witness is an ordered list of moves (truck, standing position). Each is free of where all others stand at that point,
and the last leaves everybody at rest. The search moves trucks on the columns of the state and takes every move back.
What it may try is counted, never timed.
"""

from dataclasses import dataclass, field

import numpy as np

from pendula.fleet.traffic.blocked_by import cycle_of
from pendula.fleet.traffic.lock_state import LockState, Move, mask_of, trucks_of
from pendula.fleet.traffic.refuge import blocked_entries, needed_by_others, reach, refuge


@dataclass(slots=True)
class Search:
    """One search: how many branches it may still try, the moves so far, and who blocked whom where it first got
    stuck."""

    nodes: int
    moves: list[Move] = field(default_factory=list)
    stuck: list[int] = field(default_factory=list)
    cycle: tuple[int, ...] = ()


def replays_after(state: LockState, i: int, to: int) -> bool:
    """Whether the stored witness brings everybody to rest once the grant of truck i ends at `to`.

    Only moves before the truck's own next one can suffer, and only from what its new standing set excludes and the old
    one did not: afterwards everything is as it was."""
    one = state.truck(i)
    before = state.exclusion.around(one.demand.stands(one.position))
    after = state.exclusion.around(one.demand.stands(to))
    state.marks[after] = True
    state.marks[before] = False
    fresh = after[state.marks[after]]
    hit = bool(len(fresh)) and _hits_a_move(state, i, mask_of(np.bitwise_or.reduce(state.wanted[fresh], axis=0)))
    state.marks[after] = False
    return not hit


def _hits_a_move(state: LockState, i: int, needing: int) -> bool:
    """Whether one of the trucks that need something marked needs it in a move before truck i's next."""
    needing &= ~(1 << i)
    furthest: dict[int, int] = {}
    for j, position in state.witness if needing else ():
        if j == i:
            break
        if needing >> j & 1:
            furthest[j] = position
    return any(_needs_marked(state, j, position) for j, position in furthest.items())


def _needs_marked(state: LockState, j: int, upto: int) -> bool:
    other = state.truck(j)
    return bool(state.marks[other.demand.needs(other.position, upto)].any())


def trimmed(moves: list[Move], i: int, position: int) -> list[Move]:
    """The moves that are left when the grant of a truck ends at a position."""
    return [move for move in moves if move[0] != i or move[1] > position]


def find_witness(state: LockState, nodes: int) -> tuple[list[Move] | None, Search]:
    """A schedule from the ends of all grants, or `None` where none was found within so many branches."""
    search = Search(nodes)
    start = _positions(state)
    todo = [i for i in state.moving() if state.truck(i).position < state.truck(i).goal]
    found = _solved(state, search, todo)
    _put_back(state, start)
    return (search.moves if found else None), search


def _positions(state: LockState) -> list[int]:
    return [-1 if one is None else one.position for one in state.trucks]


def _put_back(state: LockState, positions: list[int]) -> None:
    for i, position in enumerate(positions):
        one = state.trucks[i]
        if one is not None and one.position != position:
            state.place(i, position)


def _go(state: LockState, search: Search, i: int, position: int) -> None:
    state.place(i, position)
    search.moves.append((i, position))


def _solved(state: LockState, search: Search, todo: list[int]) -> bool:
    stuck = _settle(state, search, todo)
    if not stuck:
        # Everybody stands where nobody needs anything: one after the other goes to rest.
        for i in state.moving():
            if state.truck(i).position < state.truck(i).goal:
                _go(state, search, i, state.truck(i).goal)
        return True
    if not search.stuck:
        search.stuck, search.cycle = stuck, _cycle(state, stuck)
    for k, position in _branches(state, stuck):
        search.nodes -= 1
        if search.nodes < 0:
            return False
        start, length = _positions(state), len(search.moves)
        _go(state, search, k, position)
        if _solved(state, search, todo):
            return True
        _put_back(state, start)
        del search.moves[length:]
    return False


def _settle(state: LockState, search: Search, todo: list[int]) -> list[int]:
    """Moves that cost nothing, until there are none: to rest, to a refuge, to where a truck is less in the way. Returns
    the trucks that are left in somebody's way."""
    waiting = todo
    settled: list[int] = []
    while waiting:
        left = [i for i in waiting if not _to_refuge(state, search, i)]
        settled += [i for i in waiting if i not in left]
        stopped = len(left) == len(waiting)
        if stopped and not _any_onward(state, search, settled) and not _less_in_the_way(state, search, left):
            return left
        waiting = left
    return []


def _to_refuge(state: LockState, search: Search, i: int) -> bool:
    one = state.truck(i)
    far = reach(state, i)
    target = far if far == one.goal else refuge(state, i, last=far)
    if target is None:
        return False
    if target > one.position:
        _go(state, search, i, target)
    return True


def _any_onward(state: LockState, search: Search, settled: list[int]) -> bool:
    gone = [i for i in settled if _onward(state, search, i)]
    return bool(gone)


def _onward(state: LockState, search: Search, i: int) -> bool:
    """From one refuge to the furthest: what the truck no longer needs may be a refuge of others."""
    one = state.truck(i)
    far = reach(state, i)
    if far == one.position:
        return False
    free = np.flatnonzero(~needed_by_others(state, i, one.position + 1, far).any(axis=1))
    if not len(free):
        return False
    _go(state, search, i, one.position + 1 + int(free[-1]))
    return True


def _less_in_the_way(state: LockState, search: Search, left: list[int]) -> bool:
    for i in left:
        target = _dominating(state, i)
        if target is not None:
            _go(state, search, i, target)
            return True
    return False


def _dominating(state: LockState, i: int) -> int | None:
    """The furthest position that blocks only what *every* position passed blocks, the present one included. Equal to
    the last one passed is not enough: between them may lie a place where the truck was in nobody's way."""
    one = state.truck(i)
    common = _blocked_needs(state, i, one.position)
    found = None
    for position in range(one.position + 1, reach(state, i) + 1):
        if not common:
            break
        here = _blocked_needs(state, i, position)
        if here <= common:
            found = position
        common &= here
    return found


def _blocked_needs(state: LockState, i: int, position: int) -> set[int]:
    """What others still need and a truck standing at a position excludes."""
    around = state.exclusion.around(state.truck(i).demand.stands(position))
    needed = (state.wanted[around] & state.others[i]).any(axis=1)
    return set(around[needed].tolist())


def _branches(state: LockState, stuck: list[int]) -> list[Move]:
    """For every stuck truck and each truck in its way: the nearest and the furthest position that lets it go on."""
    found: dict[Move, None] = {}
    for j in stuck:
        blocked, blockers = _first_obstacle(state, j)
        around = state.exclusion.around(blocked)
        state.marks[around] = True
        for k in blockers:
            if not state.truck(k).frozen:
                found |= dict.fromkeys(_clearing(state, k))
        state.marks[around] = False
    return list(found)


def _first_obstacle(state: LockState, j: int) -> tuple[np.ndarray, list[int]]:
    """What a truck cannot take on its next move beyond its reach, and who stands in the way."""
    one = state.truck(j)
    far = reach(state, j)
    entries = blocked_entries(state, j, far + 1)
    blocked = entries.any(axis=1)
    needs = one.demand.needs(one.position, far + 1)[blocked]
    return needs, trucks_of(mask_of(np.bitwise_or.reduce(entries, axis=0)))


def _clearing(state: LockState, k: int) -> list[Move]:
    one = state.truck(k)
    first, far = one.position + 1, reach(state, k)
    if far < first:
        return []
    low = one.demand.stand_at[first]
    rows = state.marks[one.demand.stand[low : one.demand.stand_at[far + 1]]]
    clear = np.flatnonzero(~np.logical_or.reduceat(rows, one.demand.stand_at[first : far + 1] - low))
    return [(k, first + int(clear[0])), (k, first + int(clear[-1]))] if len(clear) else []


def _cycle(state: LockState, stuck: list[int]) -> tuple[int, ...]:
    graph = {j: sum(1 << k for k in _first_obstacle(state, j)[1]) for j in stuck}
    return cycle_of(graph)
