"""Rounds in which sides take turns, in wall-clock time, so that waits for the disk count."""

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
        """Yield this many rounds, after a warm-up round."""
        for number in range(-1, count):
            if number == 0:
                self._rounds.clear()
            self._rounds.append({})
            yield number

    def take(self, side: str, work: Callable[[], T]) -> T:
        """Do the work and add its time to that of the side in this round."""
        gc.collect()
        begin = perf_counter()
        result = work()
        spent = self._rounds[-1]
        spent[side] = spent.get(side, 0.0) + perf_counter() - begin
        return result

    def seconds(self, side: str) -> float:
        return median(spent[side] for spent in self._rounds)

    def share(self, ours: str, theirs: str) -> float:
        """Our time divided by theirs: the median over the rounds."""
        return median(spent[ours] / spent[theirs] for spent in self._rounds)
