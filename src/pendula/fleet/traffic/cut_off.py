"""What remains possible while trucks have failed: how far each other truck can get, and a witness for that
(FLT-LIVE-9).

A failed truck keeps its cells and needs nothing. A truck that cannot pass it gets a goal short of its rest node: the
last position before the failed truck at which it blocks no other, and from which all get home once the failed truck is
back. A truck without such a position stays where it is and becomes an obstacle. A witness then brings every truck to
its goal; without failures every goal is the rest node.
"""

from bisect import bisect_right
from functools import cached_property

import numpy as np

from pendula.fleet.traffic.demand import first_shut
from pendula.fleet.traffic.lock_state import Ints, LockState, Move, Truck, trucks_of
from pendula.fleet.traffic.refuge import Bools, blocked_entries, going_on, refuges
from pendula.fleet.traffic.search import find_witness


def cut_off(state: LockState) -> list[int]:
    """The trucks that cannot get to rest."""
    return [i for i in state.moving() if state.truck(i).goal < state.truck(i).demand.last]


def in_the_way(state: LockState, i: int) -> tuple[int, int] | None:
    """The resource that a cut-off truck needs and cannot have, and its holder: the first failed one on the route to
    rest, or else the first of all, which is cut off itself."""
    truck = state.truck(i)
    need = truck.demand.needs(truck.position, truck.demand.last)
    blocked = need[blocked_entries(state, i, need).nonzero()[0]].tolist()
    first = None
    for resource in blocked:
        for j in trucks_of(state.blockers.at(resource) & ~(1 << i)):
            if state.truck(j).frozen:
                return resource, j
            first = first or (resource, j)
    return first


def still_in_the_way(state: LockState, resource: int, j: int) -> bool:
    """Whether truck j still blocks a cut-off truck: it has failed, or is cut off too."""
    truck = state.trucks[j]
    stays = truck is not None and (truck.frozen or truck.position >= truck.goal < truck.demand.last)
    return stays and bool(state.blockers.at(resource) >> j & 1)


def reassess(state: LockState, nodes: int) -> None:
    """Goals, and a witness for them from the ends of all grants. At worst every truck stays."""
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
        witness, search = find_witness(state, state.moving(), [], nodes)
        if witness is not None:
            state.witness = witness
            return
        # No schedule is known for these: they stay, and the others are checked without them.
        for i in search.stuck:
            state.set_goal(i, state.truck(i).position)
        obstacles = [*obstacles, *search.stuck]


def _known(state: LockState) -> list[Move] | None:
    """A witness for the goals from known schedules: how all got home before the failure; or first all others to their
    waiting positions and then home; or first all others and the recovered truck last."""
    tried = (state.home, [*state.witness, *state.home], state.witness)
    return next((known for moves in tried if (known := going_on(state, moves)) is not None), None)


class _Ways:
    """How many routes to rest each resource blocks, counting failed and cut-off trucks as they are. The same for all
    trucks that look for a waiting position, since none moves meanwhile."""

    def __init__(self, state: LockState) -> None:
        self._state = state

    @cached_property
    def _around(self) -> dict[int, Bools]:
        return {j: self._marked(self._state.truck(j)) for j in self._state.known()}

    def _marked(self, truck: Truck) -> Bools:
        marks = np.zeros(len(self._state.marks), dtype=np.bool_)
        marks[self._state.exclusion.around(truck.demand.needs(truck.position, truck.demand.last))] = True
        return marks

    @cached_property
    def _counts(self) -> Ints:
        counts: Ints = np.sum(list(self._around.values()), axis=0, dtype=np.int64)
        return counts

    def met(self, i: int, resources: Ints) -> Bools:
        """The resources that block a truck other than truck i."""
        met: Bools = self._counts[resources] > self._around[i][resources]
        return met


def _limited(state: LockState, obstacles: list[int], ways: _Ways, nodes: int) -> list[int]:
    """Shorten routes that an obstacle blocks; returns the obstacles, including trucks without a waiting position."""
    while True:
        cut = [i for i in state.moving() if _shortened(state, i, obstacles)]
        stranded = [i for i in cut if not _waits_clear(state, i, ways, nodes)]
        if not stranded:
            return obstacles
        obstacles = [*obstacles, *stranded]


def _shortened(state: LockState, i: int, obstacles: list[int]) -> bool:
    """End a route before its first obstacle, or before a closed place."""
    truck = state.truck(i)
    shut = first_shut(state.shut, truck.demand, truck.position) if state.shut else None
    closed = shut is not None and shut.position < truck.goal
    if closed and shut is not None:
        state.set_goal(i, shut.position)
    mask = sum(1 << j for j in obstacles if j != i)
    need = truck.demand.needs(truck.position, truck.goal)
    blocked = blocked_entries(state, i, need).nonzero()[0].tolist()
    met = next((k for k in blocked if state.blockers.at(int(need[k])) & mask), None)
    if met is None:
        return closed
    entry = truck.demand.need_from[truck.position + 1] + met
    state.set_goal(i, bisect_right(truck.demand.need_from, entry) - 2)
    return True


def _waits_clear(state: LockState, i: int, ways: _Ways, nodes: int) -> bool:
    """Whether the truck finds a waiting position where it blocks no other, which becomes its goal: the last that leaves
    all routes open as before the failure; or else the last or the first from which all get home once all have
    recovered. Without one it stays, so what was possible before the failure stays possible."""
    truck = state.truck(i)
    free = np.zeros(truck.goal - truck.position + 1, dtype=np.bool_)
    free[refuges(state, i, truck.position, truck.goal)] = True
    better = np.flatnonzero(free & np.logical_not(_meets_whole_ways(state, i, ways)))
    outermost = np.flatnonzero(free)[[-1, 0]] if free.any() else ()
    tried = (truck.position + int(step) for step in outermost)
    if len(better):
        goal = truck.position + int(better[-1])
    else:
        goal = next((to for to in tried if all_get_home(state, i, to, nodes)), truck.position)
    state.set_goal(i, goal)
    return bool(free[goal - truck.position])


def all_get_home(state: LockState, i: int, goal: int, nodes: int) -> bool:
    """Whether all trucks get to rest after all failures are over, when cut-off trucks wait at their goals and truck i
    at this position. The search is limited, so the answer may be a false no."""
    before = [(j, state.truck(j)) for j in state.known()]
    for j, truck in before:
        waits = truck.goal if not truck.frozen and truck.goal < truck.demand.last else truck.position
        state.install(j, _as_if_back(truck, goal if j == i else waits))
    known = going_on(state, state.home) is not None or find_witness(state, state.known(), [], nodes)[0] is not None
    for j, truck in before:
        state.install(j, truck)
    return known


def _as_if_back(truck: Truck, position: int) -> Truck:
    twin = truck.copied()
    twin.frozen, twin.position, twin.goal = False, position, truck.demand.last
    return twin


def _meets_whole_ways(state: LockState, i: int, ways: _Ways) -> Bools:
    """For each remaining position, whether a truck there blocks the route of another one to its rest node."""
    truck = state.truck(i)
    low = truck.demand.stand_at[truck.position]
    rows = ways.met(i, truck.demand.stand[low : truck.demand.stand_at[truck.goal + 1]])
    met: Bools = np.logical_or.reduceat(rows, truck.demand.stand_at[truck.position : truck.goal + 1] - low)
    return met


def goals(state: LockState) -> list[int]:
    """How far each truck can get; -1 for unknown or failed ones."""
    return [-1 if truck is None or truck.frozen else truck.goal for truck in state.trucks]
