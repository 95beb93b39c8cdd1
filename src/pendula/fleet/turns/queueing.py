"""Who waits for whom in this tick, and whom a waiter bars from what it needs next.

A waiter bars lower-ranked trucks from a free resource only while its request is ripe, and never one that it waits for
itself, directly or through others: bars are edges of the same graph, and one that would close a circle is not drawn. A
truck refused for the sake of the others bars nobody, nor does one that a failed truck stands in the way of.
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
    """The waits of a tick so far. `waits`: for every waiting truck those it waits for."""

    waits: dict[int, set[int]] = field(default_factory=dict)
    # Waiters with ripe requests, in rank order, with all that their next unit excludes.
    ripe: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    # Who waited for whom a tick ago: what is not known yet in this one may still close a circle.
    before: dict[int, tuple[int, ...]] = field(default_factory=dict)
    # All that ripe requests exclude together: most units meet nothing of it.
    _excluded: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._excluded = {resource for _, excluded in self.ripe for resource in excluded}

    def wait(self, i: int, others: tuple[int, ...]) -> None:
        self.waits.setdefault(i, set()).update(others)

    def ask(self, i: int, excluded: frozenset[int]) -> None:
        """The next unit of a truck is blocked by what others hold, and nothing before it is missing."""
        self.ripe.append((i, excluded))
        self._excluded |= excluded

    def barred_by(self, i: int, unit: Ints) -> tuple[int, int] | None:
        """The first waiter that bars truck i from a unit, and the resource it is about."""
        resources = unit.tolist()
        if self._excluded.isdisjoint(resources):
            return None
        for waiter, around in self.ripe:
            if waiter != i and not around.isdisjoint(resources) and not self.reaches(waiter, i):
                return waiter, next(resource for resource in resources if resource in around)
        return None

    def reaches(self, start: int, goal: int) -> bool:
        """Whether a truck waits for another one, directly or through others."""
        return any(other == goal for other in self.in_the_way_of(start))

    def in_the_way_of(self, start: int) -> Iterator[int]:
        """All that a truck waits for, directly or through others; some more than once."""
        seen, todo = {start}, [start]
        while todo:
            here = todo.pop()
            for other in (*self.waits.get(here, ()), *self.before.get(here, ())):
                yield other
                if other not in seen:
                    seen.add(other)
                    todo.append(other)


def waited_for(records: list[Record]) -> dict[int, tuple[int, ...]]:
    """For every truck that waits since the last tick those it waits for."""
    return {
        one.number: one.waiting.cycle or (one.waiting.by,)
        for one in records
        if one.waiting is not None and one.waiting.by is not None
    }


def ripe(record: Record, locks: LockState, whole: bool = False) -> frozenset[int]:
    """All that nobody else may hold beside what a truck needs next. Of a unit of many cells only the first is ripe, or
    the `whole` for a truck that has waited long: it would never find all of it free in the midst of a stream."""
    track = record.track
    assert track is not None
    unit = track.taken(record.grant_um, track.stands[record.granted + 1])
    first = [use.resource for use in unit if whole or use.need_um == unit[0].need_um]
    return frozenset(locks.exclusion.around(np.array(first, dtype=np.int64)).tolist())


def recall(record: Record, locks: LockState) -> None:
    """For a truck whose state was read: what it waits for is known, as it was to the one that wrote it. A truck that
    waits is not asked again what is in its way; if it were, the queue could be the answer."""
    waits = record.waiting is not None and record.waiting.theirs is not None and not record.at_rest
    record.ripe = ripe(record, locks) if waits else None


def pause_ms(params: TrafficParams, now_ms: int, since_ms: int | None) -> int:
    """How long nothing is searched for a truck that was refused for the sake of others: the cooldown, and for the sake
    of the same ones since some time as long as that has been, so that pauses double, up to eight cooldowns."""
    waited = 0 if since_ms is None else now_ms - since_ms
    return min(max(params.cooldown_ms, waited), _LONGEST * params.cooldown_ms)
