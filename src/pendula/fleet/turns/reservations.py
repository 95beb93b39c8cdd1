"""Reservations beyond what a truck needs to keep moving: up to `lookaheadM` ahead of it, and `lookbackM` behind it.

They order the queue, show where each truck will go, and give way to every truck that needs the place: no lock, no
witness and no wait depends on them. What others hold, or have reserved before, ends a reservation.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.traffic.lock_state import NO_TRUCK, LockState

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def reserve(order: Sequence[Record], locks: LockState, params: TrafficParams, now_ms: int) -> None:
    """Carry over reservations while the places are free, then extend them in the order of the trucks."""
    claims = Claims(locks)
    asking = []
    for record in order:
        if _asks(record, locks):
            asking.append((record, _last(record, locks, params)))
        else:
            record.reserve_anew()
    # Reservations of the last tick come before new ones: the first to reserve a place keeps it.
    for record, last in asking:
        _take(record, claims, record.granted, min(record.reserved, last))
    for record, _ in asking:
        _take_behind(record, claims, params)
    for record, last in asking:
        _take(record, claims, record.reserved, last)
        _note(record, now_ms)


class Claims:
    """The reservations of this tick, beside held resources."""

    def __init__(self, locks: LockState) -> None:
        self.locks = locks
        self.owner: Ints = np.full(len(locks.exclusion), NO_TRUCK, dtype=np.int64)
        # What failed trucks hold beside others; usually empty.
        self._crowd = np.array(sorted(locks.crowd), dtype=np.int64)
        self._reached = np.array(sorted(locks.reached), dtype=np.int64)

    def free(self, i: int, resources: Ints) -> Bools:
        """For each resource whether no other truck holds or has reserved what excludes it."""
        exclusion = self.locks.exclusion
        if not len(resources):
            return np.ones(0, dtype=np.bool_)
        around = exclusion.around(resources)
        counts = exclusion.at[resources + 1] - exclusion.at[resources]
        taken = self._is_other(i, self.locks.owner[around]) | self._is_other(i, self.owner[around])
        if len(self._crowd):
            taken |= np.isin(around, self._crowd)
        free: Bools = ~np.logical_or.reduceat(taken, np.cumsum(counts) - counts)
        if len(self._reached):
            free &= ~np.isin(resources, self._reached)
        for place in np.flatnonzero(exclusion.capacity[resources] > 1).tolist():
            resource = int(resources[place])
            inside = [j for j in self.locks.sharers[resource] if j != i]
            free[place] = len(inside) < int(exclusion.capacity[resource])
        return free

    def _is_other(self, i: int, owners: Ints) -> Bools:
        others: Bools = (owners != NO_TRUCK) & (owners != i)
        return others

    def take(self, i: int, resources: Ints) -> None:
        # A section for several trucks is not reserved: trucks inside count.
        self.owner[resources[self.locks.exclusion.capacity[resources] == 1]] = i


def _asks(record: Record, locks: LockState) -> bool:
    """A truck that is stopped, has a retraction or no route reserves nothing."""
    way = record.track is not None and record.stop_code is None and record.retraction is None
    return way and not locks.truck(record.number).frozen


def _last(record: Record, locks: LockState, params: TrafficParams) -> int:
    """The standing position up to which a truck reserves: the first at or beyond the lookahead, as for units."""
    track = record.track
    assert track is not None
    reach = min(record.at_um + params.lookahead_um, track.goal_um)
    return max(record.granted, min(bisect_left(track.stands, reach), locks.truck(record.number).goal - record.base))


def _take(record: Record, claims: Claims, first: int, last: int) -> None:
    """Reserve from one standing position to another, or to the first unit that is not free."""
    demand, base = claims.locks.truck(record.number).demand, record.base
    record.reserved = first
    if last <= first:
        return
    need = demand.needs(base + first, base + last)
    wrong = np.flatnonzero(~claims.free(record.number, need))
    if len(wrong):
        entry = demand.need_from[base + first + 1] + int(wrong[0])
        last = bisect_right(demand.need_from, entry) - 2 - base
        need = demand.needs(base + first, base + last)
    claims.take(record.number, need)
    record.reserved = last


def _note(record: Record, now_ms: int) -> None:
    """Since when each unit is reserved: kept if a truck in need takes the place, as long as the route stays."""
    kept = {k: since for k, since in record.reserved_ms.items() if k > record.granted}
    record.reserved_ms = {**dict.fromkeys(range(record.granted + 1, record.reserved + 1), now_ms), **kept}


def _take_behind(record: Record, claims: Claims, params: TrafficParams) -> None:
    """Reserve the cells that a truck has passed, if free, back to the end of the lookback."""
    track = record.track
    assert track is not None
    passed = track.taken(record.at_um - params.lookback_um, record.bound_um)
    left = (use.resource for use in passed if use.resource not in record.held)
    behind = np.array([resource for resource in left if resource < len(record.site.cells)], dtype=np.int64)
    claims.take(record.number, behind[claims.free(record.number, behind)])
