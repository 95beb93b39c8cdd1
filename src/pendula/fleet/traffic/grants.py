"""The only functions that change who holds what: routes accepted, units granted, resources released, trucks frozen.

Each keeps the promise of FLT-LIVE-4: afterwards a complete schedule that brings everybody to rest is stored as the
state's witness, or nothing was changed and the answer says why.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from pendula.fleet.traffic.blocked_by import blocked_by_graph, cycle_of, left_behind
from pendula.fleet.traffic.columns import trucks_of
from pendula.fleet.traffic.cut_off import all_get_home, cut_off, goals, reassess
from pendula.fleet.traffic.demand import Demand
from pendula.fleet.traffic.lock_state import Ints, LockState, Move, Truck
from pendula.fleet.traffic.refuge import needed_by, refuge
from pendula.fleet.traffic.search import LOOKS, find_witness
from pendula.fleet.traffic.shut import Shut
from pendula.fleet.traffic.witness import going_on, replays_after, trimmed


class Wait(StrEnum):
    """Why a unit is not granted: somebody holds what excludes it, or afterwards not everybody could get to rest."""

    HELD = "HELD"
    SAFE_STATE = "WAIT_SAFE_STATE"
    # A failed truck is in the way, and there is no further place to wait before it.
    CUT_OFF = "CUT_OFF"
    FAILED = "FAILED"
    # Everything a tick may spend is spent: not judged, and to be asked again.
    POSTPONED = "POSTPONED"
    AT_REST = "AT_REST"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A route in force."""


@dataclass(frozen=True, slots=True)
class RouteRefused:
    """The old route stays in force. `cycle`: trucks of which each is blocked by the next, the last by the first; empty
    where the tick had nothing left to judge it with."""

    cycle: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Granted:
    position: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """The first resource on the way that is not to be had, and who holds what excludes it; for WAIT_SAFE_STATE the
    next truck of the cycle first, and the whole cycle. `holders`: all that is not to be had, each with a truck that
    holds what excludes it."""

    code: Wait
    resource: int | None = None
    trucks: tuple[int, ...] = ()
    cycle: tuple[int, ...] = ()
    holders: tuple[tuple[int, int], ...] = field(default=(), compare=False)


class Rule(StrEnum):
    """What keeps everybody from getting stuck. All but the first are for comparison and for tests of the tests."""

    WITNESS = "witness"
    ACYCLIC = "acyclic"
    BANKER = "banker"
    OFF = "off"


@dataclass(slots=True)
class Effort:
    """What the decisions of a tick may still cost, in branches of a search: counted, so that they repeat. A search
    costs one at least; when nothing is left, only what the stored witness allows is granted. Looks at trucks
    count too, so many as a branch; `most`: what a single search may look, in branches."""

    per_search: int = 30
    left: int = 1_000_000
    most: int = 1_000_000
    looks_a_branch: int = LOOKS

    def take(self) -> int:
        return max(0, min(self.per_search, self.left))

    def looks(self) -> int:
        """How often the next search may look: one that is begun may take twice what is left."""
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
    """A new or changed way of truck i; `position` is where its grant ends on it. A truck that is not known yet begins
    there, holding what row 0 says; it is refused where another one holds what excludes that."""
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
    """Truck i takes a resource on top of what its way needs: `demand` is what is left of its way, with the resource
    among what it holds at the start. Nothing changes where another truck holds what excludes it, or where the stored
    witness would not bring every truck to rest any more."""
    old = state.truck(i)
    if old.frozen or state.in_the_way(i, np.array([resource], dtype=np.int64)):
        return False
    fresh = state.prepared(i, demand, 0)
    fresh.goal = min(demand.last, old.goal - old.position)
    state.hold(i, [resource])
    state.install(i, fresh)
    moves = _onto(state.witness, i, old.demand, demand)
    found = moves if rule is Rule.OFF else going_on(state, moves)
    if found is None:
        state.drop(i, [resource])
        state.install(i, old)
        return False
    state.witness, state.home = found, _onto(state.home, i, old.demand, demand)
    return True


