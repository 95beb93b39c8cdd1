"""Channels for the tests: `ids("a", 1, 2, 3)` is a channel whose newest record has id 1."""

from collections.abc import Sequence
from decimal import Decimal

from pendula.playback.choosing.records import Channel, MemoryShelf
from pendula.playback.model import Item, Record
from pendula.playback.settings import Exposure, Mode


def listed(ids: Sequence[int]) -> list[Record]:
    """Records in this order, newest first."""
    return [Record(id, 1_000_000 - place) for place, id in enumerate(ids)]


def ids(name: str, *numbers: int) -> Channel:
    return Channel(name, MemoryShelf(listed(numbers)))


def manual(**weights: int | str) -> Exposure:
    return Exposure(Mode.MAE, {name: Decimal(weight) for name, weight in weights.items()})


def shown(items: Sequence[Item | None]) -> list[int | None]:
    return [None if item is None else item.id for item in items]
