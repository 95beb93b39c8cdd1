"""The state of all locks: held resources, the end of each grant, and the route of each truck to rest.

Columns over trucks give for every resource which trucks block it now (`blockers`) and at rest (`rests`), which still
need it (`wanted`), and which need something that excludes it (`needers`). They follow from demands and positions alone:
`place` moves a truck and updates them, so a search may try a schedule and undo it.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.map.exclusion import Relation, expanded
from pendula.fleet.map.site import CompiledMap

# The relation of mutual exclusion as a value.
# Resources are numbered. Row r lists every resource that another truck may not hold beside r, r itself included,
# ascending; the relation is symmetric. Overlapping areas, opposite directions, turning zones, sections and the
# following gap are all entries of it: nothing else makes a truck wait. A resource with a capacity above one, the
# token of a section for several trucks, relates to itself alone and is blocked once that many trucks hold it.

Ints = NDArray[np.int64]
# Most cached answers of a relation: some tens of megabytes.
_KEPT = 40_000


@dataclass(frozen=True, eq=False)
class Exclusion:
    """Compressed rows: row r is `to[at[r]:at[r + 1]]`."""

    at: Ints
    to: Ints
    capacity: Ints
    _shadows: dict[bytes, Ints] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.capacity)

    @classmethod
    def of_site(cls, site: CompiledMap) -> "Exclusion":
        """The relation of a compiled map: conflicts, following, tokens of sections. Expanded once while the map is in
        use; all restored engines share it."""
        exclusion = _of_sites.get(site)
        if exclusion is None:
            exclusion = _of_sites[site] = cls._expanded(site)
        return exclusion

    @classmethod
    def _expanded(cls, site: CompiledMap) -> Self:
        count = site.token(len(site.sections))
        capacity = [site.capacity(resource) for resource in range(count)]
        parts = [_members(site.conflicts), _members(site.following)]
        return cls.of_numbers(count, [row for row, _ in parts], [number for _, number in parts], capacity)

    @classmethod
    def of_pairs(cls, count: int, pairs: Iterable[tuple[int, int]], capacity: Mapping[int, int] | None = None) -> Self:
        """A relation over `count` resources from pairs in any order; every resource relates to itself."""
        listed = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        rooms = [1] * count
        for resource, room in (capacity or {}).items():
            rooms[resource] = room
        return cls.of_numbers(count, [listed[:, 0], listed[:, 1]], [listed[:, 1], listed[:, 0]], rooms)

    @classmethod
    def of_numbers(cls, count: int, rows: list[Ints], numbers: list[Ints], capacity: list[int]) -> Self:
        """Rows and numbers of all pairs, in both directions; raises `ValueError` if a resource with a capacity above
        one relates to another one, since no count could decide what is blocked then."""
        own = np.arange(count, dtype=np.int64)
        keys = np.unique(np.concatenate([*rows, own]) * count + np.concatenate([*numbers, own]))
        row, to = keys // count, keys % count
        room = np.array(capacity, dtype=np.int64)
        if np.any((room[row] > 1) & (row != to)):
            raise ValueError("a resource with room for several conflicts with another one")
        return cls(np.searchsorted(row, np.arange(count + 1)).astype(np.int64), to, room)

    @cached_property
    def shared(self) -> frozenset[int]:
        """The resources that more than one truck may hold."""
        return frozenset(np.flatnonzero(self.capacity > 1).tolist())

    def row(self, resource: int) -> Ints:
        return self.to[self.at[resource] : self.at[resource + 1]]

    def shadow(self, resources: Ints) -> Ints:
        """Everything that excludes one of the resources, without repetitions, ascending. Cached: routes share standing
        sets."""
        key = resources.tobytes()
        shadow = self._shadows.get(key)
        if shadow is None:
            if len(self._shadows) >= _KEPT:
                self._shadows.clear()
            shadow = self._shadows[key] = np.unique(self.around(resources))
        return shadow

    def around(self, resources: Ints) -> Ints:
        """Everything that excludes one of the resources: their rows concatenated, with repetitions."""
        low = self.at[resources]
        counts = self.at[resources + 1] - low
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        resources_around: Ints = self.to[np.arange(total, dtype=np.int64) + np.repeat(low - ends + counts, counts)]
        return resources_around


_of_sites: WeakKeyDictionary[CompiledMap, Exclusion] = WeakKeyDictionary()


def _members(relation: Relation) -> tuple[Ints, Ints]:
    rows = np.repeat(np.arange(len(relation), dtype=np.int64), relation.at[1:] - relation.at[:-1])
    return expanded(rows, relation.lo, relation.hi)


# A complete route to rest as the locks see it: standing positions in order, and what a truck holds between and at
# them.
# Positions are numbered 0 to K; K is at rest. Cells in which no truck may stop are not positions: the unit through
# them ends at the next position behind. What a truck holds at the start belongs to its standing sets until the
# position at which it is released.

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Demand:
    """Compressed rows, each ascending. Row k of `need`: what must be held to get from position k - 1 to k; row 0 is
    held at the start. Row k of `stand`: what is still held when the truck stands at k."""

    need_at: Ints
    need: Ints
    stand_at: Ints
    stand: Ints
    # Junction and conflict windows: standing there is allowed, but avoided if that costs nothing.
    unwanted: Bools

    @classmethod
    def of_rows(
        cls, need: Sequence[Sequence[int]], stand: Sequence[Sequence[int]], unwanted: Sequence[bool] | None = None
    ) -> Self:
        """Raises `ValueError` if a position has no resources, or keeps one that was never taken."""
        if len(need) != len(stand) or not need:
            raise ValueError("a way to rest has a position at least, and for each what is needed and what is kept")
        before: set[int] = set(need[0])
        for k, (taken, kept) in enumerate(zip(need, stand, strict=True)):
            if not kept:
                raise ValueError(f"position {k} is nowhere: a truck that stands holds something")
            if not set(kept) <= before | set(taken):
                raise ValueError(f"position {k} keeps what was not taken on the way there")
            before = set(kept)
        marks = np.zeros(len(need), dtype=np.bool_) if unwanted is None else np.array(unwanted, dtype=np.bool_)
        return cls(*_compressed(need), *_compressed(stand), marks)

    @cached_property
    def last(self) -> int:
        """The position at rest."""
        return len(self.need_at) - 2

    # Single entries of an array cost more than those of a tuple, and every query needs two.
    @cached_property
    def need_from(self) -> tuple[int, ...]:
        """Where row k of `need` begins."""
        return tuple(self.need_at.tolist())

    @cached_property
    def stand_from(self) -> tuple[int, ...]:
        """Where row k of `stand` begins."""
        return tuple(self.stand_at.tolist())

    def needs(self, after: int, upto: int) -> Ints:
        """What must be taken to get from position `after` to position `upto`, with repetitions."""
        return self.need[self.need_from[after + 1] : self.need_from[upto + 1]]

    def stands(self, position: int) -> Ints:
        return self.stand[self.stand_from[position] : self.stand_from[position + 1]]

    def wanted_between(self, after: int, upto: int) -> int | None:
        """The last position behind `after` and up to `upto` that is not unwanted; None if all are."""
        last = self._last_wanted[upto]
        return last if last > after else None

    @cached_property
    def _last_wanted(self) -> tuple[int, ...]:
        """For each position the last one up to it that is not unwanted, -1 where all are."""
        wanted = np.where(self.unwanted, -1, np.arange(len(self.unwanted)))
        return tuple(np.maximum.accumulate(wanted).tolist())

    def need_positions(self) -> Ints:
        """For every entry of `need` the position it is needed for."""
        return np.repeat(np.arange(self.last + 1, dtype=np.int64), self.need_at[1:] - self.need_at[:-1])


def _compressed(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    ordered = [sorted(set(row)) for row in rows]
    at = np.cumsum([0, *(len(row) for row in ordered)], dtype=np.int64)
    return at, np.array([number for row in ordered for number in row], dtype=np.int64)


# Closed places as the locks see them: no truck is granted any of it unless it already stands in it.
# A truck in a closed place leaves it: its route there is granted unit by unit until it is outside. If its route leads
# over another closed place, or over the same one again, it ends before that.


class Closing(Struct, frozen=True, array_like=True):
    """A place closed by an operator: its name, since when, by whom and why."""

    resource: str
    since_ms: int
    order_id: str
    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class Shut:
    """One closed place: its resources, and the edges that routes avoid. `called`: the resource it is shown as; None if
    each of its cells has its own name."""

    resources: frozenset[int]
    edges: frozenset[int]
    called: int | None = None


@dataclass(frozen=True, slots=True)
class Met:
    """Where a route meets a closed place: the last standing position before it, and the resource it is shown as."""

    position: int
    resource: int


def first_shut(shut: Iterable[Shut], demand: Demand, position: int) -> Met | None:
    """The first closed place on the rest of a route, except the one that the truck is leaving."""
    ahead = set(demand.needs(position, demand.last).tolist())
    closed = [place for place in shut if not ahead.isdisjoint(place.resources)]
    if not closed:
        return None
    left = _stood_in(closed, demand, position)
    for k in range(position, demand.last):
        for resource in demand.needs(k, k + 1).tolist():
            met = next((place for place in closed if resource in place.resources and place not in left), None)
            if met is not None:
                return Met(k, resource if met.called is None else met.called)
        left = _stood_in(left, demand, k + 1)
    return None


def _stood_in(shut: Iterable[Shut], demand: Demand, position: int) -> list[Shut]:
    stands = frozenset(np.asarray(demand.stands(position)).tolist())
    return [place for place in shut if not stands.isdisjoint(place.resources)]


# Columns over trucks: for every resource one bit per truck, in words of 64.
# One word of all resources is contiguous, so that a query about one truck, or about many resources, reads no more
# than needed.

Words = NDArray[np.uint64]
_WORD = 64
_BITS = [np.uint64(1 << bit) for bit in range(_WORD)]
_ALL_BUT = [~bit for bit in _BITS]


class Column:
    """A set of trucks for every resource."""

    def __init__(self, size: int, trucks: int) -> None:
        count = max(1, -(-trucks // _WORD))
        self._words = [np.zeros(size, dtype=np.uint64) for _ in range(count)]
        self._places = range(count)

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin._words, twin._places = [word.copy() for word in self._words], self._places
        return twin

    def add(self, i: int, resources: Ints) -> None:
        self._words[i // _WORD][resources] |= _BITS[i % _WORD]

    def remove(self, i: int, resources: Ints) -> None:
        self._words[i // _WORD][resources] &= _ALL_BUT[i % _WORD]

    def clear(self, i: int) -> None:
        """Remove a truck everywhere."""
        self._words[i // _WORD] &= _ALL_BUT[i % _WORD]

    def at(self, resource: int) -> int:
        """The trucks of one resource, as bits."""
        return as_mask([int(word[resource]) for word in self._words])

    def over(self, resources: Ints) -> int:
        """The trucks of any of the resources, as bits."""
        return as_mask([int(np.bitwise_or.reduce(word[resources])) for word in self._words])

    def besides(self, i: int, resources: Ints) -> Words:
        """Nonzero for each of the resources that has a truck other than this one."""
        own = i // _WORD
        words = self._words[own][resources]
        words &= _ALL_BUT[i % _WORD]
        for place in self._places:
            if place != own:
                words |= self._words[place][resources]
        return words

    def words_besides(self, i: int, resources: Ints) -> list[Words]:
        """The trucks of each of the resources without this one, word by word."""
        words = [word[resources] for word in self._words]
        words[i // _WORD] &= _ALL_BUT[i % _WORD]
        return words


def as_mask(words: list[int]) -> int:
    """The trucks of some words as the bits of one number."""
    mask = words[0]
    for place in range(1, len(words)):
        mask |= words[place] << (place * _WORD)
    return mask


def trucks_of(mask: int) -> list[int]:
    """The trucks of a mask, ascending."""
    trucks = []
    while mask:
        low = mask & -mask
        trucks.append(low.bit_length() - 1)
        mask ^= low
    return trucks


# A move of a witness: a truck and its next standing position.
Move = tuple[int, int]
NO_TRUCK = -1


@dataclass(frozen=True, eq=False, slots=True)
class Expiry:
    """Resources by the last position of a route that needs them: `resource[at[k]:at[k + 1]]` for k."""

    at: tuple[int, ...]
    resource: Ints

    def between(self, after: int, upto: int) -> Ints:
        return self.resource[self.at[after + 1] : self.at[upto + 1]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The cycle that prevented a route, with the versions of its members."""

    cycle: tuple[int, ...]
    versions: tuple[int, ...]

    @classmethod
    def of(cls, state: "LockState", i: int, cycle: tuple[int, ...]) -> Self:
        return cls(cycle, tuple(state.truck(j).version for j in (i, *cycle)))

    def still(self, state: "LockState", i: int) -> bool:
        return self.versions == tuple(state.truck(j).version for j in (i, *self.cycle))


