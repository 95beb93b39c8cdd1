"""The local search for a witness (FLT-LIVE-13): it brings some trucks to positions where they block no other.

Then all others continue as the old witness says: trucks at refuges block no move of it. So the search touches only the
trucks it was asked about and those in their way. It moves them on the columns of the state and undoes every move.
Branches and looks are counted, never timed; when either is used up the search fails, which is safe, since a refusal
always is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush

import numpy as np
from msgspec import Struct

from pendula.fleet.traffic.lock_state import Ints, LockState, Move, trucks_of
from pendula.fleet.traffic.refuge import (
    cycle_of,
    free_positions,
    needed_by,
    needed_by_words,
    needing,
    obstacles,
    reach,
    reach_and_blockers,
    refuge,
)

# Positions where a truck blocks less than at all positions it passes; moving there needs no branch (FLT-LIVE-13).

# How many positions ahead a truck looks for one that blocks less: each costs as much as a whole refuge.
_NEAR = 32


def dominating(state: LockState, i: int) -> int | None:
    """The furthest near position that blocks only what *every* passed position blocks, the present one included. Equal
    to the last passed one is not enough: between them may be a position where the truck blocked nothing."""
    truck = state.truck(i)
    far = min(reach(state, i), truck.position + _NEAR)
    if far == truck.position:
        return None
    # Trucks first: a position that blocks a truck which a passed one does not cannot qualify.
    fits = np.ones(far - truck.position, dtype=np.bool_)
    for word in needed_by_words(state, i, truck.position, far):
        fits &= (word[1:] & ~np.bitwise_and.accumulate(word)[:-1]) == 0
    return _dominating(state, i, (fits.nonzero()[0] + truck.position + 1).tolist())


def _dominating(state: LockState, i: int, candidates: list[int]) -> int | None:
    """The last candidate that blocks only what every position before it blocks, if any."""
    here = state.truck(i).position
    candidates = _within(state, i, here, candidates)
    if not candidates:
        return None
    count = candidates[-1] - here + 1
    blocked, place = _blocked_needs(state, i, range(here, here + count))
    # Blocked for the n-th time at place n means blocked at every place before.
    always = _nth_time(blocked) == place
    size, common = np.bincount(place, minlength=count), np.bincount(place[always], minlength=count)
    fits = (size[1:] == common[1:]) & (common[:-1] > 0)
    return max((position for position in candidates if fits[position - here - 1]), default=None)


def _within(state: LockState, i: int, here: int, candidates: list[int]) -> list[int]:
    """The candidates that block only what the present position blocks."""
    now, _ = _blocked_needs(state, i, range(here, here + 1))
    if not len(now) or not candidates:
        return []
    state.marks[now] = True
    blocked, place = _blocked_needs(state, i, candidates)
    beyond = set(place[~state.marks[blocked]].tolist())
    state.marks[now] = False
    return [position for k, position in enumerate(candidates) if k not in beyond]


def _blocked_needs(state: LockState, i: int, positions: Sequence[int]) -> tuple[Ints, Ints]:
    """What others still need that a truck at one of the positions excludes, and at which of them."""
    shadows = [state.shadow(i, position) for position in positions]
    around = np.concatenate(shadows)
    needed = state.wanted.besides(i, around).nonzero()[0]
    place = np.repeat(np.arange(len(shadows)), [len(shadow) for shadow in shadows])
    return around[needed], place[needed]


def _nth_time(numbers: Ints) -> Ints:
    """For each entry how often its number occurred before."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.diff(ordered, prepend=-1) > 0
    index = np.arange(len(numbers))
    times = np.empty(len(numbers), dtype=np.int64)
    times[order] = index - np.maximum.accumulate(np.where(begins, index, 0))
    return times


# Two trucks that block each other for good: even alone they could not get to rest (FLT-LIVE-13).
# Then they cannot among other trucks either, so such a state needs no search. Exact within its window; trucks that
# leave the window may still get to rest.

# Positions of each truck that are checked: trucks that met on a lane seldom have more ahead.
_WINDOW = 32


