"""The search for a witness (FLT-LIVE-13), local: it brings some trucks to where they are in nobody's way.

Once they are there, everybody else goes on as the old witness says: trucks at refuges block no move of it. So the
search touches the trucks it was asked about, those in their way, and no others. It moves them on the columns of the
state and takes every move back. Branches and looks at trucks are counted, never timed: with either spent it ends as one
that found nothing, since a refusal is always safe.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush

import numpy as np
from msgspec import Struct

from pendula.fleet.traffic.blocked_by import cycle_of
from pendula.fleet.traffic.columns import trucks_of
from pendula.fleet.traffic.dominating import dominating
from pendula.fleet.traffic.lock_state import Ints, LockState, Move
from pendula.fleet.traffic.pairs import stuck_together
from pendula.fleet.traffic.refuge import (
    free_positions,
    needed_by,
    needed_by_words,
    needing,
    obstacles,
    reach,
    reach_and_blockers,
    refuge,
)

# How many trucks are sent ahead, or asked in vain, in one search.
_ASKED = 8
# How often everybody drives on in one roll-out, and how many outlooks of trucks cost as much as a branch where nothing
# else is said.
_ROUNDS = 40
LOOKS = 8
# How many outlooks a search may make unless it is told otherwise: no end of it.
_ENDLESS = 1 << 62
# Who drives on first in a roll-out: who has least to go, which empties the floor; then who has most, which solves what
# the first one cannot. What a branch solves beside them is rare.
_ORDERS = (1, -1)


class _Spent(Exception):
    """A search has looked as often as it may."""


class Outlook(Struct, frozen=True, gc=False):
    """How far a truck can get, who stands in its way there, and the positions up to it at which it is in nobody's way,
    first and last."""

    far: int
    blockers: int
    refuges: tuple[int, int] | None


class Sleeper(Struct, frozen=True, eq=False, gc=False):
    """A truck that found no refuge. That stays so until a truck of `mask` moves, or another one comes to stand on
    `way`."""

    outlook: Outlook
    mask: int
    way: Ints


@dataclass(slots=True)
class Search:
    """One search: how many branches it may still try, the moves so far, the trucks that are in somebody's way with
    those that keep them there, and who they were where it first got stuck."""

    state: LockState
    nodes: int
    moves: list[Move] = field(default_factory=list)
    waiting: dict[int, int] = field(default_factory=dict)
    # Trucks that were sent ahead, or tried in vain, because the place where another one could wait is on their way.
    asked: set[int] = field(default_factory=set)
    stuck: tuple[int, ...] = ()
    cycle: tuple[int, ...] = ()
    asleep: dict[int, Sleeper] = field(default_factory=dict)
    # Those of them that did not drive on in a roll-out, and will not before they wake.
    idle: set[int] = field(default_factory=set)
    # Outlooks that had to be made, most of what a search costs beside its branches, and how many it may make.
    looks: int = 0
    most_looks: int = _ENDLESS
    # The trucks it was asked about, and where all grants ended when it began.
    start: tuple[int, ...] = ()
    begin: tuple[int, ...] = ()
    # Two of whom is known that they would not get to rest if they were alone.
    hopeless_pair: tuple[int, ...] = ()

    def go(self, i: int, position: int) -> None:
        self.state.place(i, position)
        self.moves.append((i, position))
        if self.asleep:
            met = self.state.watched.over(self.state.shadow(i, position)) | 1 << i
            self.wake([k for k, one in self.asleep.items() if one.mask >> i & 1 or met >> k & 1])

    def wake(self, trucks: list[int]) -> None:
        for k in trucks:
            self.state.watched.remove(k, self.asleep.pop(k).way)
        self.idle.difference_update(trucks)

    def outlook(self, i: int) -> Outlook:
        """What a truck sees from where it is; where that is nothing good, it is asked again only when it may have
        changed."""
        sleeper = self.asleep.get(i)
        if sleeper is not None:
            return sleeper.outlook
        if self.looks >= self.most_looks:
            raise _Spent
        self.looks += 1
        state, one = self.state, self.state.truck(i)
        far, blockers = reach_and_blockers(state, i)
        words = needed_by_words(state, i, one.position, far)
        free = free_positions(words)
        if len(free):
            return Outlook(far, blockers, (one.position + int(free[0]), one.position + int(free[-1])))
        seen = Outlook(far, blockers, None)
        if far < one.goal:
            self.asleep[i] = Sleeper(seen, blockers | needing(words), one.demand.needs(one.position, far + 1))
            state.watched.add(i, self.asleep[i].way)
        return seen

    # -- the whole of it ---------------------------------------------------------------------------------------------

    def found(self) -> bool:
        """Whether everybody it was asked about gets to a refuge, as far as it may look."""
        try:
            return self.solved(sorted(self.waiting))
        except _Spent:
            if not self.stuck:
                self.get_stuck()
            # Somebody has to be named: who is refused for the sake of nobody would be asked again in every tick.
            self.cycle = self.cycle or self.stuck
            return False

    def get_stuck(self) -> None:
        """Notes who stands in whose way where nothing moves any more."""
        self.stuck, self.cycle = tuple(sorted(self.waiting)), cycle_of(self.waiting)

    def solved(self, dirty: list[int]) -> bool:
        """Whether everybody who waits gets to a refuge; `dirty` are those whose way may have become free."""
        self.settle(dirty)
        if not self.waiting:
            return True
        if not self.stuck:
            self.get_stuck()
            self.hopeless_pair = self.hopeless()
            if self.hopeless_pair:
                self.cycle = self.hopeless_pair
                return False
            if any(self.attempt(partial(self.rolled_out, order)) for order in _ORDERS):
                return True
        for k, position in self.branches() if self.nodes > 0 else ():
            self.nodes -= 1
            if self.nodes < 0:
                return False
            if self.attempt(partial(self.after, k, position)):
                return True
        return False

    def hopeless(self) -> tuple[int, ...]:
        """Two trucks that would not get to rest if they were alone: one of those it was asked about, since all others
        had a schedule before, and one with which it blocks each other."""
        for i in self.start:
            mutual = [k for k in trucks_of(self.waiting.get(i, 0)) if self.waiting.get(k, 0) >> i & 1]
            for k in mutual:
                if stuck_together(self.state, i, self.begin[i], k, self.begin[k]):
                    return min(i, k), max(i, k)
        return ()

    def attempt(self, way: Callable[[], bool]) -> bool:
        """Tries a way to go on; everything is as it was if it fails."""
        before, waiting = len(self.moves), dict(self.waiting)
        start = positions_of(self.state)
        if way():
            return True
        put_back(self.state, start)
        del self.moves[before:]
        self.waiting = waiting
        self.wake(list(self.asleep))
        return False

    def after(self, k: int, position: int) -> bool:
        """Whether all goes well once a truck has gone to a position."""
        self.go(k, position)
        return self.solved([k, *(j for j, mask in self.waiting.items() if mask >> k & 1)])

    def rolled_out(self, order: int) -> bool:
        """Whether all goes well when everybody drives on as far as possible, over and over: a convoy on a ring is never
        in nobody's way, and gets home all the same."""
        for _ in range(_ROUNDS):
            moved = self.drive_on_in_turn(order)
            if not self.waiting:
                return True
            if self.in_the_way() or moved:
                continue
            line = sorted(self.place_in_line(order, i) for i in self.waiting)
            if not any(self.driven_on(i, anywhere=True) for _, i in line):
                return False
        return False

    def place_in_line(self, order: int, i: int) -> tuple[int, int]:
        return order * self.state.truck(i).to_go, i

    def drive_on_in_turn(self, order: int) -> bool:
        """One round: everybody in turn drives on, whether anybody did. Who is idle takes its turn only where one of
        those before it wakes it."""
        idle, moved = set(self.idle), False
        line = [self.place_in_line(order, i) for i in self.waiting if i not in idle]
        heapify(line)
        while line:
            place = heappop(line)
            if not self.driven_on(place[1]):
                continue
            moved = True
            for k in sorted(idle - self.idle):
                idle.remove(k)
                if self.place_in_line(order, k) > place:
                    heappush(line, self.place_in_line(order, k))
        return moved

    def driven_on(self, i: int, anywhere: bool = False) -> bool:
        """Whether a truck gets on. Not into a junction or another's window, where somebody else would have to wait for
        it; `anywhere` where nobody gets on otherwise: in an aisle of many stations there is nothing but windows."""
        one, seen = self.state.truck(i), self.outlook(i)
        if seen.far == one.goal:
            self.settled(i, seen.far)
            return True
        self.waiting[i] = seen.blockers
        if seen.refuges is not None:
            self.settled(i, seen.refuges[1])
            return True
        target = seen.far if anywhere else one.demand.wanted_between(one.position, seen.far)
        if target is None or target == one.position:
            if i in self.asleep:
                self.idle.add(i)
            return False
        self.go(i, target)
        return True

    # -- moves that cost nothing -------------------------------------------------------------------------------------

    def settle(self, dirty: list[int]) -> None:
        """Moves trucks to refuges, and to where they are less in the way, until nothing moves any more."""
        while dirty:
            moved = 0
            for i in sorted(set(dirty)):
                if i in self.waiting and self.to_refuge(i):
                    moved |= 1 << i
            fresh = self.in_the_way()
            if not moved and not fresh:
                moved = self.nearer_refuges() or self.at_first()
            dirty = [*fresh, *(j for j, mask in self.waiting.items() if mask & moved)]

    def in_the_way(self) -> list[int]:
        """Trucks that stand in the way of those who wait and were not looked at yet; they wait from now on."""
        mask, known = 0, 0
        for i, one in self.waiting.items():
            mask |= one
            known |= 1 << i
        fresh = [k for k in trucks_of(mask & ~known) if self.can_move(k)]
        self.waiting.update(dict.fromkeys(fresh, 0))
        return fresh

    def can_move(self, k: int) -> bool:
        one = self.state.truck(k)
        return not one.frozen and one.position < one.goal

    def to_refuge(self, i: int) -> bool:
        """To the next refuge, if the way is free; otherwise notes who stands in it."""
        target = refuge(self.state, i)
        if target is None:
            target = self.state.truck(i).goal
        far, blockers = reach_and_blockers(self.state, i, target)
        if far < target:
            self.waiting[i] = blockers
            return False
        self.settled(i, target)
        return True

    def settled(self, i: int, target: int) -> None:
        del self.waiting[i]
        if target > self.state.truck(i).position:
            self.go(i, target)

    def nearer_refuges(self) -> int:
        """Those who wait, as far as they can get: what others no longer need may have become a refuge."""
        for i in sorted(self.waiting.keys() - self.asleep.keys()):
            seen = self.outlook(i)
            if seen.far == self.state.truck(i).goal:
                self.settled(i, seen.far)
                return 1 << i
            if seen.refuges is not None:
                self.settled(i, seen.refuges[0])
                return 1 << i
        return 0

    def at_first(self) -> int:
        """What is worth its cost only once, before the search gets stuck."""
        return 0 if self.stuck else self.less_in_the_way() or self.sent_ahead()

    def less_in_the_way(self) -> int:
        for i in cycle_of(self.waiting):
            target = dominating(self.state, i)
            if target is not None:
                self.go(i, target)
                return 1 << i
        return 0

    def sent_ahead(self) -> int:
        """Somebody who can get to rest and needs what one of those who wait could stand on meanwhile."""
        wanted = 0
        for i in cycle_of(self.waiting):
            here = self.state.truck(i).position
            wanted |= needed_by(self.state, i, here, reach(self.state, i))
        for k in trucks_of(wanted):
            if k in self.waiting or k in self.asked or not self.can_move(k):
                continue
            if len(self.asked) == _ASKED:
                break
            self.asked.add(k)
            if reach(self.state, k) == self.state.truck(k).goal:
                self.go(k, self.state.truck(k).goal)
                # Everybody who waits may have a refuge now.
                return -1
        return 0

    # -- branches ----------------------------------------------------------------------------------------------------

    def branches(self) -> list[Move]:
        """For the trucks of one cycle and each truck in their way: the nearest and the furthest position that lets them
        go on."""
        found: dict[Move, None] = {}
        for j in cycle_of(self.waiting):
            blocked, blockers = first_obstacle(self.state, j)
            around = self.state.exclusion.around(blocked)
            self.state.marks[around] = True
            for k in blockers:
                if self.can_move(k):
                    found |= dict.fromkeys(clearing(self.state, k))
            self.state.marks[around] = False
        return list(found)


