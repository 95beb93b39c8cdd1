"""A complete route to rest as the locks see it: standing positions in order, and what a truck holds between and at
them.

Positions are numbered 0 to K; K is at rest. Cells in which no truck may stop are not positions: the unit through them
ends at the next position behind. What a truck holds at the start belongs to its standing sets until the position at
which it is released.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Demand:
    """Compressed rows, each ascending. Row k of `need`: what must be held to get from position k - 1 to k; row 0 is
    held at the start. Row k of `stand`: what is still held when the truck stands at k."""

    need_at: Ints
    need: Ints
    stand_at: Ints
    stand: Ints
    # Junction and conflict windows: standing there is allowed, but avoided if that costs nothing.
    unwanted: Bools

    @classmethod
    def of_rows(
        cls, need: Sequence[Sequence[int]], stand: Sequence[Sequence[int]], unwanted: Sequence[bool] | None = None
    ) -> Self:
        """Raises `ValueError` if a position has no resources, or keeps one that was never taken."""
        if len(need) != len(stand) or not need:
            raise ValueError("a way to rest has a position at least, and for each what is needed and what is kept")
        before: set[int] = set(need[0])
        for k, (taken, kept) in enumerate(zip(need, stand, strict=True)):
            if not kept:
                raise ValueError(f"position {k} is nowhere: a truck that stands holds something")
            if not set(kept) <= before | set(taken):
                raise ValueError(f"position {k} keeps what was not taken on the way there")
            before = set(kept)
        marks = np.zeros(len(need), dtype=np.bool_) if unwanted is None else np.array(unwanted, dtype=np.bool_)
        return cls(*_compressed(need), *_compressed(stand), marks)

    @cached_property
    def last(self) -> int:
        """The position at rest."""
        return len(self.need_at) - 2

    # Single entries of an array cost more than those of a tuple, and every query needs two.
    @cached_property
    def need_from(self) -> tuple[int, ...]:
        """Where row k of `need` begins."""
        return tuple(self.need_at.tolist())

    @cached_property
    def stand_from(self) -> tuple[int, ...]:
        """Where row k of `stand` begins."""
        return tuple(self.stand_at.tolist())

    def needs(self, after: int, upto: int) -> Ints:
        """What must be taken to get from position `after` to position `upto`, with repetitions."""
        return self.need[self.need_from[after + 1] : self.need_from[upto + 1]]

    def stands(self, position: int) -> Ints:
        return self.stand[self.stand_from[position] : self.stand_from[position + 1]]

    def wanted_between(self, after: int, upto: int) -> int | None:
        """The last position behind `after` and up to `upto` that is not unwanted; None if all are."""
        last = self._last_wanted[upto]
        return last if last > after else None

    @cached_property
    def _last_wanted(self) -> tuple[int, ...]:
        """For each position the last one up to it that is not unwanted, -1 where all are."""
        wanted = np.where(self.unwanted, -1, np.arange(len(self.unwanted)))
        return tuple(np.maximum.accumulate(wanted).tolist())

    def need_positions(self) -> Ints:
        """For every entry of `need` the position it is needed for."""
        return np.repeat(np.arange(self.last + 1, dtype=np.int64), self.need_at[1:] - self.need_at[:-1])


def _compressed(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    ordered = [sorted(set(row)) for row in rows]
    at = np.cumsum([0, *(len(row) for row in ordered)], dtype=np.int64)
    return at, np.array([number for row in ordered for number in row], dtype=np.int64)