@dataclass(eq=False)
class Truck:
    """One truck: `position` is the end of its grant, `goal` how far it can get at all."""

    demand: Demand
    position: int
    goal: int
    # Last position that needs a resource, and one that excludes it.
    wants: Expiry
    shuns: Expiry
    held: set[int] = field(default_factory=set)
    # Held resources into which a failed truck reaches without a grant. Each excludes others only from itself.
    reaches: set[int] = field(default_factory=set)
    frozen: bool = False
    # Increases with every grant, route and failure: a refusal stays valid while the versions of its members stay.
    version: int = 0
    # What standing at a position excludes, and what the position before did not; built on demand.
    shadows: dict[int, Ints] = field(default_factory=dict)
    fresh: dict[int, Ints] = field(default_factory=dict)

    @property
    def to_go(self) -> int:
        """The number of positions left."""
        return self.goal - self.position

    def copied(self) -> "Truck":
        """A copy that changes independently; what follows from the route alone is shared."""
        twin = object.__new__(Truck)
        twin.__dict__ = self.__dict__.copy()
        twin.held, twin.reaches = set(self.held), set(self.reaches)
        return twin


class LockState:
    def __init__(self, exclusion: Exclusion, count: int) -> None:
        self.exclusion = exclusion
        self.trucks: list[Truck | None] = [None] * count
        size = len(exclusion)
        self.blockers, self.rests = Column(size, count), Column(size, count)
        self.wanted, self.needers = Column(size, count), Column(size, count)
        # Used during a search only: where trucks watch for others that come to stand there.
        self.watched = Column(size, count)
        self.owner: Ints = np.full(size, NO_TRUCK, dtype=np.int64)
        self.sharers: dict[int, list[int]] = {resource: [] for resource in sorted(exclusion.shared)}
        # Holders beside the owner: only a failed truck may be where another one is granted.
        self.crowd: dict[int, list[int]] = {}
        # Failed trucks by the resources they reach into.
        self.reached: dict[int, list[int]] = {}
        self.witness: list[Move] = []
        # How all trucks get home after all failures: the witness from before the first present failure, preceded by
        # those that brought trucks to their waiting positions at later failures.
        self.home: list[Move] = []
        # Places closed by operators.
        self.shut: tuple[Shut, ...] = ()
        self.marks: NDArray[np.bool_] = np.zeros(size, dtype=np.bool_)
        self._last: Ints = np.full(size, -1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.trucks)

    def copy(self) -> Self:
        """A copy to which a failed tick returns."""
        twin = copy(self)
        for name in ("blockers", "rests", "wanted", "needers", "watched", "owner", "marks", "_last"):
            setattr(twin, name, getattr(self, name).copy())
        twin.trucks = [None if truck is None else truck.copied() for truck in self.trucks]
        twin.sharers = {resource: list(holders) for resource, holders in self.sharers.items()}
        twin.crowd = {resource: list(holders) for resource, holders in self.crowd.items()}
        twin.reached = {resource: list(trucks) for resource, trucks in self.reached.items()}
        twin.witness, twin.home = list(self.witness), list(self.home)
        return twin

    def truck(self, i: int) -> Truck:
        truck = self.trucks[i]
        assert truck is not None, f"truck {i} has no way yet"
        return truck

    def known(self) -> list[int]:
        return [i for i, truck in enumerate(self.trucks) if truck is not None]

    def moving(self) -> list[int]:
        """The movable trucks: known, and not failed."""
        return [i for i, truck in enumerate(self.trucks) if truck is not None and not truck.frozen]

    @property
    def is_limited(self) -> bool:
        """Whether a failed truck or a closed place may keep others from getting to rest."""
        return bool(self.shut) or len(self.moving()) < len(self.known())

    def standing(self, i: int) -> Ints:
        """What a truck holds at the end of its grant; a failed one keeps everything."""
        truck = self.truck(i)
        return np.array(sorted(truck.held), dtype=np.int64) if truck.frozen else truck.demand.stands(truck.position)

    def kept_from_others(self, i: int) -> Ints:
        """Everything that excludes others because of what a truck holds now, with repetitions."""
        truck = self.truck(i)
        whole = np.array(sorted(truck.held - truck.reaches), dtype=np.int64)
        return np.concatenate([self.exclusion.around(whole), np.array(sorted(truck.reaches), dtype=np.int64)])

    def shadow(self, i: int, position: int) -> Ints:
        """What a truck at a position excludes, without repetitions, ascending."""
        truck = self.truck(i)
        shadow = truck.shadows.get(position)
        if shadow is None:
            shadow = truck.shadows[position] = self.exclusion.shadow(truck.demand.stands(position))
        return shadow

    def fresh(self, i: int, position: int) -> Ints:
        """What a truck at a position excludes and did not exclude at the position before."""
        truck = self.truck(i)
        fresh = truck.fresh.get(position)
        if fresh is None:
            before, after = self.shadow(i, position - 1), self.shadow(i, position)
            self.marks[before] = True
            fresh = truck.fresh[position] = after[~self.marks[after]]
            self.marks[before] = False
        return fresh

    # -- columns -----------------------------------------------------------------------------------------------------

    def prepared(self, i: int, demand: Demand, position: int) -> Truck:
        """Put a truck on a new route, with the end of its grant on it; it keeps what it holds."""
        before = self.trucks[i]
        fresh = Truck(demand, position, demand.last, *self._expiries(demand))
        if before is not None:
            fresh.held, fresh.reaches, fresh.version = before.held, before.reaches, before.version + 1
        return fresh

    def install(self, i: int, truck: Truck | None) -> None:
        """Replace the data of a truck; None removes it."""
        self._leave(i)
        self.trucks[i] = truck
        self._enter(i)

    def _leave(self, i: int) -> None:
        if self.trucks[i] is not None:
            for column in (self.blockers, self.rests, self.wanted, self.needers):
                column.clear(i)

    def set_frozen(self, i: int, extra: list[int], reaches: list[int]) -> None:
        """Freeze a failed truck: it stands on all it holds and needs nothing."""
        self._leave(i)
        self.hold(i, extra)
        self.reach_into(i, reaches)
        truck = self.truck(i)
        truck.frozen = True
        truck.version += 1
        self._enter(i)

    def set_goal(self, i: int, goal: int) -> None:
        """Set how far a truck can get: less than its route if a failed one cuts it off."""
        self._leave(i)
        self.truck(i).goal = goal
        self._enter(i)

    def _enter(self, i: int) -> None:
        truck = self.trucks[i]
        if truck is None:
            return
        if truck.frozen:
            kept = self.kept_from_others(i)
            self.blockers.add(i, kept)
            self.rests.add(i, kept)
            return
        self.blockers.add(i, self.exclusion.around(self.standing(i)))
        # A cut-off truck may still come to its rest node, so no other route may lead through it either.
        ends = [truck.demand.stands(k) for k in (truck.goal, truck.demand.last)]
        self.rests.add(i, self.exclusion.around(np.concatenate(ends)))
        self._set_needs(i, truck.position, truck.goal)

    def _set_needs(self, i: int, position: int, goal: int) -> None:
        truck = self.truck(i)
        if goal < truck.demand.last:
            rows = truck.demand.needs(position, goal)
            self.wanted.add(i, rows)
            self.needers.add(i, self.exclusion.around(rows))
        else:
            self.wanted.add(i, truck.wants.between(position, goal))
            self.needers.add(i, truck.shuns.between(position, goal))

    def place(self, i: int, position: int) -> None:
        """Move the end of a grant, forward or back."""
        truck = self.truck(i)
        self.blockers.remove(i, self.shadow(i, truck.position))
        self.blockers.add(i, self.shadow(i, position))
        if truck.goal < truck.demand.last:
            # Cut off: last needs of the whole route do not apply to a shortened one.
            self.wanted.clear(i)
            self.needers.clear(i)
            self._set_needs(i, position, truck.goal)
        elif position > truck.position:
            self.wanted.remove(i, truck.wants.between(truck.position, position))
            self.needers.remove(i, truck.shuns.between(truck.position, position))
        else:
            self.wanted.add(i, truck.wants.between(position, truck.position))
            self.needers.add(i, truck.shuns.between(position, truck.position))
        truck.position = position

    def _expiries(self, demand: Demand) -> tuple[Expiry, Expiry]:
        positions = demand.need_positions()
        counts = self.exclusion.at[demand.need + 1] - self.exclusion.at[demand.need]
        return (
            self._expiry(demand.need, positions, demand.last),
            self._expiry(self.exclusion.around(demand.need), np.repeat(positions, counts), demand.last),
        )

    def _expiry(self, resources: Ints, positions: Ints, last: int) -> Expiry:
        np.maximum.at(self._last, resources, positions)
        ordered = np.flatnonzero(self._last >= 0)
        order = np.argsort(self._last[ordered], kind="stable")
        ordered = ordered[order]
        at = np.searchsorted(self._last[ordered], np.arange(last + 2))
        self._last[ordered] = -1
        return Expiry(tuple(at.tolist()), ordered)

    # -- what is held ------------------------------------------------------------------------------------------------

    def hold(self, i: int, resources: list[int]) -> None:
        held, reaches = self.truck(i).held, self.truck(i).reaches
        for resource in resources:
            if resource in held and resource not in reaches:
                continue
            held.add(resource)
            if resource in reaches:
                self._draw_back(i, resource)
            if resource in self.sharers:
                self.sharers[resource].append(i)
            elif self.owner[resource] == NO_TRUCK:
                self.owner[resource] = i
            else:
                self.crowd.setdefault(resource, []).append(i)

    def reach_into(self, i: int, resources: list[int]) -> None:
        """Truck i is known to be in a part of these and no farther: others may have what excludes them, but not
        them."""
        truck = self.truck(i)
        for resource in resources:
            if resource in self.sharers:
                self.hold(i, [resource])
            elif resource not in truck.held:
                truck.held.add(resource)
                truck.reaches.add(resource)
                self.reached.setdefault(resource, []).append(i)

    def _draw_back(self, i: int, resource: int) -> None:
        self.truck(i).reaches.remove(resource)
        self.reached[resource].remove(i)
        if not self.reached[resource]:
            del self.reached[resource]

    def drop(self, i: int, resources: list[int]) -> None:
        held, reaches = self.truck(i).held, self.truck(i).reaches
        for resource in resources:
            if resource not in held:
                continue
            held.remove(resource)
            if resource in reaches:
                self._draw_back(i, resource)
            elif resource in self.sharers:
                self.sharers[resource].remove(i)
            elif self.owner[resource] != i:
                self.crowd[resource].remove(i)
                # An entry without a truck would still count, and no restored state has one.
                if not self.crowd[resource]:
                    del self.crowd[resource]
            else:
                waiting = self.crowd.pop(resource, [])
                self.owner[resource] = waiting[0] if waiting else NO_TRUCK
                if waiting[1:]:
                    self.crowd[resource] = waiting[1:]

    def in_the_way(self, i: int, resources: Ints) -> list[tuple[int, int]]:
        """Other trucks that hold something that excludes a resource: (resource, truck), in order of both."""
        if not self._is_held_against(i, resources):
            return []
        return [(resource, j) for resource in resources.tolist() for j in self._holders_against(i, resource)]

    def _is_held_against(self, i: int, resources: Ints) -> bool:
        """Whether another truck may hold what excludes one of several resources; certain if False."""
        owners = self.owner[self.exclusion.shadow(resources)]
        if self.crowd or self.reached or ((owners != NO_TRUCK) & (owners != i)).any():
            return True
        return bool(self.sharers) and not self.sharers.keys().isdisjoint(resources.tolist())

    def _holders_against(self, i: int, resource: int) -> list[int]:
        if resource in self.sharers:
            others = sorted(j for j in self.sharers[resource] if j != i)
            return others if len(others) >= int(self.exclusion.capacity[resource]) else []
        row = self.exclusion.row(resource)
        owners = self.owner[row]
        holders = set(owners[(owners != NO_TRUCK) & (owners != i)].tolist())
        if self.crowd:
            holders |= {j for excluded in row.tolist() for j in self.crowd.get(excluded, ()) if j != i}
        holders.update(j for j in self.reached.get(resource, ()) if j != i)
        return sorted(holders)
