"""Routes that keep out of each other's way (FLT-LIVE-14): lanes on which other routes run the other way are dearer.

Two trucks that meet on a single lane cannot both go on, so one waits until the other has passed the whole of it. A way
round that follows the stream costs a little driving and no waiting.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from pendula.fleet.routing.planner import AtNode, Planner, Way
from pendula.fleet.site.compiled_map import CompiledMap

Opposite: TypeAlias = tuple[tuple[int, ...], ...]
# How often all trips are planned anew before the directions of a map have settled.
_ROUNDS = 3
# A way to rest that is only promised counts so many times less than one that is driven.
_PROMISED = 4


def opposite_edges(site: CompiledMap) -> Opposite:
    """For every edge those of its group that run the other way."""
    network = site.network
    edges = network.edges
    return tuple(
        tuple(
            other
            for other in network.groups[network.group_of[edge]].edges
            if edges[other].forward_on_axis != one.forward_on_axis
        )
        for edge, one in enumerate(edges)
    )


def against_us(planner: Planner, opposite: Opposite, routes: Iterable[Iterable[int]], milli: int) -> dict[int, int]:
    """What to add to the cost of edges: `milli` thousandths of it for every route that runs the other way."""
    met: Counter[int] = Counter()
    for route in routes:
        met.update({other for edge in route for other in opposite[edge]})
    return {edge: planner.edge_us(edge) * milli * count // 1000 for edge, count in sorted(met.items())}


def kept_off_us(
    planner: Planner, opposite: Opposite, routes: Sequence[tuple[Sequence[int], Sequence[int]]], milli: int
) -> dict[int, int]:
    """The same for routes of which an errand is driven and a way to rest is promised. That counts less: whoever finds a
    next task at its drop never drives it."""
    more = against_us(planner, opposite, [errand for errand, _ in routes], milli)
    for edge, us in against_us(planner, opposite, [rest for _, rest in routes], milli // _PROMISED).items():
        more[edge] = more.get(edge, 0) + us
    return more


def one_way_us(planner: Planner, opposite: Opposite, trips: Mapping[int, Sequence[int]], milli: int) -> dict[int, int]:
    """What to add to the cost of edges so that streams go round in one direction: up to `milli` thousandths of it, by
    the share of all trips that run the other way. `trips` are the nodes from which trucks come to each goal.

    Trips are planned goal by goal against all others, over and over: whoever goes with the stream strengthens it.
    """
    if all(_is_leaf(planner.site, edge) for edge, others in enumerate(opposite) if others):
        return {}
    ways: dict[int, Counter[int]] = {}
    flow: Counter[int] = Counter()
    for _ in range(_ROUNDS):
        for goal, starts in sorted(trips.items()):
            flow.subtract(ways.get(goal, Counter()))
            ways[goal] = _driven(planner.dearer(_shares(planner, opposite, flow, milli)), goal, starts)
            flow.update(ways[goal])
    return _shares(planner, opposite, flow, milli)


def _shares(planner: Planner, opposite: Opposite, flow: Counter[int], milli: int) -> dict[int, int]:
    edges = planner.site.network.edges
    found = {}
    for edge, others in enumerate(opposite):
        against = sum(flow[other] for other in others)
        if against > flow[edge]:
            cost = planner.drive_us(edge, edges[edge].path.length_um)
            found[edge] = cost * milli * against // (1000 * (against + flow[edge]))
    return found


def _driven(planner: Planner, goal: int, starts: Sequence[int]) -> Counter[int]:
    """How often each edge is driven on the ways from some nodes to a goal."""
    found: Counter[int] = Counter()
    for start in starts:
        way = planner.way(AtNode(start), goal)
        if isinstance(way, Way):
            found.update(way.edges)
    return found


def _is_leaf(site: CompiledMap, edge: int) -> bool:
    """Whether an edge is the only one at one of its ends, there and back: nobody can go round it."""
    network = site.network
    one = network.edges[edge]
    ends = (one.start, one.end)
    return any(len({network.edges[out].end for out in network.outgoing[node]}) == 1 for node in ends)
