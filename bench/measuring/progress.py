"""Progress of a long benchmark: a bar, and the estimated minutes left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from pendula.cli.benchmarks import Progress

# Called with the completed part of a step, from 0 to 1.
Watch = Callable[[float], None]

_LONG = 20


class Bar:
    """A bar over steps of different size, updated at each hundredth."""

    def __init__(self, progress: Progress, whole: int) -> None:
        self._progress = progress
        self._whole = whole
        self._done = 0
        self._told = -1
        self._began = monotonic()

    @contextmanager
    def step(self, name: str, size: int) -> Iterator[Watch]:
        """A step of the benchmark; call the yielded function with its progress."""
        self._told = -1
        self._tell(name, 0)
        yield lambda part: self._tell(name, part * size)
        self._done += size

    def _tell(self, name: str, more: float) -> None:
        part = (self._done + more) / self._whole
        if int(part * 100) == self._told:
            return
        self._told = int(part * 100)
        self._progress(f"{bar(part)} {name}{left(part, monotonic() - self._began)}")


def bar(part: float) -> str:
    full = round(part * _LONG)
    return "[" + "#" * full + "." * (_LONG - full) + "]"


def left(part: float, seconds: float) -> str:
    """The estimated time left; empty before any progress."""
    return "" if part <= 0 else f", {seconds * (1 - part) / part / 60:.0f} minutes left"
