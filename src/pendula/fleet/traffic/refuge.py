"""Where a truck is in nobody's way: the refuge of FLT-LIVE-2, and how far it can get now.

Standing sets are judged against what the other trucks still need, ways against where the others stand at the end of
their grants; capacities count for ways alone, so that a refuge stays one whoever comes.
"""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.traffic.columns import Words, as_mask
from pendula.fleet.traffic.lock_state import Ints, LockState

Bools = NDArray[np.bool_]

# Positions looked at in one go: most refuges are near, and the others are far.
_CHUNK = 16
_GROWTH = 8


def _standing_sets(state: LockState, i: int, first: int, last: int) -> Ints:
    """The standing sets of the positions from `first` to `last`, one behind the other."""
    demand = state.truck(i).demand
    return demand.stand[demand.stand_from[first] : demand.stand_from[last + 1]]


def _by_position(state: LockState, i: int, first: int, last: int, found: Words) -> Words:
    """What was found for the standing sets of some positions, joined for each position."""
    if len(found) == last - first + 1:
        # Each of them is a single resource: no set is empty.
        return found
    begins = state.truck(i).demand.stand_at[first : last + 1]
    return np.bitwise_or.reduceat(found, begins - begins[0])


def refuges(state: LockState, i: int, first: int, last: int) -> Ints:
    """The positions from `first` to `last` at which a truck is in nobody's way, counted from `first`."""
    found = state.needers.besides(i, _standing_sets(state, i, first, last))
    free: Bools = _by_position(state, i, first, last, found) == 0
    return free.nonzero()[0]


def needed_by(state: LockState, i: int, first: int, last: int) -> int:
    """The others that still need what a truck standing at one of these positions excludes, as bits."""
    return state.needers.over(_standing_sets(state, i, first, last)) & ~(1 << i)


def needed_by_words(state: LockState, i: int, first: int, last: int) -> list[Words]:
    """For each position the others that still need what a truck standing there excludes, word by word."""
    words = state.needers.words_besides(i, _standing_sets(state, i, first, last))
    return [_by_position(state, i, first, last, word) for word in words]


def free_positions(words: list[Words]) -> Ints:
    """The positions at which a truck is in nobody's way, by what `needed_by_words` says of them."""
    needed = words[0]
    for word in words[1:]:
        needed = needed | word
    free: Bools = needed == 0
    return free.nonzero()[0]


def needing(words: list[Words]) -> int:
    """The others that need what a truck excludes at every position, by what `needed_by_words` says; where there are
    none, those who do at any of them; as bits. The first of the former alone: it is enough to watch."""
    common = as_mask([int(np.bitwise_and.reduce(word)) for word in words])
    return common & -common or as_mask([int(np.bitwise_or.reduce(word)) for word in words])


def refuge(state: LockState, i: int, first: int | None = None, last: int | None = None) -> int | None:
    """The first position from `first` (the end of the grant) to `last` (how far the truck can get at all) at which it
    is in nobody's way; `None` where there is none, which cannot be while every rest node is one."""
    one = state.truck(i)
    low = one.position if first is None else first
    end = one.goal if last is None else last
    chunk = _CHUNK
    while low <= end:
        high = min(low + chunk - 1, end)
        free = refuges(state, i, low, high)
        if len(free):
            return low + int(free[0])
        low, chunk = high + 1, chunk * _GROWTH
    return None


def blocked_entries(state: LockState, i: int, need: Ints) -> Words:
    """For each resource something other than zero where another truck stands in its way."""
    found = state.blockers.besides(i, need)
    if state.sharers:
        # A section with room for several is blocked by all inside once it is full, and by nobody before.
        room = state.exclusion.capacity[need]
        for entry in (room > 1).nonzero()[0].tolist():
            others = state.blockers.at(int(need[entry])) & ~(1 << i)
            if others.bit_count() < room[entry]:
                found[entry] = 0
    return found


def reach(state: LockState, i: int) -> int:
    """The furthest position whose way is free of where the others stand; the end of the grant if the next is not."""
    return reach_and_blockers(state, i)[0]


def reach_and_blockers(state: LockState, i: int, upto: int | None = None) -> tuple[int, int]:
    """The furthest position, up to `upto` or as far as the truck can get at all, whose way is free, and the trucks that
    stand in the way there, as bits."""
    one = state.truck(i)
    demand = one.demand
    low, end, chunk = one.position, one.goal if upto is None else upto, _CHUNK
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
    """The trucks that stand in the way from the end of the grant to a position, as bits (FLT-LIVE-3)."""
    return obstacles(state, i, upto)[1]


def obstacles(state: LockState, i: int, upto: int) -> tuple[Ints, int]:
    """What a truck cannot take on its way from the end of the grant to a position, and who stands in the way."""
    one = state.truck(i)
    need = one.demand.needs(one.position, upto)
    blocked = need[blocked_entries(state, i, need).nonzero()[0]]
    return blocked, state.blockers.over(blocked) & ~(1 << i)
