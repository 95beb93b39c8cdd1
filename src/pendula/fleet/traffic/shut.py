"""What operators have closed, as the locks see it: no truck is granted any of it that does not stand in it already.

A truck that stands in a closed place leaves it: its way there is granted unit by unit until it stands outside. Where
its way leads over another closed place, or over the same one again, it ends before that.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from pendula.fleet.traffic.demand import Demand


class Closing(Struct, frozen=True, array_like=True):
    """A place that an operator has closed: its name, since when, who did it and why."""

    resource: str
    since_ms: int
    order_id: str
    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class Shut:
    """One closed place: its resources and the edges that routes keep off. `called`: the resource it is known by; None
    where each of its cells has a name of its own."""

    resources: frozenset[int]
    edges: frozenset[int]
    called: int | None = None


@dataclass(frozen=True, slots=True)
class Met:
    """Where a way comes to something closed: the last standing position before it, and the resource it is called by."""

    position: int
    resource: int


def first_shut(shut: Iterable[Shut], demand: Demand, position: int) -> Met | None:
    """The first closed place on what is left of a way behind a position, but for the one that the truck leaves."""
    ahead = set(demand.needs(position, demand.last).tolist())
    closed = [one for one in shut if not ahead.isdisjoint(one.resources)]
    if not closed:
        return None
    left = _stood_in(closed, demand, position)
    for k in range(position, demand.last):
        for resource in demand.needs(k, k + 1).tolist():
            met = next((one for one in closed if resource in one.resources and one not in left), None)
            if met is not None:
                return Met(k, resource if met.called is None else met.called)
        left = _stood_in(left, demand, k + 1)
    return None


def _stood_in(shut: Iterable[Shut], demand: Demand, position: int) -> list[Shut]:
    stands = frozenset(np.asarray(demand.stands(position)).tolist())
    return [one for one in shut if not stands.isdisjoint(one.resources)]
