"""Seeded histories: messages that come late, twice, out of order or not at all, and clocks that jump.

A realistic network and clock from one seed: equal seeds give equal histories on every machine.
"""

from collections.abc import Iterator, Sequence
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
