"""The loads of `fleet-map`: warehouses of about 100, of 300 and of 1000 nodes, an edit, route queries."""

from collections.abc import Callable
from time import thread_time_ns

import numpy as np
import shapely
from msgspec.structs import replace

from pendula.fleet import AtNode, CompiledMap, MoveStyle, OnEdge, Planner, SourceMap, plan_route
from pendula.fleet.compiler.samples import FL_STD, large, warehouse
from pendula.fleet.map.exclusion import Cells
from pendula.fleet.map.planner import Anchor
from pendula.kernel.engine import Refusal
from pendula.kernel.rng import Pcg32

TRUCKS = [FL_STD]
SEED = 20


def hundred() -> SourceMap:
    """100 nodes, of the same parts as the large warehouse."""
    return warehouse(5, 18, 0)


MAPS: dict[int, Callable[[], SourceMap]] = {100: hundred, 300: warehouse, 1000: large}


def with_one_edge_changed(source: SourceMap) -> SourceMap:
    """An edge in the middle becomes a backward edge: other swept areas, and another lane end."""
    at = len(source.edges) // 2
    changed = replace(source.edges[at], style=MoveStyle.BACKWARD.value)
    return replace(source, edges=(*source.edges[:at], changed, *source.edges[at + 1 :]))


def bare_tree(cells: Cells) -> int:
    """The number of pairs shapely's tree finds among the rectangles of all cells, with its own test of intersection."""
    rectangles = np.asarray(shapely.polygons(cells.quads))
    first, _ = shapely.STRtree(rectangles).query(rectangles, predicate="intersects")
    return len(first)


def destinations(site: CompiledMap) -> list[int]:
    return [number for number, node in enumerate(site.network.nodes) if node.station or node.parking]


def questions(site: CompiledMap, count: int) -> list[tuple[Anchor, int]]:
    """Starts in nodes and on edges, and goals where trucks load or park."""
    draw, goals = Pcg32.seeded(SEED, 1), destinations(site)
    edges, nodes = site.network.edges, site.network.nodes
    queries: list[tuple[Anchor, int]] = []
    for number in range(count):
        start: Anchor
        if number % 2:
            edge = draw.next() % len(edges)
            start = OnEdge(edge, draw.next() % edges[edge].path.length_um)
        else:
            start = AtNode(draw.next() % len(nodes), 0)
        queries.append((start, goals[draw.next() % len(goals)]))
    return queries


def query_costs(planner: Planner, queries: list[tuple[Anchor, int]]) -> list[int]:
    """Nanoseconds of every query: the cheapest way, and its segments with their places on the route."""
    costs = []
    for start, goal in queries:
        begin = thread_time_ns()
        route = plan_route(planner, "R", "Q", start, (goal,))
        costs.append(thread_time_ns() - begin)
        assert not isinstance(route, Refusal)
    return costs
