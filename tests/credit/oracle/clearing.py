"""Clearing of one equivalent: list every cycle of the shortest length, clear the best, repeat."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.credit.oracle.ledger import change
from tests.credit.oracle.money import NOTHING
from tests.credit.oracle.world import Debts, Lines, Name, World

NO_CLEARING = (False, 0, "0", "false", "no", "off")
SHORTEST = 3


@dataclass(frozen=True)
class Cleared:
    """A cleared cycle: its ids from the smallest on, each owing the next, and the amount."""

    cycle: tuple[str, ...]
    amount: Fraction


def takes_part(policy: Mapping[str, Any]) -> bool:
    return policy.get("auto_clearing", True) not in NO_CLEARING


def cycles(edges: Mapping[tuple[str, str], Fraction], length: int) -> Iterator[tuple[str, ...]]:
    """All simple cycles of `length` edges, each once, from its smallest id on."""
    owed_by: dict[str, list[str]] = {}
    for debtor, creditor in sorted(edges):
        owed_by.setdefault(debtor, []).append(creditor)

    def walk(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        following = owed_by.get(path[-1], [])
        if len(path) == length:
            if path[0] in following:
                yield path
            return
        for node in following:
            if node > path[0] and node not in path:
                yield from walk((*path, node))

    for start in sorted(owed_by):
        yield from walk((start,))


def best_cycle(edges: Mapping[tuple[str, str], Fraction], depth: int) -> Cleared | None:
    """Fewest edges, then the largest amount, then the smallest ids."""
    for length in range(SHORTEST, depth + 1):
        candidates = [Cleared(cycle, min(edges[hop] for hop in around(cycle))) for cycle in cycles(edges, length)]
        if candidates:
            return min(candidates, key=lambda cleared: (-cleared.amount, cleared.cycle))
    return None


def around(cycle: tuple[str, ...]) -> list[tuple[str, str]]:
    return list(zip(cycle, (*cycle[1:], cycle[0]), strict=True))


def greedy_clearing(
    debts: Mapping[Name, Fraction], lines: Lines, depth: int, max_cycles: int = 100, equivalent: str | None = None
) -> list[Cleared]:
    """The cycles that one call clears, in order; `debts` stay unchanged. Every participant counts as active."""
    codes = {name[0] for name in debts} if equivalent is None else {equivalent}
    if len(codes) > 1:
        raise AssertionError("one call clears one equivalent")
    edges = {
        (debtor, creditor): amount
        for (code, debtor, creditor), amount in sorted(debts.items())
        if code in codes and is_clearable(lines, (code, creditor, debtor))
    }
    done: list[Cleared] = []
    while len(done) < max_cycles:
        best = best_cycle(edges, depth)
        if best is None:
            break
        for hop in around(best.cycle):
            edges[hop] -= best.amount
        edges = {hop: amount for hop, amount in edges.items() if amount > 0}
        done.append(best)
    return done


def is_clearable(lines: Lines, name: Name) -> bool:
    return name in lines and lines[name].status == "active" and takes_part(lines[name].policy)


def clear(world: World, equivalent: str, depth: int) -> list[Cleared]:
    """Apply one clearing call to the books."""
    active: Debts = {
        name: amount
        for name, amount in world.debts.items()
        if name[0] == equivalent and world.is_active(name[1]) and world.is_active(name[2])
    }
    most = world.knobs.number("SIMULATOR_CLEARING_MAX_CYCLES_PER_CALL")
    done = greedy_clearing(active, world.lines, depth, most, equivalent)
    for cleared in done:
        for debtor, creditor in around(cleared.cycle):
            change(world.debts, (equivalent, debtor, creditor), -cleared.amount)
    return done


def volume(done: list[Cleared]) -> Fraction:
    return sum((cleared.amount for cleared in done), NOTHING)


def reduction(done: list[Cleared]) -> Fraction:
    return sum((cleared.amount * len(cleared.cycle) for cleared in done), NOTHING)
