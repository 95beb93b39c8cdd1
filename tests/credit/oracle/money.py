"""Exact amounts of the oracle: fractions inside, plain decimal text outside, roundings by name."""

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

CENT = Fraction(1, 100)
ATOM = Fraction(1, 10**8)
NOTHING = Fraction(0)


def exact(value: Any) -> Fraction:
    """A number of a document; a float stands for its shortest decimal form."""
    if isinstance(value, float):
        return Fraction(repr(value))
    if isinstance(value, Decimal | int):
        return Fraction(value)
    return Fraction(str(value).strip())


def is_number(value: Any) -> bool:
    """Whether a member of a document is a finite number; booleans are not."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    return Decimal(value).is_finite()


def down_to(step: Fraction, amount: Fraction) -> Fraction:
    return floor(amount / step) * step


def up_to(step: Fraction, amount: Fraction) -> Fraction:
    return ceil(amount / step) * step


def text(amount: Fraction, digits: int) -> str:
    """Plain decimal text with exactly `digits` digits after the point; raises if digits would be lost."""
    scaled = amount * 10**digits
    if scaled.denominator != 1:
        raise AssertionError(f"{amount} has more than {digits} decimals")
    sign = "-" if scaled < 0 else ""
    whole, rest = divmod(abs(int(scaled)), 10**digits)
    return f"{sign}{whole}.{rest:0{digits}d}"
