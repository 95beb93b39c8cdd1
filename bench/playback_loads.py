"""The loads of the benchmark: 64 channels of 1024 records, in memory or in cache files, and a listener.

The weights have no pattern, and their period is 65536, the longest there is. All weights equal would repeat after 64
steps.
"""

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache
from itertools import cycle
from pathlib import Path

from pendula.kernel.disk import RealDisk
from pendula.kernel.rng import Pcg32
from pendula.playback.cache.shelf import CacheShelf, cache_name, open_cache, write_cache
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import Channel, MemoryShelf, pack
from pendula.playback.choosing.swrr import RoundRobin
from pendula.playback.model import WSUM, Record
from pendula.playback.settings import Exposure, Mode, Pick, PickMode, Settings

N, RECORDS = 64, 1024
SEED = 1
TAKEN = 1000
NAMES = tuple(f"channel-{index:02}" for index in range(N))
_WEIGHTS = random.Random(SEED)
EXPOSURE = Exposure(Mode.MAE, {name: Decimal(_WEIGHTS.randrange(1_000, 50_000)) for name in NAMES})
RECENCY = Settings(exposure=EXPOSURE)
BATCH = RECENCY.lookahead
EQUAL = Settings()
RANDOM = Settings(exposure=EXPOSURE, pick=Pick(PickMode.RANDOM))
NEW, FIRST_NEW = 4096, 1 << 40
NEW_A_BATCH = 3  # with two, one item in 8000 finds the pool empty


@cache
def records(channel: int) -> tuple[bytes, ...]:
    return tuple(pack(Record(channel * RECORDS + place, 1_700_000_000 - place)) for place in range(RECORDS))


@cache
def artworks() -> tuple[bytes, ...]:
    """Records that are in no channel."""
    return tuple(pack(Record(FIRST_NEW + number, 1_800_000_000)) for number in range(NEW))


def new_artworks() -> Iterator[bytes]:
    """In order; each has left the pool long before it is inserted again."""
    return cycle(artworks())


@cache
def in_memory() -> tuple[Channel, ...]:
    """Shared, because shelves never change."""
    return tuple(Channel(name, MemoryShelf(records(index))) for index, name in enumerate(NAMES))


def weights() -> list[int]:
    return Programme(in_memory(), RECENCY, seed=SEED).generator.weights


def write_caches(place: Path) -> None:
    disk = RealDisk(place)
    try:
        for index, name in enumerate(NAMES):
            write_cache(disk, cache_name(name), name, records(index))
    finally:
        disk.close()


def on_disk(place: Path) -> tuple[Channel, ...]:
    """Open the channels of `write_caches`."""
    channels: list[Channel] = []
    for name in NAMES:
        shelf = open_cache(place / cache_name(name), name)
        assert isinstance(shelf, CacheShelf), shelf
        channels.append(Channel(name, shelf))
    return tuple(channels)


@cache
def period() -> bytes:
    """The picks of a whole period, after which all credits are 0 again."""
    sequence = RoundRobin(weights())
    assert sequence.period == WSUM
    return sequence.ahead(sequence.period)


class Listener:
    """Takes items and inserts new artwork; the table is complete and all shelves are open."""

    def __init__(self, channels: Sequence[Channel], settings: Settings = RECENCY) -> None:
        self.programme = Programme(channels, settings, seed=SEED)
        if settings.exposure == EXPOSURE:
            self.programme.generator.round.table += period()
        self.programme.take(N * BATCH)
        self._new = new_artworks()

    def hands_in(self) -> None:
        self.programme.nae_insert(next(self._new))

    def fills_the_pool(self) -> None:
        for _ in range(self.programme.snapshot.settings.nae.cap):
            self.hands_in()

    def takes(self, items: int) -> None:
        """In bulk, with one new artwork before every thousand."""
        for _ in range(items // TAKEN):
            self.hands_in()
            self.programme.take(TAKEN)

    def takes_beside_a_pool(self, items: int) -> None:
        """Batch by batch, new artwork before each, so that a full pool never becomes empty."""
        generator = self.programme.generator
        expected = Pcg32(generator.nae_draws.state, generator.nae_draws.increment)
        before = generator.ordinal
        for _ in range(items // BATCH):
            for _ in range(NEW_A_BATCH):
                self.hands_in()
            self.programme.take(BATCH)
        expected.advance(generator.ordinal - before)
        assert generator.nae_draws.state == expected.state, "the pool was empty for a while"

    def nexts(self, calls: int, *, new: bool = True) -> None:
        """One by one, with one new artwork before every thousand."""
        following = self.programme.next
        for _ in range(calls // TAKEN):
            if new:
                self.hands_in()
            for _ in range(TAKEN):
                following()
