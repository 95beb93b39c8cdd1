"""Routes that keep out of each other's way (FLT-LIVE-14): lanes on which other routes run the other way are dearer.

Two trucks that meet on a single lane cannot both go on, so one waits until the other has passed the whole of it. A way
round that follows the stream costs a little driving and no waiting.
"""

from collections import Counter
from collections.abc import Iterable

from pendula.fleet.routing.planner import Planner
from pendula.fleet.site.compiled_map import CompiledMap


def opposite_edges(site: CompiledMap) -> tuple[tuple[int, ...], ...]:
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


def against_us(
    planner: Planner, opposite: tuple[tuple[int, ...], ...], routes: Iterable[Iterable[int]], milli: int
) -> dict[int, int]:
    """What to add to the cost of edges: `milli` thousandths of it for every route that runs the other way."""
    met: Counter[int] = Counter()
    for route in routes:
        met.update({other for edge in route for other in opposite[edge]})
    edges = planner.site.network.edges
    return {
        edge: planner.drive_us(edge, edges[edge].path.length_um) * milli * count // 1000
        for edge, count in sorted(met.items())
    }