def stuck_together(state: LockState, i: int, at_i: int, j: int, at_j: int) -> bool:
    """Whether two trucks at these positions never get to rest, whatever all others do."""
    end_i, end_j = min(state.truck(i).goal, at_i + _WINDOW), min(state.truck(j).goal, at_j + _WINDOW)
    mine = _blocked(state, i, range(at_i, end_i + 1), j, range(at_j, end_j + 1))
    theirs = _blocked(state, j, range(at_j, end_j + 1), i, range(at_i, end_i + 1))
    # Where truck j can be while truck i stands at one position after the other.
    places = _onward([True] + [False] * (end_j - at_j), theirs[0])
    for step in range(end_i - at_i):
        if places[-1] and end_j < state.truck(j).goal:
            return False
        passed = [here and not row[step] for here, row in zip(places, mine, strict=True)]
        places = _onward(passed, theirs[step + 1])
    return not (places[-1] if end_i == state.truck(i).goal else any(places))


def _onward(places: list[bool], blocked: list[bool]) -> list[bool]:
    """Positions of a truck, and all it reaches from them over unblocked units."""
    reached = places[:1]
    for here, barred in zip(places[1:], blocked, strict=True):
        reached.append(here or (reached[-1] and not barred))
    return reached


def _blocked(state: LockState, i: int, own: range, j: int, theirs: range) -> list[list[bool]]:
    """For every position of truck j and every unit of truck i between its own, whether one blocks the other."""
    demand = state.truck(i).demand
    need = demand.needs(own[0], own[-1])
    # A section for several trucks is never filled by two.
    single = state.exclusion.capacity[need] == 1
    begins = np.array(demand.need_from[own[0] + 1 : own[-1] + 2], dtype=np.int64) - demand.need_from[own[0] + 1]
    met = np.zeros(len(need) + 1, dtype=np.int64)
    rows: list[list[bool]] = []
    for position in theirs:
        shadow = state.shadow(j, position)
        state.marks[shadow] = True
        np.cumsum(state.marks[need] & single, out=met[1:])
        state.marks[shadow] = False
        rows.append((met[begins[1:]] > met[begins[:-1]]).tolist())
    return rows


# Most trucks that are sent ahead, or tried in vain, in one search.
_ASKED = 8
# Rounds of one roll-out, and how many looks count as a branch by default.
_ROUNDS = 40
LOOKS = 8
# Looks of a search without a limit.
_ENDLESS = 1 << 62
# The order of trucks in a roll-out: first those with the least left to drive, which empties the map; then those with
# the most, which solves what the first order cannot. Branches seldom solve more.
_ORDERS = (1, -1)


class _Spent(Exception):
    """A search has used up its looks."""


class Outlook(Struct, frozen=True, gc=False):
    """How far a truck can get, the trucks that block it there, and its first and last refuge up to it."""

    far: int
    blockers: int
    refuges: tuple[int, int] | None


class Sleeper(Struct, frozen=True, eq=False, gc=False):
    """A truck that found no refuge; valid until a truck of `mask` moves or another one comes to stand on `way`."""

    outlook: Outlook
    mask: int
    way: Ints