def find_witness(
    state: LockState, start: list[int], old: list[Move], nodes: int, looks: int = _ENDLESS
) -> tuple[list[Move] | None, Search]:
    """A schedule from the ends of all grants: trucks of `start` and whoever is in their way to refuges, then all others
    as the old witness says, then those few to rest. `None` where none was found within so many branches and looks. The
    old witness need not be one for the trucks of `start`."""
    positions = positions_of(state)
    moving = tuple(i for i in start if not state.truck(i).frozen)
    waiting = dict.fromkeys(moving, 0)
    search = Search(state, nodes, waiting=waiting, start=moving, begin=tuple(positions), most_looks=looks)
    found = search.found()
    touched = {i for i, _ in search.moves} | set(start)
    last = [(i, state.truck(i).goal) for i in sorted(touched) if search.can_move(i)]
    search.wake(list(search.asleep))
    put_back(state, positions)
    moves = [*search.moves, *(move for move in old if move[0] not in touched), *last]
    return (moves if found else None), search


def positions_of(state: LockState) -> list[int]:
    """Where all grants end; -1 for trucks that are not known."""
    return [-1 if one is None else one.position for one in state.trucks]


def put_back(state: LockState, positions: list[int]) -> None:
    for i, (one, position) in enumerate(zip(state.trucks, positions, strict=True)):
        if one is not None and one.position != position:
            state.place(i, position)


def first_obstacle(state: LockState, j: int) -> tuple[Ints, list[int]]:
    """What a truck cannot take on its next move beyond its reach, and who stands in the way."""
    one = state.truck(j)
    far = reach(state, j)
    if far == one.goal:
        return np.zeros(0, dtype=np.int64), []
    blocked, blockers = obstacles(state, j, far + 1)
    return blocked, trucks_of(blockers)


def clearing(state: LockState, k: int) -> list[Move]:
    """The nearest and the furthest position in reach at which a truck excludes nothing that is marked."""
    one = state.truck(k)
    first, far = one.position + 1, reach(state, k)
    if far < first:
        return []
    low = one.demand.stand_at[first]
    rows = state.marks[one.demand.stand[low : one.demand.stand_at[far + 1]]]
    clear = np.flatnonzero(~np.logical_or.reduceat(rows, one.demand.stand_at[first : far + 1] - low))
    return [(k, first + int(clear[0])), (k, first + int(clear[-1]))] if len(clear) else []
