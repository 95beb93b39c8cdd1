"""What the frame follows: three generated channels.

All records come from one seed, so that `frame.yaml` and the scripts have the same pictures.
"""

from pathlib import Path

from msgspec import Struct

from pendula.documents import Document, read_file
from pendula.kernel.rng import stream
from pendula.playback import Channel, MemoryShelf, Record

SEED = 7
NEWEST_TS = 1_751_371_200  # 1 July 2025, noon
DAY = 86_400
PICTURE, SVG = 1, 9
PAYLOAD_BYTES = 32
DWELLS_MS = (5_000, 6_000, 8_000, 12_000)


class Painter(Struct, frozen=True):
    """A channel of the frame: name, number of pictures, and the words of their titles."""

    channel: str
    number: int
    pictures: int
    days_apart: int
    moods: tuple[str, ...]
    things: tuple[str, ...]


PAINTERS = (
    Painter("sea", 1, 12, 1, ("Calm", "Grey", "Wild", "Silver"), ("bay", "pier", "tide", "lighthouse")),
    Painter("hills", 2, 7, 3, ("Green", "Misty", "Late", "First"), ("slope", "pass", "meadow", "path")),
    Painter("town", 3, 4, 9, ("Wet", "Quiet", "Early", "Long"), ("street", "roof", "market", "bridge")),
)


def frame() -> Document:
    """The playback file: three channels and the calls of an evening."""
    return read_file(Path(__file__).with_name("frame.yaml"))


def channels() -> list[Channel]:
    """The three channels with their records in memory."""
    return [Channel(painter.channel, MemoryShelf(records(painter))) for painter in PAINTERS]


def records(painter: Painter) -> list[Record]:
    """A painter's pictures, the newest first."""
    draws = stream(SEED, painter.number, 0)
    titles = [f"{mood} {thing}" for mood in painter.moods for thing in painter.things]
    made: list[Record] = []
    ts = NEWEST_TS
    for place in range(painter.pictures):
        ts -= draws.bounded(painter.days_apart * DAY) + 1
        title = titles.pop(draws.bounded(len(titles)))
        number = painter.pictures - place
        made.append(picture(painter.number * 100 + number, ts, title, DWELLS_MS[draws.bounded(len(DWELLS_MS))]))
    return made


def new_picture(number: int, after_days: int) -> Record:
    """A picture of no channel, for new artwork events."""
    return picture(900 + number, NEWEST_TS + after_days * DAY, f"New, no. {number}", DWELLS_MS[0])


def picture(id: int, ts: int, title: str, dwell_ms: int) -> Record:
    """A record whose payload is its title."""
    payload = title.encode().ljust(PAYLOAD_BYTES, b"\0")
    return Record(id, ts, PICTURE, SVG, dwell_ms=dwell_ms, payload=payload)


def title_in(payload: bytes) -> str:
    """The title in a payload."""
    return payload.rstrip(b"\0").decode()
