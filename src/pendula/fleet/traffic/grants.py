"""The only functions that change locks: routes accepted, units granted, resources released, trucks frozen.

Each keeps FLT-LIVE-4: afterwards the state stores a witness, a complete schedule that brings all trucks to rest, or
nothing has changed and the answer says why.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from pendula.fleet.traffic.lock_state import Demand, Ints, LockState, Move, Shut, Truck, first_shut, trucks_of
from pendula.fleet.traffic.refuge import (
    Bools,
    blocked_by_graph,
    blocked_entries,
    cycle_of,
    going_on,
    left_behind,
    needed_by,
    refuge,
    refuges,
    replays_after,
    trimmed,
)
from pendula.fleet.traffic.search import LOOKS, find_witness

# What remains possible while trucks have failed: how far each other truck can get, and a witness for that
# (FLT-LIVE-9).
# A failed truck keeps its cells and needs nothing. A truck that cannot pass it gets a goal short of its rest node:
# the last position before the failed truck at which it blocks no other, and from which all get home once the failed
# truck is back. A truck without such a position stays where it is and becomes an obstacle. A witness then brings
# every truck to its goal; without failures every goal is the rest node.


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


class Wait(StrEnum):
    """Why a unit is not granted: another truck holds what excludes it, or some truck could no longer get to rest."""

    HELD = "HELD"
    SAFE_STATE = "WAIT_SAFE_STATE"
    # A failed truck is in the way, and there is no further waiting position before it.
    CUT_OFF = "CUT_OFF"
    FAILED = "FAILED"
    # The budget of the tick is used up: not checked, to be asked again.
    POSTPONED = "POSTPONED"
    AT_REST = "AT_REST"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A route in force."""


@dataclass(frozen=True, slots=True)
class RouteRefused:
    """The old route stays in force. `cycle`: trucks, each blocked by the next, the last by the first; empty if the
    budget of the tick was used up."""

    cycle: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Granted:
    position: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """The first resource on the route that is not free, and its holders; for WAIT_SAFE_STATE the next truck of the
    cycle and the whole cycle. `holders`: all blocked resources, each with a truck that holds what excludes it."""

    code: Wait
    resource: int | None = None
    trucks: tuple[int, ...] = ()
    cycle: tuple[int, ...] = ()
    holders: tuple[tuple[int, int], ...] = field(default=(), compare=False)


class Rule(StrEnum):
    """The rule against deadlocks. All but the first are for comparison and for testing the tests."""

    WITNESS = "witness"
    ACYCLIC = "acyclic"
    BANKER = "banker"
    OFF = "off"


@dataclass(slots=True)
class Effort:
    """The remaining search budget of a tick, in branches: counted, so that ticks are repeatable. A search costs at
    least one; with nothing left, only what the stored witness allows is granted. Looks at trucks count too, so many as
    a branch; `most`: looks of a single search, in branches."""

    per_search: int = 30
    left: int = 1_000_000
    most: int = 1_000_000
    looks_a_branch: int = LOOKS

    def take(self) -> int:
        return max(0, min(self.per_search, self.left))

    def looks(self) -> int:
        """Looks that the next search may make: one that has begun may use twice what is left."""
        return min(self.most, 2 * self.left) * self.looks_a_branch


def accept_route(
    state: LockState,
    i: int,
    demand: Demand,
    position: int = 0,
    *,
    rule: Rule = Rule.WITNESS,
    effort: Effort | None = None,
) -> Accepted | RouteRefused:
    """Accept a new or changed route of truck i; its grant ends at `position` on it. A new truck starts there, holding
    row 0; it is refused if another one holds what excludes that."""
    old = state.trucks[i]
    fresh = state.prepared(i, demand, position)
    if old is None:
        taken = np.union1d(demand.needs(-1, 0), demand.stands(position))
        strangers = state.in_the_way(i, taken)
        if strangers:
            return RouteRefused((i, strangers[0][1]))
        state.install(i, fresh)
        state.hold(i, taken.tolist())
    else:
        if not old.held >= set(demand.stands(position).tolist()):
            raise ValueError(f"truck {i} does not hold what it stands on where its new way begins")
        state.install(i, fresh)
    cycle = _admit(state, i, rule, effort or Effort())
    if cycle is None:
        state.home = _without(state.home, i)
        return Accepted()
    if old is None:
        state.drop(i, sorted(fresh.held))
    state.install(i, old)
    return RouteRefused(cycle)


