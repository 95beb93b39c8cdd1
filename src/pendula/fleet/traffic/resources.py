"""The relation of mutual exclusion as a value.

Resources are numbered. Row r lists every resource that another truck may not hold beside r, r itself included,
ascending; the relation is symmetric. Overlapping areas, opposite directions, turning zones, sections and the following
gap are all entries of it: nothing else makes a truck wait. A resource with a capacity above one, the token of a section
for several trucks, relates to itself alone and is blocked once that many trucks hold it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.exclusion.relation import Relation, expanded
from pendula.fleet.site.compiled_map import CompiledMap

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
