"""Cache of first draws, shared by runs of one seed: a first draw depends only on seed, tick and position.

The first number of a generator per position decides whether a candidate is accepted, and seeding that generator is most
of the work of a plan. Two runs of one seed use the same generators, whatever their settings: the second run looks up
the draws of the first, and seeds only for accepted candidates. The order of candidates is cached, too.
"""

from array import array
from collections.abc import Sequence
from math import nan
from typing import TypeVar

from pendula.kernel.rng import Mersenne, tick_generator

T = TypeVar("T")

BYTES_MOST = 256 * 1024 * 1024


class Draws:
    """Numbers by (seed, tick, position); stores at most about `most` bytes."""

    def __init__(self, most: int = BYTES_MOST) -> None:
        self._first: dict[tuple[int, int], array[float]] = {}
        self._orders: dict[tuple[int, int, int], array[int]] = {}
        self._left = most

    def first(self, seed: int, tick: int, positions: int) -> "array[float]":
        """The first draws of positions, NaN where unknown; the caller fills them in."""
        known = self._first.get((seed, tick))
        if known is None:
            known = array("d")
            if self._left > 0:
                self._first[seed, tick] = known
        if len(known) < positions:
            self._left -= 8 * (positions - len(known))
            known.extend([nan] * (positions - len(known)))
        return known

    def order(self, seed: int, tick: int, count: int) -> "array[int] | None":
        """The order of so many candidates in this tick, if it is known."""
        return self._orders.get((seed, tick, count))

    def keep_order(self, seed: int, tick: int, order: list[int]) -> None:
        if self._left > 0:
            self._left -= 4 * len(order)
            self._orders[seed, tick, len(order)] = array("i", order)


def candidate_order(draws: Draws | None, seed: int, tick: int, candidates: Sequence[T]) -> list[T]:
    """The candidates in the shuffled order of the tick."""
    if draws is None:
        return shuffled(tick_generator(seed, tick), candidates)
    places = draws.order(seed, tick, len(candidates))
    if places is None:
        fresh = shuffled(tick_generator(seed, tick), range(len(candidates)))
        draws.keep_order(seed, tick, fresh)
        return [candidates[place] for place in fresh]
    return [candidates[place] for place in places]


def shuffled(draw: Mersenne, items: Sequence[T]) -> list[T]:
    """A shuffled copy: same draws and order as `draw.shuffle`, in less than half of its time."""
    result, bits = list(items), draw.getrandbits
    for at in range(len(result) - 1, 0, -1):
        width = (at + 1).bit_length()
        other = bits(width)
        while other > at:
            other = bits(width)
        result[at], result[other] = result[other], result[at]
    return result
