"""Where a truck is in nobody's way: the refuge of FLT-LIVE-2, and how far it can get now.

Standing sets are judged against what the other trucks still need, ways against where the others stand at the end of
their grants; capacities count for ways alone, so that a refuge stays one whoever comes.
"""

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.traffic.lock_state import LockState, Words, mask_of

Bools = NDArray[np.bool_]

# Positions looked at in one go: most refuges are near, and the others are far.
_CHUNK = 16
_GROWTH = 8


def needed_by_others(state: LockState, i: int, first: int, last: int) -> Words:
    """For each position from `first` to `last` the others that still need what a truck standing there excludes."""
    demand = state.truck(i).demand
    low, high = demand.stand_at[first], demand.stand_at[last + 1]
    rows = state.needers[demand.stand[low:high]] & state.others[i]
    return np.bitwise_or.reduceat(rows, demand.stand_at[first : last + 1] - low, axis=0)


def refuge(state: LockState, i: int, first: int | None = None, last: int | None = None) -> int | None:
    """The first position from `first` (the end of the grant) to `last` (how far the truck can get at all) at which it
    is in nobody's way; `None` where there is none, which cannot be while every rest node is one."""
    one = state.truck(i)
    low = one.position if first is None else first
    end = one.goal if last is None else last
    chunk = _CHUNK
    while low <= end:
        high = min(low + chunk - 1, end)
        free = np.flatnonzero(np.bitwise_or.reduce(needed_by_others(state, i, low, high), axis=1) == 0)
        if len(free):
            return low + int(free[0])
        low, chunk = high + 1, chunk * _GROWTH
    return None


def blocked_entries(state: LockState, i: int, upto: int, after: int | None = None) -> Words:
    """For each entry of the way from `after` (the end of the grant) to `upto` the trucks that stand in its way."""
    one = state.truck(i)
    need = one.demand.needs(one.position if after is None else after, upto)
    found: Words = state.blockers[need] & state.others[i]
    if state.sharers:
        # A section with room for several is blocked by all inside once it is full, and by nobody before.
        room = state.exclusion.capacity[need]
        found[(room > 1) & (np.bitwise_count(found).sum(axis=1) < room)] = 0
    return found


def reach(state: LockState, i: int) -> int:
    """The furthest position whose way is free of where the others stand; the end of the grant if the next is not."""
    return reach_and_blockers(state, i)[0]


def reach_and_blockers(state: LockState, i: int, upto: int | None = None) -> tuple[int, int]:
    """The furthest position, up to `upto` or as far as the truck can get at all, whose way is free, and the trucks that
    stand in the way there, as bits."""
    one = state.truck(i)
    low, end, chunk = one.position, one.goal if upto is None else upto, _CHUNK
    while low < end:
        high = min(low + chunk, end)
        entries = blocked_entries(state, i, high, low)
        blocked = np.flatnonzero(np.bitwise_or.reduce(entries, axis=1))
        if len(blocked):
            entry = int(one.demand.need_at[low + 1]) + int(blocked[0])
            before = int(np.searchsorted(one.demand.need_at, entry, side="right")) - 2
            return before, mask_of(entries[int(blocked[0])])
        low, chunk = high, chunk * _GROWTH
    return end, 0


def blocked_by(state: LockState, i: int, upto: int) -> int:
    """The trucks that stand in the way from the end of the grant to a position, as bits (FLT-LIVE-3)."""
    found = blocked_entries(state, i, upto)
    return mask_of(np.bitwise_or.reduce(found, axis=0)) if len(found) else 0
