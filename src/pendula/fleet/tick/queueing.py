"""Who waits for whom in this tick, and whom a waiter bars from what it needs next.

A waiter bars lower-ranked trucks from a free resource only while its request is ripe, and never one that it waits for
itself, directly or through others: bars are edges of the same graph, and one that would close a circle is not drawn. A
truck refused for the sake of the others bars nobody, nor does one that a failed truck stands in the way of.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.driving.records import Record
from pendula.fleet.traffic.lock_state import LockState

Ints = NDArray[np.int64]


@dataclass(slots=True)
class Queue:
    """The waits of a tick so far. `waits`: for every waiting truck those it waits for."""

    waits: dict[int, set[int]] = field(default_factory=dict)
    # Waiters with ripe requests, in rank order, with all that their next unit excludes.
    ripe: list[tuple[int, frozenset[int]]] = field(default_factory=list)

    def wait(self, i: int, others: tuple[int, ...]) -> None:
        self.waits.setdefault(i, set()).update(others)

    def ask(self, i: int, excluded: frozenset[int]) -> None:
        """The next unit of a truck is blocked by what others hold, and nothing before it is missing."""
        self.ripe.append((i, excluded))

    def barred_by(self, i: int, unit: Ints) -> tuple[int, int] | None:
        """The first waiter that bars truck i from a unit, and the resource it is about."""
        resources = unit.tolist()
        for waiter, around in self.ripe:
            if waiter != i and not around.isdisjoint(resources) and not self.reaches(waiter, i):
                return waiter, next(resource for resource in resources if resource in around)
        return None

    def reaches(self, start: int, goal: int) -> bool:
        """Whether a truck waits for another one, directly or through others."""
        seen, todo = {start}, [start]
        while todo:
            for other in self.waits.get(todo.pop(), ()):
                if other == goal:
                    return True
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return False


def ripe(record: Record, locks: LockState) -> frozenset[int]:
    """All that nobody else may hold beside what a truck needs next. Of a unit of many cells only the first is ripe:
    everything before a resource has to be granted."""
    track = record.track
    assert track is not None
    unit = track.taken(record.grant_um, track.stands[record.granted + 1])
    first = np.array([use.resource for use in unit if use.need_um == unit[0].need_um], dtype=np.int64)
    return frozenset(locks.exclusion.around(first).tolist())
