"""Refuges (FLT-LIVE-2): positions where a truck blocks no other, and how far it can get now.

Standing sets are checked against what other trucks still need, routes against where the others stand at the ends of
their grants. Capacities count for routes alone, so that a refuge stays one.
"""

from bisect import bisect_right
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.traffic.lock_state import Ints, LockState, Move, Words, as_mask, trucks_of

Bools = NDArray[np.bool_]
# Positions checked together: most refuges are near, the others far.
_CHUNK = 16
_GROWTH = 8


def _standing_sets(state: LockState, i: int, first: int, last: int) -> Ints:
    """The standing sets of the positions from `first` to `last`, concatenated."""
    demand = state.truck(i).demand
    return demand.stand[demand.stand_from[first] : demand.stand_from[last + 1]]


def _by_position(state: LockState, i: int, first: int, last: int, words: Words) -> Words:
    """Join results for the standing sets of some positions by position."""
    if len(words) == last - first + 1:
        # Each is a single resource: no set is empty.
        return words
    begins = state.truck(i).demand.stand_at[first : last + 1]
    return np.bitwise_or.reduceat(words, begins - begins[0])


def refuges(state: LockState, i: int, first: int, last: int) -> Ints:
    """The positions from `first` to `last` at which a truck blocks no other, counted from `first`."""
    blocked = state.needers.besides(i, _standing_sets(state, i, first, last))
    free: Bools = _by_position(state, i, first, last, blocked) == 0
    return free.nonzero()[0]


def needed_by(state: LockState, i: int, first: int, last: int) -> int:
    """The other trucks that still need what a truck at one of these positions excludes, as bits."""
    return state.needers.over(_standing_sets(state, i, first, last)) & ~(1 << i)


def needed_by_words(state: LockState, i: int, first: int, last: int) -> list[Words]:
    """For each position the other trucks that still need what a truck there excludes, word by word."""
    words = state.needers.words_besides(i, _standing_sets(state, i, first, last))
    return [_by_position(state, i, first, last, word) for word in words]


def free_positions(words: list[Words]) -> Ints:
    """The positions at which a truck blocks no other, from the result of `needed_by_words`."""
    needed = words[0]
    for word in words[1:]:
        needed = needed | word
    free: Bools = needed == 0
    return free.nonzero()[0]


def needing(words: list[Words]) -> int:
    """The other trucks blocked at every position, from the result of `needed_by_words`, as bits: only the first of
    them, which is enough to watch. If there are none, those blocked at any position."""
    common = as_mask([int(np.bitwise_and.reduce(word)) for word in words])
    return common & -common or as_mask([int(np.bitwise_or.reduce(word)) for word in words])


def refuge(state: LockState, i: int, first: int | None = None, last: int | None = None) -> int | None:
    """The first position from `first` (the end of the grant) to `last` (how far the truck can get) at which it blocks
    no other; None if there is none, which is impossible while every rest node is a refuge."""
    truck = state.truck(i)
    low = truck.position if first is None else first
    end = truck.goal if last is None else last
    chunk = _CHUNK
    while low <= end:
        high = min(low + chunk - 1, end)
        free = refuges(state, i, low, high)
        if len(free):
            return low + int(free[0])
        low, chunk = high + 1, chunk * _GROWTH
    return None


def blocked_entries(state: LockState, i: int, need: Ints) -> Words:
    """Nonzero for each resource that another truck blocks."""
    blocked = state.blockers.besides(i, need)
    if state.sharers:
        # A section for several trucks is blocked by all inside once it is full, and by none before.
        room = state.exclusion.capacity[need]
        for entry in (room > 1).nonzero()[0].tolist():
            others = state.blockers.at(int(need[entry])) & ~(1 << i)
            if others.bit_count() < room[entry]:
                blocked[entry] = 0
    return blocked


def reach(state: LockState, i: int) -> int:
    """The furthest position with a free route; the end of the grant if the next unit is blocked."""
    return reach_and_blockers(state, i)[0]


def reach_and_blockers(state: LockState, i: int, upto: int | None = None) -> tuple[int, int]:
    """The furthest position, up to `upto` or the goal, with a free route, and the trucks that block it there, as
    bits."""
    truck = state.truck(i)
    demand = truck.demand
    low, end, chunk = truck.position, truck.goal if upto is None else upto, _CHUNK
    while low < end:
        high = min(low + chunk, end)
        blocked = blocked_entries(state, i, demand.needs(low, high)).nonzero()[0]
        if len(blocked):
            entry = demand.need_from[low + 1] + int(blocked[0])
            before = bisect_right(demand.need_from, entry) - 2
            return before, state.blockers.at(int(demand.need[entry])) & ~(1 << i)
        low, chunk = high, chunk * _GROWTH
    return end, 0


def blocked_by(state: LockState, i: int, upto: int) -> int:
    """The trucks that block the route from the end of the grant to a position, as bits (FLT-LIVE-3)."""
    return obstacles(state, i, upto)[1]


def obstacles(state: LockState, i: int, upto: int) -> tuple[Ints, int]:
    """The blocked resources from the end of the grant to a position, with the blocking trucks."""
    truck = state.truck(i)
    need = truck.demand.needs(truck.position, upto)
    blocked = need[blocked_entries(state, i, need).nonzero()[0]]
    return blocked, state.blockers.over(blocked) & ~(1 << i)


# The blocked-by graph of FLT-LIVE-3: which trucks block each truck up to its next refuge, and its cycles.

Graph = dict[int, int]


