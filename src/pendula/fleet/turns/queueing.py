"""Which truck waits for which in this tick, and what a waiting truck bars.

A waiting truck bars lower-ranked trucks from a free resource only while its request is ripe, and never one that it
waits for itself, directly or indirectly: bars are edges of the same graph, and one that would close a cycle is left
out. A truck refused as unsafe bars no other, nor does one blocked by a failed truck.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.traffic.lock_state import LockState

Ints = NDArray[np.int64]

_LONGEST = 8


@dataclass(slots=True)
class Queue:
    """The waits of a tick so far. `waits`: for every waiting truck the trucks it waits for."""

    waits: dict[int, set[int]] = field(default_factory=dict)
    # Waiting trucks with ripe requests, in rank order, with all that their next unit excludes.
    ripe: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    # The waits of the last tick: those not known yet in this one may still close a cycle.
    before: dict[int, tuple[int, ...]] = field(default_factory=dict)
    # All that ripe requests exclude together: most units do not touch it.
    _excluded: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._excluded = {resource for _, excluded in self.ripe for resource in excluded}

    def wait(self, i: int, others: tuple[int, ...]) -> None:
        self.waits.setdefault(i, set()).update(others)

    def ask(self, i: int, excluded: frozenset[int]) -> None:
        """The next unit of a truck is blocked by others, and nothing before it is missing."""
        self.ripe.append((i, excluded))
        self._excluded |= excluded

    def barred_by(self, i: int, unit: Ints) -> tuple[int, int] | None:
        """The first waiting truck that bars truck i from a unit, and the resource."""
        resources = unit.tolist()
        if self._excluded.isdisjoint(resources):
            return None
        for waiter, around in self.ripe:
            if waiter != i and not around.isdisjoint(resources) and not self.reaches(waiter, i):
                return waiter, next(resource for resource in resources if resource in around)
        return None

    def reaches(self, start: int, goal: int) -> bool:
        """Whether a truck waits for another one, directly or indirectly."""
        return any(other == goal for other in self.in_the_way_of(start))

    def in_the_way_of(self, start: int) -> Iterator[int]:
        """All trucks that a truck waits for, directly or indirectly; some more than once."""
        seen, todo = {start}, [start]
        while todo:
            here = todo.pop()
            for other in (*self.waits.get(here, ()), *self.before.get(here, ())):
                yield other
                if other not in seen:
                    seen.add(other)
                    todo.append(other)


def waited_for(records: list[Record]) -> dict[int, tuple[int, ...]]:
    """For every truck that waits since the last tick the trucks it waits for."""
    return {
        record.number: record.waiting.cycle or (record.waiting.by,)
        for record in records
        if record.waiting is not None and record.waiting.by is not None
    }


def ripe(record: Record, locks: LockState, whole: bool = False) -> frozenset[int]:
    """What no other truck may hold for the next unit of a truck. Of a unit of many cells only the first is ripe; the
    `whole` unit for a truck that has waited long, since in a stream it would never find all of it free."""
    track = record.track
    assert track is not None
    unit = track.taken(record.grant_um, track.stands[record.granted + 1])
    first = [use.resource for use in unit if whole or use.need_um == unit[0].need_um]
    return frozenset(locks.exclusion.around(np.array(first, dtype=np.int64)).tolist())


def recall(record: Record, locks: LockState) -> None:
    """Rebuild the requests of a restored truck. Its blocker is known and not asked again; otherwise the queue could be
    the answer."""
    waits = record.waiting is not None and record.waiting.theirs is not None and not record.at_rest
    record.ripe = ripe(record, locks) if waits else None


def pause_ms(params: TrafficParams, now_ms: int, since_ms: int | None) -> int:
    """How long nothing is searched for a truck that was refused as unsafe: the cooldown, or as long as the same trucks
    have prevented it, so that pauses double, up to eight cooldowns."""
    waited = 0 if since_ms is None else now_ms - since_ms
    return min(max(params.cooldown_ms, waited), _LONGEST * params.cooldown_ms)
