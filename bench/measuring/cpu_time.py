"""Rounds in which sides take turns, with their CPU seconds and peak memory.

CPU time is measured, because nothing here waits. The cycle collector runs before every turn, and works as usual during
it.
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
        """How many times faster our side is: the median over the rounds."""
        return 1 / self.share(ours, theirs)

    def share(self, ours: str, theirs: str) -> float:
        """Our time divided by theirs: the median over the rounds."""
        return median(a / b for a, b in zip(self._seconds[ours], self._seconds[theirs], strict=True))


def cpu_seconds(work: Work) -> float:
    gc.collect()
    begin = process_time()
    work()
    return process_time() - begin


def peak_bytes(work: Work) -> int:
    """The peak of memory in use, minus the memory in use before."""
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
    """Pause the cycle collector within the block, as batch runs may."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
