"""The state of all locks: held resources, the end of each grant, and the route of each truck to rest.

Columns over trucks give for every resource which trucks block it now (`blockers`) and at rest (`rests`), which still
need it (`wanted`), and which need something that excludes it (`needers`). They follow from demands and positions alone:
`place` moves a truck and updates them, so a search may try a schedule and undo it.
"""

from copy import copy
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.traffic.demand import Demand, Exclusion, Shut

# Columns over trucks: for every resource one bit per truck, in words of 64.
# One word of all resources is contiguous, so that a query about one truck, or about many resources, reads no more
# than needed.

Ints = NDArray[np.int64]
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
