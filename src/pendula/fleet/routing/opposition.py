"""Opposition costs (FLT-LIVE-14): lanes on which other routes run in the opposite direction cost more.

Of two trucks that meet at a single lane one waits until the other has passed all of it. A detour with the traffic costs
a little driving and no waiting.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from pendula.fleet.routing.planner import AtNode, Planner, Way
from pendula.fleet.site.compiled_map import CompiledMap

Opposite: TypeAlias = tuple[tuple[int, ...], ...]
# Rounds of planning all trips, after which the directions of a map have settled.
_ROUNDS = 3
# The way to rest is often not driven, so it counts this many times less.
_PROMISED = 4


def opposite_edges(site: CompiledMap) -> Opposite:
    """For every edge the edges of its group in the opposite direction."""
    network = site.network
    edges = network.edges
    return tuple(
        tuple(
            other
            for other in network.groups[network.group_of[number]].edges
            if edges[other].forward_on_axis != edge.forward_on_axis
        )
        for number, edge in enumerate(edges)
    )


def opposition_us(planner: Planner, opposite: Opposite, routes: Iterable[Iterable[int]], milli: int) -> dict[int, int]:
    """Extra costs of edges: `milli` thousandths of the cost of an edge for every route in the opposite direction."""
    met: Counter[int] = Counter()
    for route in routes:
        met.update({other for edge in route for other in opposite[edge]})
    return {edge: planner.edge_us(edge) * milli * count // 1000 for edge, count in sorted(met.items())}


def avoidance_us(
    planner: Planner, opposite: Opposite, routes: Sequence[tuple[Sequence[int], Sequence[int]]], milli: int
) -> dict[int, int]:
    """Extra costs for routes given as (errand, way to rest). The way to rest counts less: a truck that gets its next
    task at the drop never drives it."""
    more = opposition_us(planner, opposite, [errand for errand, _ in routes], milli)
    for edge, us in opposition_us(planner, opposite, [rest for _, rest in routes], milli // _PROMISED).items():
        more[edge] = more.get(edge, 0) + us
    return more


def one_way_us(planner: Planner, opposite: Opposite, trips: Mapping[int, Sequence[int]], milli: int) -> dict[int, int]:
    """Extra costs of edges so that traffic circulates in one direction: up to `milli` thousandths of the cost, by the
    share of trips in the opposite direction. `trips` are the start nodes of the trips to each goal.

    Trips are planned goal by goal against all others, for several rounds: trips with the traffic strengthen its
    direction.
    """
    if all(_is_leaf(planner.site, edge) for edge, others in enumerate(opposite) if others):
        return {}
    ways: dict[int, Counter[int]] = {}
    flow: Counter[int] = Counter()
    for _ in range(_ROUNDS):
        for goal, starts in sorted(trips.items()):
            flow.subtract(ways.get(goal, Counter()))
            ways[goal] = _edge_uses(planner.with_extra_costs(_shares(planner, opposite, flow, milli)), goal, starts)
            flow.update(ways[goal])
    return _shares(planner, opposite, flow, milli)


def _shares(planner: Planner, opposite: Opposite, flow: Counter[int], milli: int) -> dict[int, int]:
    edges = planner.site.network.edges
    extra_us = {}
    for edge, others in enumerate(opposite):
        against = sum(flow[other] for other in others)
        if against > flow[edge]:
            cost = planner.drive_us(edge, edges[edge].path.length_um)
            extra_us[edge] = cost * milli * against // (1000 * (against + flow[edge]))
    return extra_us


def _edge_uses(planner: Planner, goal: int, starts: Sequence[int]) -> Counter[int]:
    """How often each edge is used on the ways from the start nodes to a goal."""
    uses: Counter[int] = Counter()
    for start in starts:
        way = planner.way(AtNode(start), goal)
        if isinstance(way, Way):
            uses.update(way.edges)
    return uses


def _is_leaf(site: CompiledMap, edge: int) -> bool:
    """Whether an edge leads to a dead end, so that no detour avoids it."""
    network = site.network
    directed = network.edges[edge]
    ends = (directed.start, directed.end)
    return any(len({network.edges[out].end for out in network.outgoing[node]}) == 1 for node in ends)
