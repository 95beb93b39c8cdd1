"""What failed trucks leave possible: how far each of the others can get, and a witness for that (FLT-LIVE-9).

A failed truck keeps its cells and needs nothing. Who cannot pass it gets a goal short of its rest node: the last
position before it at which it is in nobody's way, and from which all get home once the failed truck is back. Who has
none stands where it is, and is an obstacle itself. A witness then brings everybody to its goal; without failures every
goal is the rest node.
"""

from bisect import bisect_right
from functools import cached_property

import numpy as np

from pendula.fleet.traffic.columns import trucks_of
from pendula.fleet.traffic.lock_state import Ints, LockState, Move, Truck
from pendula.fleet.traffic.refuge import Bools, blocked_entries, refuges
from pendula.fleet.traffic.search import find_witness
from pendula.fleet.traffic.shut import first_shut
from pendula.fleet.traffic.witness import going_on


def cut_off(state: LockState) -> list[int]:
    """The trucks that cannot get to rest."""
    return [i for i in state.moving() if state.truck(i).goal < state.truck(i).demand.last]


def in_the_way(state: LockState, i: int) -> tuple[int, int] | None:
    """What a truck that is cut off needs and cannot have, and who stands there: the first that has failed on its way
    to rest; where there is none the first of all, which is cut off itself."""
    one = state.truck(i)
    need = one.demand.needs(one.position, one.demand.last)
    blocked = need[blocked_entries(state, i, need).nonzero()[0]].tolist()
    first = None
    for resource in blocked:
        for j in trucks_of(state.blockers.at(resource) & ~(1 << i)):
            if state.truck(j).frozen:
                return resource, j
            first = first or (resource, j)
    return first


def still_in_the_way(state: LockState, resource: int, j: int) -> bool:
    """Whether truck j stands as before where another one cannot pass it: it has failed, or is cut off too."""
    one = state.trucks[j]
    stays = one is not None and (one.frozen or one.position >= one.goal < one.demand.last)
    return stays and bool(state.blockers.at(resource) >> j & 1)


def reassess(state: LockState, nodes: int) -> None:
    """Goals and a witness for them, from the ends of all grants. At worst everybody stands."""
    for i in state.moving():
        if state.truck(i).goal != state.truck(i).demand.last:
            state.set_goal(i, state.truck(i).demand.last)
    obstacles = [i for i in state.known() if state.truck(i).frozen]
    ways = _Ways(state)
    while True:
        obstacles = _limited(state, obstacles, ways, nodes)
        known = _known(state)
        if known is not None:
            state.witness = known
            return
        found, search = find_witness(state, state.moving(), [], nodes)
        if found is not None:
            state.witness = found
            return
        # Nobody knows how to get these out of each other's way: they stand, and the others are judged without them.
        for i in search.stuck:
            state.set_goal(i, state.truck(i).position)
        obstacles = [*obstacles, *search.stuck]


def _known(state: LockState) -> list[Move] | None:
    """A witness for the goals by what is known: how all got home before the failure; or all others to where they wait
    first, as while the truck could not be counted on, and then home; or all others first, and who is back last."""
    tried = (state.home, [*state.witness, *state.home], state.witness)
    return next((known for moves in tried if (known := going_on(state, moves)) is not None), None)


class _Ways:
    """How many ways to rest each resource is in the way of, failed and cut off as the trucks may be: the same for all
    who look for a place to wait, since nobody moves meanwhile."""

    def __init__(self, state: LockState) -> None:
        self._state = state

    @cached_property
    def _around(self) -> dict[int, Bools]:
        return {j: self._marked(self._state.truck(j)) for j in self._state.known()}

    def _marked(self, one: Truck) -> Bools:
        marks = np.zeros(len(self._state.marks), dtype=np.bool_)
        marks[self._state.exclusion.around(one.demand.needs(one.position, one.demand.last))] = True
        return marks

    @cached_property
    def _counts(self) -> Ints:
        counts: Ints = np.sum(list(self._around.values()), axis=0, dtype=np.int64)
        return counts

    def met(self, i: int, resources: Ints) -> Bools:
        """Which of the resources are in the way of another one than truck i."""
        met: Bools = self._counts[resources] > self._around[i][resources]
        return met


