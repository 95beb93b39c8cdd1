"""Closed places as the locks see them: no truck is granted any of it unless it already stands in it.

A truck in a closed place leaves it: its route there is granted unit by unit until it is outside. If its route leads
over another closed place, or over the same one again, it ends before that.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from pendula.fleet.traffic.demand import Demand


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
