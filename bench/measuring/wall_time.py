"""Rounds in which sides take turns, by the clock on the wall: who waits for the disk has to wait for it here, too."""

import gc
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")


class Turns:
    """Seconds of some sides, round by round; several turns of a side in one round count together."""

    def __init__(self) -> None:
        self._rounds: list[dict[str, float]] = []

    def rounds(self, count: int) -> Iterator[int]:
        """So many rounds, after one that only warms up."""
        for number in range(-1, count):
            if number == 0:
                self._rounds.clear()
            self._rounds.append({})
            yield number

    def take(self, side: str, work: Callable[[], T]) -> T:
        """Do the work and add its time to what the side took in this round."""
        gc.collect()
        begin = perf_counter()
        result = work()
        spent = self._rounds[-1]
        spent[side] = spent.get(side, 0.0) + perf_counter() - begin
        return result

    def seconds(self, side: str) -> float:
        return median(spent[side] for spent in self._rounds)

    def share(self, ours: str, theirs: str) -> float:
        """What part of their time ours is: the median over the rounds."""
        return median(spent[ours] / spent[theirs] for spent in self._rounds)
