"""The demo of the scheduler `playback`: a frame that follows three channels, with new artwork from time to time.

Pictures need no files: the payload of a record describes one, with two bytes of hue, one of a second hue, one of the
pattern, and the rest for its shapes. All are drawn from one seed.
"""

from base64 import b64encode
from collections.abc import Container, Iterator
from typing import Any, Protocol

from msgspec import Struct

from pendula.demo import Demo
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Engine
from pendula.kernel.rng import Pcg32, stream
from pendula.playback.cache import Page, next_generation
from pendula.playback.choosing import pack
from pendula.playback.engine import Player
from pendula.playback.messages import Insert
from pendula.playback.model import PAYLOAD_BYTES, Record

NAME = "frame"
SEED = 20
DWELL_MS = 3000
PAUSE_SECONDS = 25
NEWEST = 1_750_000_000
DAY = 86_400
HUES = 360
HUES_WIDE = 24
PATTERNS = 6
NEW_IDS = 9000
NEW_STREAM = 0x4E4557


class Painted(Struct, frozen=True):
    """A channel of similar pictures: their number, hue and pattern, and the weight of the channel."""

    name: str
    count: int
    hue: int
    pattern: int
    weight: int


CHANNELS = (
    Painted("dawn", 24, 18, 0, 3),
    Painted("tide", 16, 205, 1, 2),
    Painted("meadow", 40, 110, 2, 1),
)


def records_of(number: int) -> list[Record]:
    """The records of one of the channels, newest first."""
    painted = CHANNELS[number]
    draws = stream(SEED, number, NEW_STREAM + 1)
    return [
        Record(
            id=1000 * (number + 1) + place,
            ts=NEWEST - place * DAY,
            payload=_payload(draws, painted.hue, painted.pattern),
        )
        for place in range(painted.count)
    ]


class Library(Protocol):
    """Channels by name."""

    def names(self) -> Container[str]: ...

    def put(self, channel: str, page: Page) -> object: ...


def stock(library: Library) -> None:
    """Add the channels of the demo to the library if they are missing."""
    for number, painted in enumerate(CHANNELS):
        if painted.name not in library.names():
            records = records_of(number)
            library.put(painted.name, Page(records, len(records)))


def next_command(engine: Engine[Any, Any], _number: int) -> Insert:
    """A new artwork with a new id each time, also after a restart."""
    assert isinstance(engine, Player)
    counts = engine.programme.generator.counts
    number = counts.inserts + counts.merges
    draws = stream(SEED, number, NEW_STREAM)
    payload = _payload(draws, draws.bounded(HUES), 3 + draws.bounded(PATTERNS - 3))
    return Insert(id=NEW_IDS + number, ts=NEWEST + number, payload=b64encode(payload).decode())


def _payload(draws: Pcg32, hue: int, pattern: int) -> bytes:
    around = (hue + draws.bounded(2 * HUES_WIDE + 1) - HUES_WIDE) % HUES
    shapes = bytes(_bytes(draws, PAYLOAD_BYTES - 4))
    return around.to_bytes(2, "little") + bytes((draws.bounded(256), pattern)) + shapes


def _bytes(draws: Pcg32, count: int) -> Iterator[int]:
    for _ in range(count):
        yield draws.bounded(256)


def _config() -> Json:
    contents: list[Json] = []
    for number, painted in enumerate(CHANNELS):
        generation = next_generation(None, [pack(record) for record in records_of(number)])
        contents.append({"id": painted.name, "count": painted.count, "generation": generation})
    weights: Json = {painted.name: painted.weight for painted in CHANNELS}
    return {
        "seed": SEED,
        "channels": contents,
        # A short lookahead, so that new artwork is shown soon.
        "settings": {"exposure": {"mode": "MaE", "manual_weights": weights}, "lookahead": 4, "history": 24},
        "dwell_ms": DWELL_MS,
    }


DEMO = Demo(NAME, _config(), next_command, PAUSE_SECONDS)