def blocked_by_graph(state: LockState) -> Graph:
    """For every movable truck the trucks that block it, as bits. A truck without a refuge is measured to the end of its
    route."""
    graph: Graph = {}
    for i in state.moving():
        end = refuge(state, i)
        graph[i] = blocked_by(state, i, state.truck(i).goal if end is None else end)
    return graph


def cycle_of(graph: Mapping[int, int], start: int | None = None) -> tuple[int, ...]:
    """A cycle of trucks, each blocked by the next, or an empty tuple. Small numbers are tried first, `start` before
    them."""
    if not _circles(graph):
        return ()
    done: set[int] = set()
    for root in [*([start] if start is not None else []), *sorted(graph)]:
        path: list[int] = []
        cycle = _walk(graph, root, path, done)
        if cycle:
            return cycle
    return ()


def _circles(graph: Mapping[int, int]) -> bool:
    """Whether there is any cycle: a truck blocked only by unblocked trucks is not in one."""
    left = dict(graph)
    while left:
        mask = sum(1 << i for i in left)
        blocked = {i: by for i, by in left.items() if by & mask}
        if len(blocked) == len(left):
            return True
        left = blocked
    return False


def _walk(graph: Mapping[int, int], root: int, path: list[int], done: set[int]) -> tuple[int, ...]:
    on_path: dict[int, int] = {}
    todo: list[list[int]] = []

    def enter(i: int) -> None:
        on_path[i] = len(path)
        path.append(i)
        todo.append(trucks_of(graph.get(i, 0))[::-1])

    if root in done:
        return ()
    enter(root)
    while path:
        if not todo[-1]:
            todo.pop()
            left = path.pop()
            del on_path[left]
            done.add(left)
            continue
        nearest = todo[-1].pop()
        if nearest in on_path:
            return tuple(path[on_path[nearest] :])
        if nearest not in done:
            enter(nearest)
    return ()


def left_behind(state: LockState) -> list[int]:
    """Trucks that do not get to rest if all go there one after the other, each in one go (banker's algorithm)."""
    start = {i: state.truck(i).position for i in state.moving()}
    left = sorted(start)
    while True:
        gone = [i for i in left if _gone(state, i)]
        left = [i for i in left if i not in gone]
        if not gone or not left:
            break
    for i, position in start.items():
        state.place(i, position)
    return left


def _gone(state: LockState, i: int) -> bool:
    goal = state.truck(i).goal
    free = reach(state, i) == goal
    if free:
        state.place(i, goal)
    return free


def blocked_through(graph: Mapping[int, int], i: int) -> set[int]:
    """All trucks that block a truck, directly or indirectly."""
    blockers: set[int] = set()
    todo = [i]
    while todo:
        for j in trucks_of(graph.get(todo.pop(), 0)):
            if j not in blockers:
                blockers.add(j)
                todo.append(j)
    return blockers


# The stored schedule that brings all trucks to rest (FLT-LIVE-13), and whether it survives a grant.
# A witness is an ordered list of moves (truck, standing position). Each avoids where all others stand at that point,
# and after the last all trucks are at rest.


def replays_after(state: LockState, i: int, to: int) -> bool:
    """Whether the stored witness is still valid when the grant of truck i ends at `to`, its next position.

    Only moves before the truck's own next one can break, and only by what its new standing set excludes and the old one
    did not.
    """
    fresh = state.fresh(i, to)
    needing = state.wanted.over(fresh) & ~(1 << i)
    if not needing:
        return True
    state.marks[fresh] = True
    hit = _hits_a_move(state, i, needing)
    state.marks[fresh] = False
    return not hit


def _hits_a_move(state: LockState, i: int, needing: int) -> bool:
    """Whether one of the trucks that need something marked needs it in a move before truck i's next."""
    furthest: dict[int, int] = {}
    for j, position in state.witness:
        if j == i:
            break
        if needing >> j & 1:
            furthest[j] = position
    return any(_needs_marked(state, j, position) for j, position in furthest.items())


def _needs_marked(state: LockState, j: int, upto: int) -> bool:
    other = state.truck(j)
    return bool(state.marks[other.demand.needs(other.position, upto)].any())


def first_to_go(state: LockState) -> int | None:
    """The truck with the first move; trucks at their goals have none left."""
    return next((i for i, position in state.witness if position > state.truck(i).position), None)


def trimmed(moves: list[Move], i: int, position: int) -> list[Move]:
    """The remaining moves when the grant of a truck ends at a position."""
    return [move for move in moves if move[0] != i or move[1] > position]


def going_on(state: LockState, moves: list[Move]) -> list[Move] | None:
    """The moves of an older witness as one from the ends of all grants, each up to the goal of its truck; None if they
    do not bring all trucks there. A truck without a move goes last."""
    start = {i: state.truck(i).position for i in state.known()}
    last = [(i, state.truck(i).goal) for i in state.moving()]
    ahead = [(i, min(to, state.truck(i).goal)) for i, to in [*moves, *last] if not state.truck(i).frozen]
    made = [move for move in ahead if move[1] > state.truck(move[0]).position and _goes(state, *move)]
    there = all(state.truck(i).position == goal for i, goal in last)
    for i, position in start.items():
        if position != state.truck(i).position:
            state.place(i, position)
    return made if there else None


def _goes(state: LockState, i: int, to: int) -> bool:
    """Move a truck if its route avoids where the others stand."""
    free = reach_and_blockers(state, i, to)[0] == to
    if free:
        state.place(i, to)
    return free
