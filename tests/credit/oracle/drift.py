"""Drift of limits: up along cleared lines, down on overloaded ones."""

from fractions import Fraction

from tests.credit.oracle.clearing import Cleared, around
from tests.credit.oracle.money import CENT, down_to, exact, up_to
from tests.credit.oracle.world import Name, World

DEFAULTS = {
    "growth_rate": "0.05",
    "decay_rate": "0.02",
    "max_growth": "2.0",
    "min_limit_ratio": "0.3",
    "overload_threshold": "0.8",
}

# A limit stays an amount: twelve digits before the point and eight behind (SIM-PAY-2).
MOST = Fraction(10**20 - 1, 10**8)

# Name of the line, limit before, limit after.
Change = tuple[Name, Fraction, Fraction]


def is_on(world: World) -> bool:
    return world.section("trust_drift").get("enabled", False) is True


def rate(world: World, name: str) -> Fraction:
    return exact(world.section("trust_drift").get(name, DEFAULTS[name]))


def lines_of(equivalent: str, done: list[Cleared]) -> list[Name]:
    """The lines of cleared debts, each once."""
    return sorted({(equivalent, creditor, debtor) for cleared in done for debtor, creditor in around(cleared.cycle)})


def grow(world: World, equivalent: str, done: list[Cleared]) -> list[Change]:
    changes = []
    for name in lines_of(equivalent, done) if is_on(world) else []:
        line = world.lines[name]
        most = min(line.original * rate(world, "max_growth"), MOST)
        new = down_to(CENT, min(line.limit * (1 + rate(world, "growth_rate")), most))
        if new > line.limit:
            changes.append((name, line.limit, new))
            line.limit = new
    return changes


def decay(world: World, cleared_now: list[Name]) -> list[Change]:
    changes = []
    for name, line in sorted(world.lines.items()) if is_on(world) else []:
        equivalent, creditor, debtor = name
        debt = world.debt(equivalent, debtor, creditor)
        if line.status != "active" or line.limit <= 0 or name in cleared_now:
            continue
        if debt < rate(world, "overload_threshold") * line.limit:
            continue
        least = line.original * rate(world, "min_limit_ratio")
        new = down_to(CENT, max(line.limit * (1 - rate(world, "decay_rate")), least, up_to(CENT, debt)))
        if new < line.limit:
            changes.append((name, line.limit, new))
            line.limit = new
    return changes