def _limited(state: LockState, obstacles: list[int], ways: _Ways, nodes: int) -> list[int]:
    """Shortens ways that an obstacle blocks; returns the obstacles, with those who found no place to wait."""
    while True:
        cut = [i for i in state.moving() if _shortened(state, i, obstacles)]
        stranded = [i for i in cut if not _waits_clear(state, i, ways, nodes)]
        if not stranded:
            return obstacles
        obstacles = [*obstacles, *stranded]


def _shortened(state: LockState, i: int, obstacles: list[int]) -> bool:
    """Ends a way before the first obstacle on it, or before what is closed."""
    one = state.truck(i)
    shut = first_shut(state.shut, one.demand, one.position) if state.shut else None
    closed = shut is not None and shut.position < one.goal
    if closed and shut is not None:
        state.set_goal(i, shut.position)
    mask = sum(1 << j for j in obstacles if j != i)
    need = one.demand.needs(one.position, one.goal)
    blocked = blocked_entries(state, i, need).nonzero()[0].tolist()
    met = next((k for k in blocked if state.blockers.at(int(need[k])) & mask), None)
    if met is None:
        return closed
    entry = one.demand.need_from[one.position + 1] + met
    state.set_goal(i, bisect_right(one.demand.need_from, entry) - 2)
    return True


def _waits_clear(state: LockState, i: int, ways: _Ways, nodes: int) -> bool:
    """Whether the truck finds a place to wait at which it is in nobody's way, which is its goal then: the last that
    leaves open all ways as they were before the failure; or else the last or the first from which all get home when
    everybody is back. Where there is none it stays: what was possible before the failure stays possible."""
    one = state.truck(i)
    free = np.zeros(one.goal - one.position + 1, dtype=np.bool_)
    free[refuges(state, i, one.position, one.goal)] = True
    better = np.flatnonzero(free & np.logical_not(_meets_whole_ways(state, i, ways)))
    found = np.flatnonzero(free)[[-1, 0]] if free.any() else ()
    tried = (one.position + int(step) for step in found)
    if len(better):
        goal = one.position + int(better[-1])
    else:
        goal = next((to for to in tried if all_get_home(state, i, to, nodes)), one.position)
    state.set_goal(i, goal)
    return bool(free[goal - one.position])


def all_get_home(state: LockState, i: int, goal: int, nodes: int) -> bool:
    """Whether everybody gets to rest once all failed trucks are back, those who are cut off wait at their goals, and
    truck i at this one. As far as is known: the search has so many branches."""
    before = [(j, state.truck(j)) for j in state.known()]
    for j, one in before:
        waits = one.goal if not one.frozen and one.goal < one.demand.last else one.position
        state.install(j, _as_if_back(one, goal if j == i else waits))
    known = going_on(state, state.home) is not None or find_witness(state, state.known(), [], nodes)[0] is not None
    for j, one in before:
        state.install(j, one)
    return known


def _as_if_back(truck: Truck, position: int) -> Truck:
    twin = truck.copied()
    twin.frozen, twin.position, twin.goal = False, position, truck.demand.last
    return twin


def _meets_whole_ways(state: LockState, i: int, ways: _Ways) -> Bools:
    """For each position that is left whether a truck standing there is on the way of another one to its rest node."""
    one = state.truck(i)
    low = one.demand.stand_at[one.position]
    rows = ways.met(i, one.demand.stand[low : one.demand.stand_at[one.goal + 1]])
    met: Bools = np.logical_or.reduceat(rows, one.demand.stand_at[one.position : one.goal + 1] - low)
    return met


def goals(state: LockState) -> list[int]:
    """How far each truck can get; -1 for those not known or failed."""
    return [-1 if one is None or one.frozen else one.goal for one in state.trucks]