@dataclass(slots=True)
class Search:
    """One search: its remaining branches, its moves so far, the waiting trucks with those that block them, and the
    cycle where it first got stuck."""

    state: LockState
    nodes: int
    moves: list[Move] = field(default_factory=list)
    waiting: dict[int, int] = field(default_factory=dict)
    # Trucks that were sent ahead, or tried in vain, because their route passes a waiting position of another one.
    asked: set[int] = field(default_factory=set)
    stuck: tuple[int, ...] = ()
    cycle: tuple[int, ...] = ()
    asleep: dict[int, Sleeper] = field(default_factory=dict)
    # Those of them that did not drive on in a roll-out, and will not until they are woken.
    idle: set[int] = field(default_factory=set)
    # Looks so far, which cost most of a search beside its branches, and their limit.
    looks: int = 0
    most_looks: int = _ENDLESS
    # The trucks it was asked about, and where all grants ended at the start.
    start: tuple[int, ...] = ()
    begin: tuple[int, ...] = ()
    # Two trucks that are known not to get to rest even alone.
    hopeless_pair: tuple[int, ...] = ()

    def go(self, i: int, position: int) -> None:
        self.state.place(i, position)
        self.moves.append((i, position))
        if self.asleep:
            met = self.state.watched.over(self.state.shadow(i, position)) | 1 << i
            self.wake([k for k, sleeper in self.asleep.items() if sleeper.mask >> i & 1 or met >> k & 1])

    def wake(self, trucks: list[int]) -> None:
        for k in trucks:
            self.state.watched.remove(k, self.asleep.pop(k).way)
        self.idle.difference_update(trucks)

    def outlook(self, i: int) -> Outlook:
        """The outlook of a truck from its position; a futile one is cached until it may have changed."""
        sleeper = self.asleep.get(i)
        if sleeper is not None:
            return sleeper.outlook
        if self.looks >= self.most_looks:
            raise _Spent
        self.looks += 1
        state, truck = self.state, self.state.truck(i)
        far, blockers = reach_and_blockers(state, i)
        words = needed_by_words(state, i, truck.position, far)
        free = free_positions(words)
        if len(free):
            return Outlook(far, blockers, (truck.position + int(free[0]), truck.position + int(free[-1])))
        seen = Outlook(far, blockers, None)
        if far < truck.goal:
            self.asleep[i] = Sleeper(seen, blockers | needing(words), truck.demand.needs(truck.position, far + 1))
            state.watched.add(i, self.asleep[i].way)
        return seen

    # -- the whole of it ---------------------------------------------------------------------------------------------

    def found(self) -> bool:
        """Whether all trucks it was asked about get to a refuge, within its limits."""
        try:
            return self.solved(sorted(self.waiting))
        except _Spent:
            if not self.stuck:
                self.get_stuck()
            # The cycle must name a truck: a refusal without one would be checked again in every tick.
            self.cycle = self.cycle or self.stuck
            return False

    def get_stuck(self) -> None:
        """Note which trucks block each other once nothing moves."""
        self.stuck, self.cycle = tuple(sorted(self.waiting)), cycle_of(self.waiting)

    def solved(self, dirty: list[int]) -> bool:
        """Whether all waiting trucks get to a refuge; `dirty`: those whose route may have become free."""
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
        """Two trucks that cannot get to rest even alone: one that the search was asked about, since all others had a
        schedule, and one that it blocks mutually."""
        for i in self.start:
            mutual = [k for k in trucks_of(self.waiting.get(i, 0)) if self.waiting.get(k, 0) >> i & 1]
            for k in mutual:
                if stuck_together(self.state, i, self.begin[i], k, self.begin[k]):
                    return min(i, k), max(i, k)
        return ()

    def attempt(self, way: Callable[[], bool]) -> bool:
        """Try a continuation; undone if it fails."""
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
        """Whether the search succeeds after a truck has moved to a position."""
        self.go(k, position)
        return self.solved([k, *(j for j, mask in self.waiting.items() if mask >> k & 1)])

    def rolled_out(self, order: int) -> bool:
        """Whether all get to rest when each drives on as far as possible, again and again: a convoy on a ring always
        blocks some truck, and still gets home."""
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
        """One round in which each truck drives on; returns whether any did. An idle truck takes its turn only when one
        before it wakes it."""
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
        """Whether a truck drives on. Not into a junction or a window of another truck, which would then have to wait;
        `anywhere` if no truck gets on otherwise: an aisle of many stations consists of windows."""
        truck, seen = self.state.truck(i), self.outlook(i)
        if seen.far == truck.goal:
            self.settled(i, seen.far)
            return True
        self.waiting[i] = seen.blockers
        if seen.refuges is not None:
            self.settled(i, seen.refuges[1])
            return True
        target = seen.far if anywhere else truck.demand.wanted_between(truck.position, seen.far)
        if target is None or target == truck.position:
            if i in self.asleep:
                self.idle.add(i)
            return False
        self.go(i, target)
        return True

    # -- moves that cost nothing -------------------------------------------------------------------------------------

    def settle(self, dirty: list[int]) -> None:
        """Move trucks to refuges, and to where they block less, until nothing moves."""
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
        """Trucks that block waiting ones and were not examined yet; from now on they wait too."""
        mask, known = 0, 0
        for i, blockers in self.waiting.items():
            mask |= blockers
            known |= 1 << i
        fresh = [k for k in trucks_of(mask & ~known) if self.can_move(k)]
        self.waiting.update(dict.fromkeys(fresh, 0))
        return fresh

    def can_move(self, k: int) -> bool:
        truck = self.state.truck(k)
        return not truck.frozen and truck.position < truck.goal

    def to_refuge(self, i: int) -> bool:
        """Move to the next refuge if the route is free; otherwise note which trucks block it."""
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
        """Move waiting trucks as far as they can get: what others no longer need may have become a refuge."""
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
        """Moves that are tried only once, before the search gets stuck."""
        return 0 if self.stuck else self.less_in_the_way() or self.sent_ahead()

    def less_in_the_way(self) -> int:
        for i in cycle_of(self.waiting):
            target = dominating(self.state, i)
            if target is not None:
                self.go(i, target)
                return 1 << i
        return 0

    def sent_ahead(self) -> int:
        """A truck that can get to rest and needs what a waiting truck could stand on meanwhile."""
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
                # All waiting trucks may have a refuge now.
                return -1
        return 0

    # -- branches ----------------------------------------------------------------------------------------------------

    def branches(self) -> list[Move]:
        """For the trucks of one cycle and each truck in their way: the nearest and the furthest position that lets them
        go on."""
        moves: dict[Move, None] = {}
        for j in cycle_of(self.waiting):
            blocked, blockers = first_obstacle(self.state, j)
            around = self.state.exclusion.around(blocked)
            self.state.marks[around] = True
            for k in blockers:
                if self.can_move(k):
                    moves |= dict.fromkeys(clearing(self.state, k))
            self.state.marks[around] = False
        return list(moves)


