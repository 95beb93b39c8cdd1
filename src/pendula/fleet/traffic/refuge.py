"""Refuges (FLT-LIVE-2): positions where a truck blocks no other, and how far it can get now.

Standing sets are checked against what other trucks still need, routes against where the others stand at the ends of
their grants. Capacities count for routes alone, so that a refuge stays one.
"""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.traffic.columns import Words, as_mask
from pendula.fleet.traffic.lock_state import Ints, LockState

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
