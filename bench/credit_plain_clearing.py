"""Bounded clearing straight from the rules: list all cycles of the shortest length there is, clear the best, repeat."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Graph = Any  # of networkx: edges from debtor to creditor with their `debt`
Cycle = list[str]

SHORTEST = 3


@dataclass(frozen=True)
class Cleared:
    """Cycles in the order in which they were cleared, each beginning with its smallest id, and their amounts."""

    cycles: list[tuple[Cycle, Decimal]]

    @property
    def amount(self) -> Decimal:
        return sum((amount for _, amount in self.cycles), Decimal(0))

    @property
    def debt_reduction(self) -> Decimal:
        return sum((amount * len(cycle) for cycle, amount in self.cycles), Decimal(0))


def greedy(debts: Graph, max_depth: int, max_cycles: int | None = None) -> Cleared:
    """Takes the cleared debts out of the graph."""
    found: list[tuple[Cycle, Decimal]] = []
    # Clearing makes no new cycles: a length that is through stays so.
    for length in range(SHORTEST, max_depth + 1):
        while max_cycles is None or len(found) < max_cycles:
            best = min(cycles_of(debts, length), key=lambda one: (-one[1], one[0]), default=None)
            if best is None:
                break
            found.append(best)
            _take_out(debts, *best)
    return Cleared(found)


def cycles_of(debts: Graph, length: int) -> Iterator[tuple[Cycle, Decimal]]:
    """All simple cycles of so many edges, once each, with their smallest debt."""
    for start in debts:
        yield from _closing(debts, [start], None, length)


def _closing(debts: Graph, path: Cycle, least: Decimal | None, length: int) -> Iterator[tuple[Cycle, Decimal]]:
    for creditor, edge in debts[path[-1]].items():
        amount = edge["debt"] if least is None else min(least, edge["debt"])
        if len(path) == length:
            if creditor == path[0]:
                yield path, amount
        elif creditor > path[0] and creditor not in path:
            yield from _closing(debts, [*path, creditor], amount, length)


def _take_out(debts: Graph, cycle: Cycle, amount: Decimal) -> None:
    for u, v in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        debts[u][v]["debt"] -= amount
        if debts[u][v]["debt"] == 0:
            debts.remove_edge(u, v)
