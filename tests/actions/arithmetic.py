"""Durations and skill levels: the formulas of the requirements in fractions, for the oracle."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

EFFORT = {"low": Fraction(9, 10), "medium": Fraction(1), "high": Fraction(11, 10)}
SKILL = {0: Fraction(5, 4), 1: Fraction(1), 2: Fraction(17, 20), 3: Fraction(7, 10)}


def ceiling(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)


def minutes_taken(base: int, effort: str, level: int, factors: Sequence[Fraction] = ()) -> int:
    product = base * EFFORT[effort] * SKILL[level]
    for factor in factors:
        product *= factor
    return max(1, ceiling(product))


def level_from(rule: Mapping[str, Any], matrix: Mapping[str, Any]) -> int:
    raw = Fraction(str(rule.get("base", 0)))
    for dimension, weight in rule.get("weights", {}).items():
        raw += Fraction(str(weight)) * Fraction(str(matrix.get(dimension, 0)))
    rounded = raw + Fraction(1, 2)
    return min(3, max(0, rounded.numerator // rounded.denominator))
