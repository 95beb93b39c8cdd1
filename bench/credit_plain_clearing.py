"""Bounded clearing by the rules: list all cycles of the shortest length, clear the best, repeat."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Graph = Any  # of networkx: edges from debtor to creditor with their `debt`
Cycle = list[str]

SHORTEST = 3


@dataclass(frozen=True)
class Cleared:
    """Cleared cycles in order, each from its smallest id on, with their amounts."""

    cycles: list[tuple[Cycle, Decimal]]

    @property
    def amount(self) -> Decimal:
        return sum((amount for _, amount in self.cycles), Decimal(0))

    @property
    def debt_reduction(self) -> Decimal:
        return sum((amount * len(cycle) for cycle, amount in self.cycles), Decimal(0))


def greedy(debts: Graph, max_depth: int, max_cycles: int | None = None) -> Cleared:
    """Clear cycles of the graph in place."""
    cleared: list[tuple[Cycle, Decimal]] = []
    # Clearing creates no new cycles, so each length is finished once.
    for length in range(SHORTEST, max_depth + 1):
        while max_cycles is None or len(cleared) < max_cycles:
            best = min(cycles_of(debts, length), key=lambda cycle: (-cycle[1], cycle[0]), default=None)
            if best is None:
                break
            cleared.append(best)
            _subtract(debts, *best)
    return Cleared(cleared)


def cycles_of(debts: Graph, length: int) -> Iterator[tuple[Cycle, Decimal]]:
    """All simple cycles of `length` edges, once each, with their smallest debt."""
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


def _subtract(debts: Graph, cycle: Cycle, amount: Decimal) -> None:
    for u, v in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        debts[u][v]["debt"] -= amount
        if debts[u][v]["debt"] == 0:
            debts.remove_edge(u, v)
