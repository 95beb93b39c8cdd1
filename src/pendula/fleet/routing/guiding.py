"""Goal-directed search (A*) with an admissible lower bound, which visits a small part of the map.

It finds all cheapest ways, not one of them, so that ties are broken as in a complete tree.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from heapq import heappop, heappush


def guided_costs(
    starts: Sequence[tuple[int, int]],
    ends: Set[int],
    least: Sequence[int | None],
    onward: Callable[[int], Iterable[tuple[int, int]]],
) -> dict[int, int]:
    """For every edge of a cheapest way the cost from its end to the goal; empty if there is no way.

    `starts` are edges with the cost to their ends, `ends` the edges that arrive at the goal. `least` is a consistent
    lower bound of the cost from every edge to the goal, None where there is no way. `onward` gives the edges that
    follow an edge, with the cost of each step, which is positive.
    """
    costs: dict[int, int] = {}
    queue: list[tuple[int, int]] = []
    came: dict[int, list[tuple[int, int]]] = {}

    def reach(edge: int, cost: int) -> None:
        left = least[edge]
        if left is not None and (edge not in costs or cost < costs[edge]):
            costs[edge] = cost
            heappush(queue, (cost + left, edge))

    for edge, cost in starts:
        reach(edge, cost)
    best: int | None = None
    while queue and (best is None or queue[0][0] <= best):
        whole, edge = heappop(queue)
        if whole != costs[edge] + (least[edge] or 0):
            continue
        if edge in ends:
            best = whole
            continue
        for after, step in onward(edge):
            came.setdefault(after, []).append((edge, step))
            reach(after, costs[edge] + step)
    return (
        {}
        if best is None
        else _walk_back(best, [edge for edge in sorted(ends) if costs.get(edge) == best], costs, came)
    )


def _walk_back(
    best: int, arriving: list[int], costs: Mapping[int, int], came: Mapping[int, list[tuple[int, int]]]
) -> dict[int, int]:
    """The remaining cost from every edge of the cheapest ways."""
    left = dict.fromkeys(arriving, 0)
    while arriving:
        edge = arriving.pop()
        for before, step in came.get(edge, ()):
            if before not in left and costs[before] + step == costs[edge]:
                left[before] = best - costs[before]
                arriving.append(before)
    return left
