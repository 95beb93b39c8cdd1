"""Rounds in which sides take turns, and what they cost: CPU seconds, and the peak of memory.

CPU time is measured, as nothing here waits. Before every turn the cycle collector clears what the last one left; while
a side is measured it works as usual.
"""

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from time import process_time

Work = Callable[[], object]


class Rounds:
    """CPU seconds of some sides, round by round."""

    def __init__(self, sides: Mapping[str, Work], rounds: int) -> None:
        self._seconds: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, work in sides.items():
                self._seconds[name].append(cpu_seconds(work))

    def seconds(self, side: str) -> float:
        return median(self._seconds[side])

    def times_faster(self, ours: str, theirs: str) -> float:
        """How many times faster we are: the median over the rounds."""
        return 1 / self.share(ours, theirs)

    def share(self, ours: str, theirs: str) -> float:
        """What part of their time ours is: the median over the rounds."""
        return median(a / b for a, b in zip(self._seconds[ours], self._seconds[theirs], strict=True))


def cpu_seconds(work: Work) -> float:
    gc.collect()
    begin = process_time()
    work()
    return process_time() - begin


def peak_bytes(work: Work) -> int:
    """The most memory that was in use at once, beyond what was there before."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@contextmanager
def paused_collector() -> Iterator[None]:
    """As batch runs may: nothing is collected by cycle, and the collector is as it was afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
