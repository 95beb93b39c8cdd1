"""The cheapest ways from some edges to a goal, led by costs that are nowhere too high: most of a map is not looked at.

All cheapest ways are found, not one of them, so that whoever walks them chooses among equals as in a whole tree.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from heapq import heappop, heappush


def guided(
    starts: Sequence[tuple[int, int]],
    ends: Set[int],
    least: Sequence[int | None],
    onward: Callable[[int], Iterable[tuple[int, int]]],
) -> dict[int, int]:
    """For every edge of a cheapest way the cost from its end to the goal; empty where no way leads.

    `starts` are edges with what it costs to come to their ends, `ends` those that arrive in the goal. `least` bounds
    the cost from every edge to the goal from below, None where there is no way, and never falls by more than a step
    costs. `onward` gives the edges that follow one, with what each step costs, which is more than nothing.
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
        {} if best is None else _walked_back(best, [one for one in sorted(ends) if costs.get(one) == best], costs, came)
    )


def _walked_back(
    best: int, arriving: list[int], costs: Mapping[int, int], came: Mapping[int, list[tuple[int, int]]]
) -> dict[int, int]:
    """What is left to go from every edge of the ways that cost no more than the best."""
    left = dict.fromkeys(arriving, 0)
    while arriving:
        edge = arriving.pop()
        for before, step in came.get(edge, ()):
            if before not in left and costs[before] + step == costs[edge]:
                left[before] = best - costs[before]
                arriving.append(before)
    return left
