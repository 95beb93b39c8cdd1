"""Random channels and settings, for the package and for the oracle; shelves with faults."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from random import Random

from pendula.playback.choosing.records import UNREADABLE, MemoryShelf, Row, Shelf, pack
from pendula.playback.model import Record
from pendula.playback.settings import DAYS, DayPart, Exposure, Mode, Nae, Pick, PickMode, Refresh, Settings
from tests.playback.oracle import Artwork, Fault, OracleSettings, Part, Slot

NAMES = tuple("abcdefgh")
IDS = (*range(12), 2**64 - 1, 2**63)
TIMES = (-(2**63), -1, 0, 1, 1, 1, 2, 2**33, 2**63 - 1)


class RoughShelf:
    """Records in this order, damaged and unreadable ones included; `run` gives `stride` rows at a time."""

    def __init__(self, slots: Sequence[Slot], stride: int = 7) -> None:
        self._slots, self._stride = tuple(slots), stride
        self.count = len(self._slots)
        self.generation = int.from_bytes(sha256(repr(self._slots).encode()).digest()[:7], "big")

    def run(self, at: int) -> Iterable[Row]:
        return [self.record(place) for place in range(at, min(self.count, at + self._stride))]

    def record(self, at: int) -> Row:
        slot = self._slots[at]
        if slot is Fault.UNREADABLE:
            return UNREADABLE
        if slot is Fault.DAMAGED:
            return at, None, b"\xff" * 80
        assert isinstance(slot, Artwork)
        return at, slot.id, packed(slot)


@lru_cache(maxsize=4096)
def packed(work: Artwork) -> bytes:
    return pack(record(work))


def record(work: Artwork) -> Record:
    return Record(
        work.id,
        work.ts,
        work.kind,
        work.format,
        work.flags,
        work.dwell_ms,
        0,
        work.storage_key,
        work.payload,
    )


def shelf(slots: Sequence[Slot]) -> Shelf:
    works = [slot for slot in slots if isinstance(slot, Artwork)]
    if len({work.id for work in works}) == len(slots):
        return MemoryShelf(map(packed, works))
    return RoughShelf(slots)


def settings(chosen: OracleSettings, names: Sequence[str] = NAMES) -> Settings:
    """The same settings as a struct of the package, for channels of these names."""
    exposure = Exposure(
        Mode(chosen.mode),
        {name: decimal(weight) for name, weight in chosen.manual.items() if name in names},
        {name: count for name, count in chosen.total.items() if name in names},
        {name: count for name, count in chosen.recent.items() if name in names},
        decimal(chosen.alpha),
        decimal(chosen.p_min),
        decimal(chosen.p_max),
    )
    return Settings(
        exposure,
        Pick(PickMode(chosen.pick), chosen.r),
        chosen.history,
        chosen.lookahead,
        Nae(chosen.nae, chosen.cap),
        chosen.preserve,
        refresh=Refresh(chosen.refresh),
        day_parts=tuple(day_part(part, names) for part in chosen.parts),
    )


def day_part(part: Part, names: Sequence[str]) -> DayPart:
    weights = {name: decimal(weight) for name, weight in part.manual.items() if name in names}
    days = tuple(day for place, day in enumerate(DAYS) if place in part.days)
    return DayPart(part.name, _time(part.start), _time(part.end), weights, days)


def _time(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def some_work(random: Random, ids: Sequence[int] = IDS) -> Artwork:
    return Artwork(
        random.choice(ids),
        random.choice(TIMES),
        random.randrange(256),
        random.randrange(256),
        random.randrange(2**16),
        random.randrange(2**32),
        bytes([random.randrange(256)]) * 16,
        bytes([random.randrange(256)]) * 32,
    )


def some_slots(random: Random) -> tuple[Slot, ...]:
    """The records of a channel: mostly few, with ids that other channels have too; one in three has faults."""
    shape = random.randrange(12)
    if shape == 0:
        return ()
    if shape == 1:
        first = random.randrange(5)
        return tuple(Artwork(id, 10_000 - id) for id in range(first, first + random.choice((51, 60, 110))))
    works = {work.id: work for work in (some_work(random) for _ in range(random.choice((1, 1, 2, 2, 3, 4, 7))))}
    slots: list[Slot] = [*sorted(works.values(), key=lambda work: (work.ts, work.id), reverse=True)]
    if random.randrange(3) == 0:
        for _ in range(random.choice((1, 1, 2, 3))):
            # A repeated record is a fault too, and the only way to more than one skip in a row.
            fault: Slot = random.choice((Fault.DAMAGED, Fault.DAMAGED, Fault.UNREADABLE, slots[0], slots[0]))
            slots.insert(random.randrange(len(slots) + 1), fault)
    return tuple(slots)


def random_settings(random: Random) -> OracleSettings:
    least = Fraction(random.choice((1, 2, 5, 20)), 100)
    return OracleSettings(
        mode=random.choice(("EqE", "MaE", "PrE")),
        manual={name: Fraction(random.choice((0, 0, 1, 1, 2, 5, -3, 10**6, Fraction(1, 8)))) for name in NAMES},
        total={name: random.choice((0, 1, 50, 9000)) for name in NAMES},
        recent={name: random.choice((0, 0, 1, 30)) for name in NAMES},
        alpha=Fraction(random.choice((0, 35, 50, 100)), 100),
        p_min=least,
        p_max=random.choice((least, Fraction(2, 5), Fraction(1))),
        pick=random.choice(("recency", "random")),
        r=random.choice((1, 2, 3, 64, 8192)),
        history=random.choice((1, 2, 3, 5, 32, 200)),
        lookahead=random.choice((1, 1, 2, 3, 4, 8, 32, 100)),
        nae=random.randrange(6) > 0,
        cap=random.choice((1, 2, 4, 32, 64)),
        preserve=random.randrange(4) == 0,
        refresh=random.choice(("reset", "keep")),
        parts=some_parts(random) if random.randrange(3) == 0 else (),
    )


def some_parts(random: Random) -> tuple[Part, ...]:
    """One to three parts, some of which overlap, last beyond midnight or all day, on some days of the week."""
    return tuple(
        Part(
            name,
            random.choice((0, 360, 1080, 1320)),
            random.choice((360, 540, 1080, 1440)),
            frozenset(random.sample(range(7), random.choice((1, 2, 5, 7)))),
            {one: Fraction(random.choice((0, 1, 1, 4))) for one in NAMES},
        )
        for name in ("morning", "evening", "night")[: random.choice((1, 2, 3))]
    )


def changed(random: Random, chosen: OracleSettings) -> OracleSettings:
    """The settings with at most one change."""
    other = random_settings(random)
    name = random.choice(tuple(chosen.__dataclass_fields__))
    if name == "refresh" and chosen.refresh == "reset":
        return chosen  # its shelves can have duplicate and unsorted records
    return chosen if name in ("p_min", "p_max") else replace(chosen, **{name: getattr(other, name)})
