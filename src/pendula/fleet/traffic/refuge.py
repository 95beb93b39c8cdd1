"""Where a truck is in nobody's way: the refuge of FLT-LIVE-2, and how far it can get now.

Standing sets are judged against what the other trucks still need, ways against where the others stand at the end of
their grants; capacities count for ways alone, so that a refuge stays one whoever comes.
"""

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.traffic.lock_state import LockState, Words, mask_of

Bools = NDArray[np.bool_]

# Positions looked at in one go: most refuges are near.
_CHUNK = 24


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
    while low <= end:
        high = min(low + _CHUNK - 1, end)
        free: Bools = np.logical_not(needed_by_others(state, i, low, high).any(axis=1))
        k = int(free.argmax())
        if free[k]:
            return low + k
        low = high + 1
    return None


def blocked_entries(state: LockState, i: int, upto: int) -> Words:
    """For each entry of the way from the end of the grant to `upto` the trucks that stand in its way."""
    one = state.truck(i)
    need = one.demand.needs(one.position, upto)
    found: Words = state.blockers[need] & state.others[i]
    if state.sharers:
        # A section with room for several is blocked by all inside once it is full, and by nobody before.
        room = state.exclusion.capacity[need]
        found[(room > 1) & (np.bitwise_count(found).sum(axis=1) < room)] = 0
    return found


def reach(state: LockState, i: int) -> int:
    """The furthest position whose way is free of where the others stand; the end of the grant if the next is not."""
    one = state.truck(i)
    blocked = np.asarray(blocked_entries(state, i, one.goal).any(axis=1))
    if not len(blocked):
        return one.goal
    k = int(blocked.argmax())
    if not blocked[k]:
        return one.goal
    entry = int(one.demand.need_at[one.position + 1]) + k
    return int(np.searchsorted(one.demand.need_at, entry, side="right")) - 2


def blocked_by(state: LockState, i: int, upto: int) -> int:
    """The trucks that stand in the way from the end of the grant to a position, as bits (FLT-LIVE-3)."""
    found = blocked_entries(state, i, upto)
    return mask_of(np.bitwise_or.reduce(found, axis=0)) if len(found) else 0
