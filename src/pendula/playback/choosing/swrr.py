"""Smooth weighted round robin: exact shares, with the picks of each channel spread evenly.

In each step every channel earns its weight; the one with the largest credit is picked and pays the sum. The sequence
repeats after 65536 / gcd(weights) steps, so it is computed once, one byte a pick, and then read from a table.
"""

from collections.abc import Sequence
from math import gcd

from pendula.playback.model import WSUM

NEVER = 1 << 62
TABLE_STEPS = 1 << 18  # more than the items in history and lookahead can have taken


def step(credits: list[int], weights: Sequence[int], total: int = WSUM) -> int:
    """One step by definition; changes `credits` and returns the index that was picked, the lowest on ties."""
    best, richest = -1, 0
    for index, weight in enumerate(weights):
        if not weight:
            continue  # never picked; its credit stays
        credit = credits[index] = credits[index] + weight
        if credit > richest or best < 0:
            best, richest = index, credit
    credits[best] -= total
    return best


class RoundRobin:
    """The sequence of one epoch; `taken` counts the steps.

    The table begins at step `anchor`, where the credits were `start`: a restored sequence computes nothing older. With
    credits carried over from other weights the sequence does not repeat; `before` is the number of picks of each
    channel up to the anchor, and only the latest part of the table is kept.
    """

    __slots__ = ("_credits", "anchor", "before", "carried", "period", "start", "table", "taken", "weights")

    def __init__(
        self,
        weights: Sequence[int],
        anchor: int = 0,
        start: Sequence[int] | None = None,
        *,
        before: Sequence[int] | None = None,
    ) -> None:
        self.weights = tuple(weights)
        self.carried = before is not None
        self.period = NEVER if self.carried else WSUM // gcd(*self.weights) if any(self.weights) else 1
        self.anchor = anchor
        self.start = tuple(start) if start is not None else (0,) * len(self.weights)
        self.taken = anchor
        self.before = tuple(self._picks((0,) * len(self.weights), anchor, self.start) if before is None else before)
        self.table = bytearray()
        self._credits = list(self.start)

    def next(self) -> int:
        """Take one step."""
        place = (self.taken - self.anchor) % self.period
        if place >= len(self.table):
            self._build(place + 1)
        self.taken += 1
        return self.table[place]

    def ahead(self, count: int) -> bytes:
        """The next `count` picks, without taking them."""
        if self.carried:
            self._forget()
        place = (self.taken - self.anchor) % self.period
        end = place + count
        self._build(min(self.period, end))
        table = self.table
        if end <= self.period:
            return bytes(table[place:end])
        whole, rest = divmod(end - self.period, self.period)
        return bytes(table[place:] + table * whole + table[:rest])

    def credits_at(self, taken: int) -> list[int]:
        """The credits after `taken` steps, from the anchor to the present: each step earns W, each pick costs 65536."""
        assert self.anchor <= taken <= self.taken
        steps = (taken - self.anchor) % self.period
        self._build(steps)
        return [
            first + steps * weight - WSUM * self.table.count(index, 0, steps)
            for index, (first, weight) in enumerate(zip(self.start, self.weights, strict=True))
        ]

    def picks_at(self, taken: int) -> list[int]:
        """The picks of each channel in the first `taken` steps of the epoch, from the anchor to the present."""
        picks = self._picks(self.start, taken - self.anchor, self.credits_at(taken))
        return [before + since for before, since in zip(self.before, picks, strict=True)]

    def _picks(self, first: Sequence[int], steps: int, now: Sequence[int]) -> list[int]:
        """The picks of each channel in `steps` steps between two sets of credits."""
        return [
            (before + steps * weight - after) // WSUM
            for weight, before, after in zip(self.weights, first, now, strict=True)
        ]

    def _forget(self) -> None:
        """Drop the oldest part of the table, so that it does not grow without limit."""
        if len(self.table) > 2 * TABLE_STEPS and self.taken - self.anchor > TABLE_STEPS:
            anchor = self.taken - TABLE_STEPS
            self.before, self.start = tuple(self.picks_at(anchor)), tuple(self.credits_at(anchor))
            del self.table[: anchor - self.anchor]
            self.anchor = anchor

    def _build(self, upto: int) -> None:
        credits, weights, table = self._credits, self.weights, self.table
        for _ in range(upto - len(table)):
            table.append(step(credits, weights))
