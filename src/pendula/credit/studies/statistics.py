"""Medians, quartiles and an interval for the median, in exact fractions."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import comb
from typing import NamedTuple

CONFIDENCE = Fraction(95, 100)
_HALF = Fraction(1, 2)


class Interval(NamedTuple):
    """An interval of the median and its coverage; both ends are observed values."""

    low: Fraction
    high: Fraction
    coverage: Fraction

    @property
    def side(self) -> int:
        """1 or -1 if the interval excludes zero with enough confidence, else 0."""
        if self.coverage < CONFIDENCE:
            return 0
        return (self.low > 0) - (self.high < 0)


def median(values: Iterable[Fraction | None]) -> Fraction | None:
    """The median of the values that are not None; None without values."""
    return quantile(in_order(values), _HALF)


def in_order(values: Iterable[Fraction | None]) -> list[Fraction]:
    return sorted(value for value in values if value is not None)


def quantile(ordered: Sequence[Fraction], part: Fraction) -> Fraction | None:
    """The quantile, interpolated linearly between neighbours."""
    if not ordered:
        return None
    place = part * (len(ordered) - 1)
    at = int(place)
    if at == place:
        return ordered[at]
    return ordered[at] + (place - at) * (ordered[at + 1] - ordered[at])


def median_interval(ordered: Sequence[Fraction]) -> Interval | None:
    """The interval of the sign test: the k-th value from below and from above, with the largest k that is sure enough.

    With fewer than six values, which cannot reach `CONFIDENCE`, the whole range and its coverage; None without values.
    """
    count = len(ordered)
    if not count:
        return None
    # The median is outside if fewer than k of `count` fair coins show the same side.
    outside, rank = 1, 1
    while _coverage(outside + comb(count, rank), count) >= CONFIDENCE:
        outside += comb(count, rank)
        rank += 1
    return Interval(ordered[rank - 1], ordered[count - rank], _coverage(outside, count))


def _coverage(outside: int, count: int) -> Fraction:
    return max(1 - Fraction(2 * outside, 2**count), Fraction(0))