def _without(moves: list[Move], i: int) -> list[Move]:
    """The moves of a witness without those of a truck whose way is another one now."""
    return [move for move in moves if move[0] != i]


def _onto(moves: list[Move], i: int, old: Demand, new: Demand) -> list[Move]:
    """The moves with those of truck i on its new way, where that is what is left of the old one; otherwise without."""
    behind = old.last - new.last
    # Nothing is left of a way that ends where it begins.
    if not new.last or behind < 0 or not np.array_equal(new.needs(1, new.last), old.needs(behind + 1, old.last)):
        return _without(moves, i)
    return [(j, to - behind if j == i else to) for j, to in moves if j != i or to > behind]


def _admit(state: LockState, i: int, rule: Rule, effort: Effort) -> tuple[int, ...] | None:
    """Stores a witness for a state in which truck i has a new way; otherwise the cycle that stands against it."""
    if rule is Rule.OFF:
        return None
    one = state.truck(i)
    against = _rests_in_the_way(state, i)
    if against:
        return (i, *against)
    # The acyclic test knows no order in which to go: what this one needs may take the refuges of others from them.
    if rule is not Rule.ACYCLIC and refuge(state, i, last=one.position) is not None:
        # In nobody's way: everybody else goes to rest first, as before, and then this one.
        state.witness = [*(move for move in state.witness if move[0] != i), (i, one.goal)]
        return None
    return _stands_against(state, i, rule, effort)


def _rests_in_the_way(state: LockState, i: int) -> list[int]:
    """Trucks at whose rest nodes truck i would have to pass, or whose ways lead past its own (W1 of FLT-LIVE-7)."""
    one = state.truck(i)
    passed = state.rests.over(one.demand.needs(one.position, one.goal)) & ~(1 << i)
    return trucks_of(passed | needed_by(state, i, one.goal, one.goal))


def _search(state: LockState, i: int, effort: Effort) -> tuple[int, ...] | None:
    """Looks for a witness after a change of truck i, and stores it; otherwise the cycle in which it got stuck."""
    allowed = effort.take()
    if not allowed:
        return ()
    found, search = find_witness(state, [i], state.witness, allowed, effort.looks())
    effort.left -= 1 + allowed - max(0, search.nodes) + search.looks // effort.looks_a_branch
    if found is None:
        return search.cycle
    state.witness = found
    return None


def extend(state: LockState, i: int, *, rule: Rule = Rule.WITNESS, effort: Effort | None = None) -> Granted | Blocked:
    """The next unit of truck i, up to its next standing position. The stored witness is asked every time, whatever was
    refused before: it may have been replaced since, and the first move of the present one is always possible."""
    one = state.truck(i)
    if one.frozen:
        return Blocked(Wait.FAILED)
    if one.position >= one.goal:
        return Blocked(Wait.AT_REST if one.position == one.demand.last else Wait.CUT_OFF)
    unit = one.demand.needs(one.position, one.position + 1)
    holders = state.in_the_way(i, unit)
    if holders:
        resource = holders[0][0]
        trucks = tuple(j for r, j in holders if r == resource)
        return Blocked(Wait.HELD, resource, trucks, holders=tuple(holders))
    cycle = _advance(state, i, rule, effort or Effort())
    if cycle is None:
        return Granted(one.position)
    if not cycle:
        return Blocked(Wait.POSTPONED)
    return _refused(cycle, i, unit)


def _refused(cycle: tuple[int, ...], i: int, unit: Ints) -> Blocked:
    at = cycle.index(i) if i in cycle else -1
    turned = (*cycle[at + 1 :], *cycle[: at + 1])
    return Blocked(Wait.SAFE_STATE, int(unit[0]) if len(unit) else None, tuple(j for j in turned if j != i), cycle)