def take_beside(state: LockState, i: int, demand: Demand, resource: int, *, rule: Rule = Rule.WITNESS) -> bool:
    """Let truck i take a resource beyond what its route needs; `demand`: the rest of its route with the resource in its
    first row. Nothing changes if another truck holds what excludes it, or if the stored witness would no longer bring
    every truck to rest."""
    old = state.truck(i)
    if old.frozen or state.in_the_way(i, np.array([resource], dtype=np.int64)):
        return False
    fresh = state.prepared(i, demand, 0)
    fresh.goal = min(demand.last, old.goal - old.position)
    state.hold(i, [resource])
    state.install(i, fresh)
    moves = _onto(state.witness, i, old.demand, demand)
    witness = moves if rule is Rule.OFF else going_on(state, moves)
    if witness is None:
        state.drop(i, [resource])
        state.install(i, old)
        return False
    state.witness, state.home = witness, _onto(state.home, i, old.demand, demand)
    return True


def _without(moves: list[Move], i: int) -> list[Move]:
    """The moves of a witness without those of a truck whose route has changed."""
    return [move for move in moves if move[0] != i]


def _onto(moves: list[Move], i: int, old: Demand, new: Demand) -> list[Move]:
    """The moves with those of truck i on its new route if that is the rest of the old one, otherwise without."""
    behind = old.last - new.last
    # Nothing is left of a route that ends where it starts.
    if not new.last or behind < 0 or not np.array_equal(new.needs(1, new.last), old.needs(behind + 1, old.last)):
        return _without(moves, i)
    return [(j, to - behind if j == i else to) for j, to in moves if j != i or to > behind]


def _admit(state: LockState, i: int, rule: Rule, effort: Effort) -> tuple[int, ...] | None:
    """Store a witness for a state in which truck i has a new route; otherwise return the cycle that prevents it."""
    if rule is Rule.OFF:
        return None
    truck = state.truck(i)
    against = _rests_in_the_way(state, i)
    if against:
        return (i, *against)
    # The acyclic test knows no order: the resources this truck needs may be the refuges of others.
    if rule is not Rule.ACYCLIC and refuge(state, i, last=truck.position) is not None:
        # It blocks no truck: all others go to rest first, as before, and then this one.
        state.witness = [*(move for move in state.witness if move[0] != i), (i, truck.goal)]
        return None
    return _stands_against(state, i, rule, effort)


def _rests_in_the_way(state: LockState, i: int) -> list[int]:
    """Trucks whose rest nodes truck i would have to pass, or whose routes pass its own (W1 of FLT-LIVE-7)."""
    truck = state.truck(i)
    passed = state.rests.over(truck.demand.needs(truck.position, truck.goal)) & ~(1 << i)
    return trucks_of(passed | needed_by(state, i, truck.goal, truck.goal))


def _search(state: LockState, i: int, effort: Effort) -> tuple[int, ...] | None:
    """Search a witness after a change of truck i and store it; otherwise return the cycle in which it got stuck."""
    allowed = effort.take()
    if not allowed:
        return ()
    witness, search = find_witness(state, [i], state.witness, allowed, effort.looks())
    effort.left -= 1 + allowed - max(0, search.nodes) + search.looks // effort.looks_a_branch
    if witness is None:
        return search.cycle
    state.witness = witness
    return None


def extend(state: LockState, i: int, *, rule: Rule = Rule.WITNESS, effort: Effort | None = None) -> Granted | Blocked:
    """Grant the next unit of truck i, up to its next standing position. The stored witness is checked every time,
    whatever was refused before: it may have been replaced, and the first move of the present one is always possible."""
    truck = state.truck(i)
    if truck.frozen:
        return Blocked(Wait.FAILED)
    if truck.position >= truck.goal:
        return Blocked(Wait.AT_REST if truck.position == truck.demand.last else Wait.CUT_OFF)
    unit = truck.demand.needs(truck.position, truck.position + 1)
    holders = state.in_the_way(i, unit)
    if holders:
        resource = holders[0][0]
        trucks = tuple(j for r, j in holders if r == resource)
        return Blocked(Wait.HELD, resource, trucks, holders=tuple(holders))
    cycle = _advance(state, i, rule, effort or Effort())
    if cycle is None:
        return Granted(truck.position)
    if not cycle:
        return Blocked(Wait.POSTPONED)
    return _refused(cycle, i, unit)


def _refused(cycle: tuple[int, ...], i: int, unit: Ints) -> Blocked:
    at = cycle.index(i) if i in cycle else -1
    turned = (*cycle[at + 1 :], *cycle[: at + 1])
    return Blocked(Wait.SAFE_STATE, int(unit[0]) if len(unit) else None, tuple(j for j in turned if j != i), cycle)


def _advance(state: LockState, i: int, rule: Rule, effort: Effort) -> tuple[int, ...] | None:
    """Commit the next unit if all trucks can still get to rest afterwards; otherwise return the cycle that would
    arise."""
    truck = state.truck(i)
    start, to = truck.position, truck.position + 1
    if rule is Rule.WITNESS and replays_after(state, i, to):
        state.place(i, to)
        state.witness = trimmed(state.witness, i, to)
    elif rule is Rule.WITNESS and not effort.take():
        # No search budget: the same as no search.
        return ()
    else:
        state.place(i, to)
        cycle = _stands_against(state, i, rule, effort)
        if cycle is not None:
            state.place(i, start)
            return cycle
    state.hold(i, truck.demand.needs(start, to).tolist())
    truck.version += 1
    return None


