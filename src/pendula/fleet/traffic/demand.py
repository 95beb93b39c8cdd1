"""What trucks demand: one relation of mutual exclusion, complete routes to rest, and closed places."""

from collections.abc import Iterable, Mapping, Sequence
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