def find_witness(
    state: LockState, start: list[int], old: list[Move], nodes: int, looks: int = _ENDLESS
) -> tuple[list[Move] | None, Search]:
    """A schedule from the ends of all grants: trucks of `start` and those in their way go to refuges, then all others
    follow the old witness, then those few go to rest. None if none was found within the given branches and looks. The
    old witness need not include the trucks of `start`."""
    positions = positions_of(state)
    moving = tuple(i for i in start if not state.truck(i).frozen)
    waiting = dict.fromkeys(moving, 0)
    search = Search(state, nodes, waiting=waiting, start=moving, begin=tuple(positions), most_looks=looks)
    succeeded = search.found()
    touched = {i for i, _ in search.moves} | set(start)
    last = [(i, state.truck(i).goal) for i in sorted(touched) if search.can_move(i)]
    search.wake(list(search.asleep))
    put_back(state, positions)
    moves = [*search.moves, *(move for move in old if move[0] not in touched), *last]
    return (moves if succeeded else None), search


def positions_of(state: LockState) -> list[int]:
    """The ends of all grants; -1 for unknown trucks."""
    return [-1 if truck is None else truck.position for truck in state.trucks]


def put_back(state: LockState, positions: list[int]) -> None:
    for i, (truck, position) in enumerate(zip(state.trucks, positions, strict=True)):
        if truck is not None and truck.position != position:
            state.place(i, position)


def first_obstacle(state: LockState, j: int) -> tuple[Ints, list[int]]:
    """The blocked resources of a truck beyond its reach, with the blocking trucks."""
    truck = state.truck(j)
    far = reach(state, j)
    if far == truck.goal:
        return np.zeros(0, dtype=np.int64), []
    blocked, blockers = obstacles(state, j, far + 1)
    return blocked, trucks_of(blockers)


def clearing(state: LockState, k: int) -> list[Move]:
    """The nearest and the furthest reachable position at which a truck excludes nothing that is marked."""
    truck = state.truck(k)
    first, far = truck.position + 1, reach(state, k)
    if far < first:
        return []
    low = truck.demand.stand_at[first]
    rows = state.marks[truck.demand.stand[low : truck.demand.stand_at[far + 1]]]
    clear = np.flatnonzero(~np.logical_or.reduceat(rows, truck.demand.stand_at[first : far + 1] - low))
    return [(k, first + int(clear[0])), (k, first + int(clear[-1]))] if len(clear) else []
