"""Independent optima: the largest flow between two nodes, the largest circulation of debts.

The circulation is computed twice, by cancelling negative cycles and by the network simplex of networkx.
"""

from collections.abc import Mapping
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from typing import Any

from tests.credit.oracle.money import ATOM, NOTHING

Edge = tuple[str, str]


def max_flow(capacities: Mapping[Edge, Fraction], source: str, sink: str) -> Fraction:
    """Edmonds and Karp: shortest augmenting paths until none is left; no bounds on hops, policies or paths."""
    residual = dict(capacities)
    total = NOTHING
    while True:
        came_from = breadth_first(residual, source)
        if sink not in came_from:
            return total
        path = [sink]
        while path[0] != source:
            path.insert(0, came_from[path[0]])
        along = list(pairwise(path))
        carried = min(residual[edge] for edge in along)
        for u, v in along:
            residual[u, v] -= carried
            residual[v, u] = residual.get((v, u), NOTHING) + carried
        total += carried


def breadth_first(residual: Mapping[Edge, Fraction], source: str) -> dict[str, str]:
    came_from, level = {source: source}, [source]
    while level:
        following = []
        for u, v in sorted(residual):
            if u in level and v not in came_from and residual[u, v] > 0:
                came_from[v] = u
                following.append(v)
        level = following
    return came_from


def optimal_circulation(debts: Mapping[Edge, Fraction]) -> Fraction:
    """The largest total reduction of debts that changes no position, by cancelling negative cycles."""
    capacity = dict(debts)
    back = dict.fromkeys(debts, NOTHING)
    while True:
        cycle = gaining_cycle(capacity, back)
        if cycle is None:
            return sum(back.values(), NOTHING)
        carried = min((capacity if forward else back)[edge] for edge, forward in cycle)
        for edge, forward in cycle:
            capacity[edge] -= carried if forward else -carried
            back[edge] += carried if forward else -carried


def gaining_cycle(capacity: Mapping[Edge, Fraction], back: Mapping[Edge, Fraction]) -> list[tuple[Edge, bool]] | None:
    """A cycle that reduces more debts than it restores, by Bellman and Ford; None if there is none."""
    arcs = [(u, v, -1, ((u, v), True)) for (u, v), amount in sorted(capacity.items()) if amount > 0]
    arcs += [(v, u, 1, ((u, v), False)) for (u, v), amount in sorted(back.items()) if amount > 0]
    nodes = sorted({node for edge in capacity for node in edge})
    cost = dict.fromkeys(nodes, 0)
    came_by: dict[str, tuple[str, tuple[Edge, bool]]] = {}
    last = None
    for _ in nodes:
        last = None
        for u, v, gain, arc in arcs:
            if cost[u] + gain < cost[v]:
                cost[v], came_by[v], last = cost[u] + gain, (u, arc), v
        if last is None:
            return None
    if last is None:
        return None
    for _ in nodes:
        last = came_by[last][0]
    cycle: list[tuple[Edge, bool]] = []
    node = last
    while not cycle or node != last:
        node, arc = came_by[node]
        cycle.append(arc)
    return cycle


def optimal_circulation_by_simplex(debts: Mapping[Edge, Fraction]) -> Fraction:
    """The same optimum by networkx, in whole atoms."""
    if not debts:
        return NOTHING
    networkx: Any = import_module("networkx")
    graph = networkx.DiGraph()
    for (debtor, creditor), amount in sorted(debts.items()):
        graph.add_edge(debtor, creditor, capacity=int(amount / ATOM), weight=-1)
    cost, _ = networkx.network_simplex(graph)
    return -int(cost) * ATOM
