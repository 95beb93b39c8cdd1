"""Medians, quartiles and an interval for the median, in exact fractions."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import comb
from typing import NamedTuple

CONFIDENCE = Fraction(95, 100)
_HALF = Fraction(1, 2)


class Interval(NamedTuple):
    """Where the median lies, and with what probability it does; both ends are values that occurred."""

    low: Fraction
    high: Fraction
    coverage: Fraction

    @property
    def side(self) -> int:
        """1 or -1 where zero is left out with enough confidence, 0 where it is not."""
        if self.coverage < CONFIDENCE:
            return 0
        return (self.low > 0) - (self.high < 0)


def median(values: Iterable[Fraction | None]) -> Fraction | None:
    """Of the values that are there; the mean of the two in the middle of an even number; None of none."""
    return quantile(in_order(values), _HALF)


def in_order(values: Iterable[Fraction | None]) -> list[Fraction]:
    return sorted(value for value in values if value is not None)


def quantile(ordered: Sequence[Fraction], part: Fraction) -> Fraction | None:
    """The value below which `part` of all lie; between neighbours in proportion."""
    if not ordered:
        return None
    place = part * (len(ordered) - 1)
    at = int(place)
    if at == place:
        return ordered[at]
    return ordered[at] + (place - at) * (ordered[at + 1] - ordered[at])


def median_interval(ordered: Sequence[Fraction]) -> Interval | None:
    """The interval of the sign test: the k-th value from below and from above, with the largest k that is sure enough.

    The whole range, with what it does reach, where fewer than six values cannot reach `CONFIDENCE`; None of none.
    """
    count = len(ordered)
    if not count:
        return None
    # The median lies outside if fewer than k of `count` fair coins show the same side.
    outside, rank = 1, 1
    while _coverage(outside + comb(count, rank), count) >= CONFIDENCE:
        outside += comb(count, rank)
        rank += 1
    return Interval(ordered[rank - 1], ordered[count - rank], _coverage(outside, count))


def _coverage(outside: int, count: int) -> Fraction:
    return max(1 - Fraction(2 * outside, 2**count), Fraction(0))
