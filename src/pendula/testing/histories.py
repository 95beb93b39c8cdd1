"""Seeded histories: messages that come late, twice, out of order or not at all, and clocks that jump.

A realistic network and clock from one seed: equal seeds give equal histories on every machine. `over_seeds` runs a test
over many seeds, and a failure prints the command that repeats it:

    over_seeds(law, range(200))

    python -m pendula.testing tests/kernel/test_driver.py:a_law 17
"""

import importlib
import inspect
import runpy
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Generic, TypeVar

from msgspec import Struct

from pendula.kernel.queue import EventQueue

M = TypeVar("M")


class Faults(Struct, frozen=True):
    """The faults of a history. Chances are in percent, times in the unit of the history."""

    late: int = 20
    most_late: int = 50
    repeated: int = 10
    lost: int = 0
    clock_jump: int = 2
    most_jump: int = 3600


class Delivery(Struct, Generic[M], frozen=True):
    """An arriving message: its true time, the receiver's clock, and the number of the copy."""

    at: int
    clock: int
    message: M
    sent: int
    copy: int = 0


def deliver(messages: Sequence[tuple[int, M]], seed: int, faults: Faults | None = None) -> Iterator[Delivery[M]]:
    """The deliveries of messages sent at given times, in order of arrival.

    Delays also reorder messages. The receiver's clock follows true time but jumps forwards or backwards and keeps the
    error until the next jump.
    """
    weather = faults if faults is not None else Faults()
    luck = Random(seed)
    queue: EventQueue[tuple[M, int, int]] = EventQueue()
    for sent, message in messages:
        if luck.randrange(100) < weather.lost:
            continue
        copies = 2 if luck.randrange(100) < weather.repeated else 1
        for copy in range(copies):
            late = luck.randint(1, weather.most_late) if luck.randrange(100) < weather.late else 0
            queue.push(sent + late, copy, (message, sent, copy))
    error = 0
    while len(queue):
        at, _, _, (message, sent, copy) = queue.pop()
        if luck.randrange(100) < weather.clock_jump:
            error = luck.randint(-weather.most_jump, weather.most_jump)
        yield Delivery(at, at + error, message, sent, copy)


class HistoryFailed(AssertionError):
    """A test failed for a seed; the message ends with the command that repeats it."""


def over_seeds(law: Callable[[int], None], seeds: Iterable[int]) -> int:
    """Call `law(seed)` for every seed; returns the number of seeds. Raises `HistoryFailed` at the first failure."""
    held = 0
    for seed in seeds:
        try:
            law(seed)
        except Exception as failure:
            raise HistoryFailed(
                f"{law.__qualname__} fails for seed {seed}: {type(failure).__name__}: {failure}\n"
                f"repeat with: {repeat_line(law, seed)}"
            ) from failure
        held += 1
    return held


def repeat_line(law: Callable[[int], None], seed: int) -> str:
    """The command that repeats one law with one seed; the law must be at the top level of a module."""
    source = inspect.getsourcefile(law)
    place = _relative(source) if source else law.__module__
    return f"python -m pendula.testing {place}:{law.__qualname__} {seed}"


def _relative(source: str) -> str:
    try:
        return str(Path(source).relative_to(Path.cwd()))
    except ValueError:
        return source


def main(arguments: list[str]) -> None:
    if len(arguments) != 2 or ":" not in arguments[0]:
        raise SystemExit("usage: python -m pendula.testing FILE_OR_MODULE:LAW SEED")
    place, _, name = arguments[0].rpartition(":")
    names = runpy.run_path(place) if place.endswith(".py") else vars(importlib.import_module(place))
    names[name](int(arguments[1]))