def _advance(state: LockState, i: int, rule: Rule, effort: Effort) -> tuple[int, ...] | None:
    """Commits the next unit if everybody can still get to rest afterwards; otherwise the cycle that would arise."""
    one = state.truck(i)
    start, to = one.position, one.position + 1
    if rule is Rule.WITNESS and replays_after(state, i, to):
        state.place(i, to)
        state.witness = trimmed(state.witness, i, to)
    elif rule is Rule.WITNESS and not effort.take():
        # Nothing may be searched: as a search that is not made.
        return ()
    else:
        state.place(i, to)
        cycle = _stands_against(state, i, rule, effort)
        if cycle is not None:
            state.place(i, start)
            return cycle
    state.hold(i, one.demand.needs(start, to).tolist())
    one.version += 1
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
    """What truck i has passed or retracted; the caller decides by FLT-RES-13. What it stands on at the end of its grant
    is never released."""
    kept = set(state.standing(i).tolist())
    state.drop(i, [resource for resource in resources if resource not in kept])


def release_passed(state: LockState, i: int, position: int) -> list[int]:
    """Releases all that truck i needs neither to stand at a position it has certainly reached nor on the rest of its
    grant; returns it, ascending."""
    one = state.truck(i)
    assert position <= one.position, "a truck is not beyond the end of its grant"
    if one.frozen:
        return []
    kept = {*one.demand.stands(position).tolist(), *one.demand.needs(position, one.position).tolist()}
    kept.update(one.demand.stands(one.position).tolist())
    passed = sorted(one.held - kept)
    state.drop(i, passed)
    return passed


def freeze(
    state: LockState, i: int, extra: list[int], reaches: list[int] | None = None, *, effort: Effort | None = None
) -> list[int]:
    """Truck i has failed: it keeps what it holds and takes `extra`, whatever else it may cover, also where others have
    a right to be; it needs nothing. `reaches`: what it is in without covering more of it, so that others may have what
    excludes that. Returns the trucks that are cut off now."""
    # The witness of today brings all but the failed to where they wait, and from there all got home: both together hold
    # also for one that fails on its way there.
    _keep_home(state)
    state.set_frozen(i, extra, reaches or [])
    reassess(state, (effort or Effort()).take())
    return cut_off(state)


def _keep_home(state: LockState) -> None:
    """Remembers how all get home, before something keeps them from it."""
    limited = state.is_limited
    state.home = list(dict.fromkeys([*state.witness, *state.home])) if limited else list(state.witness)


def close(state: LockState, shut: tuple[Shut, ...], *, effort: Effort | None = None) -> list[int]:
    """More is closed: the way of every truck ends where it waits before that, and the witness brings all there.
    Returns the trucks that are cut off now."""
    _keep_home(state)
    state.shut = shut
    reassess(state, (effort or Effort()).take())
    return cut_off(state)


def reopen(state: LockState, shut: tuple[Shut, ...], *, effort: Effort | None = None) -> None:
    """Less is closed, or nothing: ways lead on from where trucks wait."""
    state.shut = shut
    reassess(state, (effort or Effort()).take())
    if not state.is_limited and not cut_off(state):
        state.home = []


def thaw(
    state: LockState, i: int, demand: Demand, position: int, *, effort: Effort | None = None
) -> Accepted | RouteRefused:
    """Truck i is back, on a way that starts where it stands, and keeps what it holds until it is released. Refused, and
    still failed, where another one could then not get as far as it can now, or truck i itself not as far as before it
    failed, unless all get home once the others who have failed are back: it may be asked again when somebody moved."""
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
    """Where several have failed, one that comes back and gets nowhere may take their way home from them."""
    one = state.truck(i)
    if one.goal == one.demand.last or (one.demand is before.demand and one.goal >= before.goal):
        return True
    return state.is_limited and all_get_home(state, i, one.goal, (effort or Effort()).take())