def _stands_against(state: LockState, i: int, rule: Rule, effort: Effort) -> tuple[int, ...] | None:
    match rule:
        case Rule.OFF:
            return None
        case Rule.WITNESS:
            return _search(state, i, effort)
        case Rule.ACYCLIC:
            return cycle_of(blocked_by_graph(state), i) or None
        case Rule.BANKER:
            left = left_behind(state)
            return (i, *(j for j in left if j != i)) if left else None


def release(state: LockState, i: int, resources: list[int]) -> None:
    """Release what truck i has passed or retracted; the caller decides by FLT-RES-13. What it stands on at the end of
    its grant is never released."""
    kept = set(state.standing(i).tolist())
    state.drop(i, [resource for resource in resources if resource not in kept])


def release_passed(state: LockState, i: int, position: int) -> list[int]:
    """Release and return, ascending, all that truck i needs neither at a position it has certainly reached nor on the
    rest of its grant."""
    truck = state.truck(i)
    assert position <= truck.position, "a truck is not beyond the end of its grant"
    if truck.frozen:
        return []
    kept = {*truck.demand.stands(position).tolist(), *truck.demand.needs(position, truck.position).tolist()}
    kept.update(truck.demand.stands(truck.position).tolist())
    passed = sorted(truck.held - kept)
    state.drop(i, passed)
    return passed


def freeze(
    state: LockState, i: int, extra: list[int], reaches: list[int] | None = None, *, effort: Effort | None = None
) -> list[int]:
    """Truck i has failed: it keeps what it holds and takes `extra`, which it may also cover, even where others are
    granted; it needs nothing. `reaches`: resources it is in without covering more of them, so others may have what
    excludes them. Returns the trucks that are now cut off."""
    # The present witness brings all but the failed truck to where they wait, and from there all got home: both together
    # stay valid if another truck fails on its way there.
    _keep_home(state)
    state.set_frozen(i, extra, reaches or [])
    reassess(state, (effort or Effort()).take())
    return cut_off(state)


def _keep_home(state: LockState) -> None:
    """Remember how all trucks get home, before something prevents it."""
    limited = state.is_limited
    state.home = list(dict.fromkeys([*state.witness, *state.home])) if limited else list(state.witness)


def close(state: LockState, shut: tuple[Shut, ...], *, effort: Effort | None = None) -> list[int]:
    """More is closed: every route ends at the waiting position before that, and the witness brings all trucks there.
    Returns the trucks that are now cut off."""
    _keep_home(state)
    state.shut = shut
    reassess(state, (effort or Effort()).take())
    return cut_off(state)


def reopen(state: LockState, shut: tuple[Shut, ...], *, effort: Effort | None = None) -> None:
    """Less is closed, or nothing: routes continue from the waiting positions."""
    state.shut = shut
    reassess(state, (effort or Effort()).take())
    if not state.is_limited and not cut_off(state):
        state.home = []


def thaw(
    state: LockState, i: int, demand: Demand, position: int, *, effort: Effort | None = None
) -> Accepted | RouteRefused:
    """Truck i is back, on a route from its position, and keeps what it holds until released. Refused, and still failed,
    if another truck could then get less far than now, or truck i itself less far than before it failed, unless all get
    home once the other failed trucks are back. May be asked again after any move."""
    before, witness, home, reached = state.truck(i), list(state.witness), list(state.home), goals(state)
    assert before.frozen, f"truck {i} has not failed"
    if not before.held >= set(demand.stands(position).tolist()):
        raise ValueError(f"truck {i} does not hold what it stands on where its new way begins")
    state.install(i, state.prepared(i, demand, position))
    state.home = home if demand is before.demand else _onto(home, i, before.demand, demand)
    reassess(state, (effort or Effort()).take())
    worse = [j for j, (now, then) in enumerate(zip(goals(state), reached, strict=True)) if now < then]
    worse += _rests_in_the_way(state, i)
    if not worse and not _may_be_back(state, i, before, effort):
        worse.append(i)
    if not worse:
        state.home = state.home if state.is_limited else []
        return Accepted()
    state.install(i, before)
    for j, goal in enumerate(reached):
        if goal >= 0:
            state.set_goal(j, goal)
    state.witness, state.home = witness, home
    return RouteRefused((i, *worse))


def _may_be_back(state: LockState, i: int, before: Truck, effort: Effort | None) -> bool:
    """With several failures, a recovered truck that gets nowhere may block the route home of the others."""
    truck = state.truck(i)
    if truck.goal == truck.demand.last or (truck.demand is before.demand and truck.goal >= before.goal):
        return True
    return state.is_limited and all_get_home(state, i, truck.goal, (effort or Effort()).take())
