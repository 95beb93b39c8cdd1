"""Channels and their records: 80 bytes each, checksummed, newest first, 51 to a block of 4096 (102 to 8192).

Shelves of this package are trusted. Any other is guarded: its count is read once, every row is checked, and whatever it
raises or yields, only its channel becomes unreadable; the first problem is kept as text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from inspect import getattr_static
from struct import Struct as Layout
from typing import Any, Protocol, TypeVar, runtime_checkable
from zlib import crc32

from msgspec import Struct
from msgspec.structs import astuple, force_setattr

from pendula.kernel.errors import WrongUsage
from pendula.playback.model import (
    KEY_BYTES,
    LAYOUT,
    MASK_64,
    NAME_MOST,
    PAYLOAD_BYTES,
    RECORD_BYTES,
    RECORDS_MOST,
    Diagnostic,
    InvalidRecord,
    Record,
    UnknownChannel,
    diagnostic,
    invalid_parameter,
    refused,
    short_repr,
)
from pendula.playback.settings import Settings

BLOCK_BYTES = 4096
BLOCK_SIZES = (4096, 8192)
RESIDUE = 0x2144DF1C  # the CRC-32 of anything followed by its own CRC-32, little-endian

# Place, id and bytes of a record; the id is None when the record is damaged, the place too when nothing can be read.
Row = tuple[int | None, int | None, bytes]
UNREADABLE: Row = (None, None, b"")

_UNSIGNED = {"id": 64, "kind": 8, "format": 8, "flags": 16, "dwell_ms": 32, "modified_ts": 32}


@runtime_checkable
class Shelf(Protocol):
    """The records of one channel, newest first. Must not raise and must not change.

    `generation` identifies the contents. If a shelf breaks this contract, its channel is unreadable for the epoch.
    """

    @property
    def count(self) -> int: ...

    @property
    def generation(self) -> int: ...

    def run(self, at: int) -> Iterable[Row]:
        """Records from place `at`, at least one; as many as are cheap to read."""
        ...

    def record(self, at: int) -> Row: ...


@runtime_checkable
class Holding(Shelf, Protocol):
    """A shelf that reads blocks of a file and can keep all blocks of a batch."""

    def hold(self) -> None: ...

    def release_blocks(self) -> None: ...


F = TypeVar("F")


def trusted(method: F) -> F:
    """Mark a `run` or `record` that keeps the contract of `Shelf` and needs no guard."""
    method.__trusted__ = True  # type: ignore[attr-defined]
    return method


def is_trusted(kind: type) -> bool:
    """Whether `run` and `record` are both marked; an override in a subclass is not."""
    return all(getattr(getattr(kind, name, None), "__trusted__", False) for name in ("run", "record"))


def pack(record: Record) -> bytes:
    """The 80 bytes; raises `InvalidRecord` for a value that does not fit its field."""
    for name, bits in _UNSIGNED.items():
        _check_integer(name, getattr(record, name), 0, (1 << bits) - 1)
    _check_integer("ts", record.ts, -(1 << 63), (1 << 63) - 1)
    for name, size in (("storage_key", KEY_BYTES), ("payload", PAYLOAD_BYTES)):
        value = getattr(record, name)
        if not isinstance(value, bytes) or len(value) != size:
            length = len(value) if isinstance(value, bytes) else short_repr(value)
            raise refused(InvalidRecord, field=name, value=length, allowed=size)
    bare = LAYOUT.pack(*astuple(record), 0)[:-4]
    return bare + crc32(bare).to_bytes(4, "little")


def unpack(raw: bytes) -> Record:
    """The record in 80 bytes; raises `InvalidRecord` for another size or a wrong checksum."""
    if not sound(raw):
        raise InvalidRecord(
            f"These {len(raw)} bytes are not a record of {RECORD_BYTES} bytes with a valid checksum",
            field="raw",
        )
    return Record(*LAYOUT.unpack(raw)[:-1])


def sound(raw: bytes) -> bool:
    return len(raw) == RECORD_BYTES and crc32(raw) == RESIDUE


def check_raws(raws: Iterable[bytes], owner: str) -> None:
    """Raise `InvalidRecord` for a damaged record, or for an id that the owner has twice."""
    seen: set[bytes] = set()
    for raw in raws:
        if not sound(raw):
            raise InvalidRecord(f"These {len(raw)} bytes are not a record", field="raw")
        if raw[:8] in seen:
            id = int.from_bytes(raw[:8], "little")
            raise InvalidRecord(f"The id {id} appears twice; ids are unique within a {owner}", field="id", value=id)
        seen.add(raw[:8])


def newest_first(raws: Iterable[bytes]) -> list[bytes]:
    """Sort by time, the latest first; on ties the larger id first."""
    return sorted(raws, key=_time_and_id, reverse=True)


def _time_and_id(raw: bytes) -> tuple[int, int]:
    return int.from_bytes(raw[8:16], "little", signed=True), int.from_bytes(raw[:8], "little")


def _check_integer(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise refused(InvalidRecord, field=name, value=short_repr(value), allowed=[least, most])


def blocks_of(raws: Sequence[bytes], block_bytes: int = BLOCK_BYTES) -> list[bytes]:
    """The data blocks that hold these records."""
    per_block = block_bytes // RECORD_BYTES
    return [
        b"".join(raws[first : first + per_block]).ljust(block_bytes, b"\0") for first in range(0, len(raws), per_block)
    ]


@lru_cache(maxsize=256)
def _ids_layout(count: int) -> Layout:
    return Layout("<" + "Q72x" * count)


@lru_cache(maxsize=256)
def _records_layout(count: int) -> Layout:
    return Layout("<" + "80s" * count)


_SLICES = tuple(slice(first * RECORD_BYTES, (first + 1) * RECORD_BYTES) for first in range(max(BLOCK_SIZES) // 80))


def damaged(block: bytes, count: int) -> tuple[int, ...]:
    """The places within the first `count` records of a block whose checksum is wrong."""
    found = list(map(crc32, _records_layout(count).unpack_from(block)))
    if found.count(RESIDUE) == count:
        return ()
    return tuple(place for place, sum in enumerate(found) if sum != RESIDUE)


def rows(block: bytes, first: int, count: int, base: int, bad: Sequence[int]) -> Iterator[Row]:
    """The records `first` .. `count` - 1 of a block whose record 0 has the place `base`."""
    ids: Sequence[int | None] = _ids_layout(count).unpack_from(block)
    if bad:
        ids = [None if place in bad else id for place, id in enumerate(ids)]
    return zip(
        range(base + first, base + count), ids[first:], map(block.__getitem__, _SLICES[first:count]), strict=False
    )


class MemoryShelf:
    """Records in memory, in the same blocks as on disk; beyond 8192 the oldest are left out."""

    __slots__ = ("_blocks", "count", "generation")

    def __init__(self, records: Iterable[Record | bytes]) -> None:
        raws = [record if isinstance(record, bytes) else _packed(place, record) for place, record in enumerate(records)]
        check_raws(raws, "channel")
        ordered = newest_first(raws)[:RECORDS_MOST]
        self.count = len(ordered)
        self._blocks = blocks_of(ordered)
        # Not a CRC: over records that end in their own CRC it is the same for all contents.
        self.generation = int.from_bytes(sha256(b"".join(self._blocks)).digest()[:6], "little")

    @trusted
    def run(self, at: int) -> Iterable[Row]:
        number, first = divmod(at, 51)
        base = number * 51
        return rows(self._blocks[number], first, min(51, self.count - base), base, ())

    @trusted
    def record(self, at: int) -> Row:
        number, place = divmod(at, 51)
        raw = self._blocks[number][_SLICES[place]]
        return at, int.from_bytes(raw[:8], "little"), raw


def _packed(place: int, record: Record) -> bytes:
    if not isinstance(record, Record):
        raise InvalidRecord(
            f"records[{place}] is {short_repr(record)}; allowed are records and their {RECORD_BYTES} bytes",
            field=f"records[{place}]",
            value=short_repr(record),
        )
    return pack(record)


class PastShelf:
    """Count and generation of a shelf whose records are gone; every record is unreadable.

    `last` is the record that was shown last, if known.
    """

    __slots__ = ("count", "generation", "last")

    def __init__(self, count: int, generation: int) -> None:
        self.count = count
        self.generation = generation
        self.last: bytes | None = None

    @trusted
    def run(self, at: int) -> Iterable[Row]:
        return (self.record(at),)

    @trusted
    def record(self, _: int) -> Row:
        return UNREADABLE


class MaskedShelf:
    """A shelf without some of its records: banned ones, or those whose media are gone."""

    __slots__ = ("_gone", "_shelf", "count", "generation")

    def __init__(self, shelf: Shelf, gone: Sequence[int]) -> None:
        self._shelf = shelf
        self._gone = tuple(sorted({place for place in gone if 0 <= place < shelf.count}))
        self.count = shelf.count - len(self._gone)
        self.generation = shelf.generation

    def run(self, at: int) -> Iterable[Row]:
        return (self.record(at),)

    def record(self, at: int) -> Row:
        real = unmasked(at, self._gone)
        place, id, raw = self._shelf.record(real)
        return (None if place is None else at), id, raw


def unmasked(at: int, gone: Sequence[int]) -> int:
    """The place on the shelf of visible record `at`; `gone` is sorted."""
    for place in gone:
        if place > at:
            break
        at += 1
    return at


def walk(shelf: Shelf, at: int) -> Iterator[Row]:
    """The rows of a shelf from a place, endlessly: after the oldest comes the newest."""
    while True:
        place: int | None = at
        for row in shelf.run(at):
            place = row[0]
            yield row
        while place is None:
            yield (None, None, b"")
        at = (place + 1) % shelf.count


T = TypeVar("T")

MEMBERS = ("count", "generation", "run", "record")
# The program is ended; that is not a fault of the shelf.
PASSED_ON = (KeyboardInterrupt, SystemExit)
END: Row = (-1, None, b"")


class NoShelf(WrongUsage):
    """The object does not implement `Shelf`. Facts: `channel`, `missing`."""

    code = "not_a_shelf"


def is_shelf(thing: object) -> bool:
    """Whether the object has all members of a shelf; none is called."""
    return not _missing(thing)


def guarded(channel: str, shelf: Shelf) -> Shelf:
    """The shelf itself if it is trusted, else a guard around it; raises `NoShelf`."""
    if missing := _missing(shelf):
        raise NoShelf(_sentence(channel, shelf, missing), channel=channel, missing=missing)
    return shelf if is_trusted(type(shelf)) else GuardedShelf(shelf)


def _missing(thing: object) -> list[str]:
    return [name for name in MEMBERS if getattr_static(thing, name, None) is None]


def _sentence(channel: str, thing: object, missing: list[str]) -> str:
    given = f"Channel {channel!r} is given {type(thing).__name__} {short_repr(thing)}, which is not a Shelf"
    if isinstance(thing, list | tuple | set | frozenset):
        return f"{given}; wrap the records: Channel({channel!r}, MemoryShelf(records))"
    return f"{given}: it lacks {', '.join(missing)}; use a MemoryShelf of records"


class GuardedShelf:
    """A guard around a user-written shelf. `trouble` is the first problem, `broken` that its count cannot be read."""

    __slots__ = ("_shelf", "broken", "count", "generation", "trouble")

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.trouble: str | None = None
        self.count, self.generation = self._said(self._sizes, (0, 0))
        self.broken = self.trouble is not None

    @trusted
    def run(self, at: int) -> Iterator[Row]:
        rows: Iterator[Row] = self._said(lambda: iter(self._shelf.run(at)), iter((UNREADABLE,)))
        first = at
        while at < self.count:
            row = self._said(partial(self._following, rows, at), UNREADABLE)
            if row is END and at > first:
                return
            if row is END:
                self._note(f"its run from place {at} is empty")
                row = UNREADABLE
            yield row
            if row[0] is None:
                return
            at += 1

    @trusted
    def record(self, at: int) -> Row:
        row = self._said(lambda: self._seen(self._shelf.record(at), at), UNREADABLE)
        return UNREADABLE if row is END else row

    @property
    def reads(self) -> int:
        """Blocks read from a file, if the shelf counts them."""
        return self._counted("reads")

    @property
    def hits(self) -> int:
        return self._counted("hits")

    def _counted(self, name: str) -> int:
        found = self._said(lambda: getattr(self._shelf, name, 0), 0)
        return found if isinstance(found, int) else 0

    def _sizes(self) -> tuple[int, int]:
        # Beyond the limit of a channel the oldest records are left out.
        return min(_whole("count", self._shelf.count), RECORDS_MOST), _whole("generation", self._shelf.generation)

    def _following(self, rows: Iterator[Row], at: int) -> Row:
        return self._seen(next(rows, END), at)

    def _seen(self, row: Row, at: int) -> Row:
        """The checked row; damaged if its bytes are not a valid record. Raises if it is not a row."""
        if row is END:
            return row
        place, id, raw = row
        if place is None:
            return UNREADABLE
        if type(place) is not int or place != at:
            raise ValueError(f"the row for place {at} has place {short_repr(place)}")
        if id is None or not isinstance(raw, bytes) or not sound(raw):
            return at, None, b""
        return at, int.from_bytes(raw[:8], "little"), bytes(raw)

    def _said(self, ask: Callable[[], T], otherwise: T) -> T:
        try:
            return ask()
        except PASSED_ON:
            raise
        except BaseException as trouble:
            # User code: even a BaseException must not end a player.
            self._note(_told(trouble))
            return otherwise

    def _note(self, trouble: str) -> None:
        if self.trouble is None:
            self.trouble = trouble


def _told(trouble: BaseException) -> str:
    try:
        return f"{type(trouble).__name__}: {short_repr(str(trouble))}"
    except Exception:
        # `str` of a user's exception is user code, too.
        return type(trouble).__name__


def _whole(name: str, value: object) -> int:
    if type(value) is not int or not 0 <= value <= MASK_64:
        raise ValueError(f"{name} is {short_repr(value)}; allowed is an integer from 0 to 2^64 - 1")
    return value


def unreadable(channel: str, shelf: Shelf, bad: Sequence[int] = ()) -> Diagnostic:
    """The diagnostic of a channel that became unreadable, with the problem of a guarded shelf."""
    facts: dict[str, object] = {"channel": channel, "damaged": list(bad)}
    if isinstance(shelf, GuardedShelf) and shelf.trouble is not None:
        facts["shelf"] = shelf.trouble
    return diagnostic("UnreadableChannel", **facts)


class Channel(Struct, frozen=True):
    """A followed channel: its id, its records, and the places of banned ones. Raises `NoShelf`."""

    id: str
    shelf: Shelf
    gone: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "shelf", guarded(self.id, self.shelf))

    @property
    def visible(self) -> Shelf:
        return MaskedShelf(self.shelf, self.gone) if self.gone else self.shelf

    def same(self, other: "Channel") -> bool:
        left, right = self.shelf, other.shelf
        return (self.id, left.count, left.generation, self.gone) == (
            other.id,
            right.count,
            right.generation,
            other.gone,
        )


class Snapshot(Struct, frozen=True):
    """What determines the items of an epoch, besides the seed and the number of the epoch."""

    channels: tuple[Channel, ...] = ()
    settings: Settings = Settings()
    part: str | None = None  # the day part that applies

    def same(self, other: "Snapshot") -> bool:
        return (
            self.settings == other.settings
            and self.part == other.part
            and len(self.channels) == len(other.channels)
            and all(left.same(right) for left, right in zip(self.channels, other.channels, strict=True))
        )


def index_of(snapshot: Snapshot, channel: str) -> int:
    """The place of a channel in the order; raises `UnknownChannel`."""
    for index, there in enumerate(snapshot.channels):
        if there.id == channel:
            return index
    raise refused(UnknownChannel, channel=channel, followed=[there.id for there in snapshot.channels])


def check_names(snapshot: Snapshot, before: Snapshot) -> None:
    """Raise `UnknownChannel` for a weight or count of a channel that is not followed, unless it was there before.

    The weight of an unfollowed channel is kept, in case it is followed again.
    """
    followed = [channel.id for channel in snapshot.channels]
    noted_before = dict(_named(before.settings))
    for field, names in _named(snapshot.settings):
        noted = noted_before.get(field, {})
        for name in names:
            if name not in followed and name not in noted:
                raise refused(UnknownChannel, field=field, channel=name, followed=followed)


def _named(settings: Settings) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Each setting by channel, with the name of its field."""
    exposure = settings.exposure
    yield "manual_weights", exposure.manual_weights
    yield "total_count", exposure.total_count
    yield "recent_count", exposure.recent_count
    for part in settings.day_parts:
        yield f"day_parts.{part.name}", part.weights


def check_id(channel: str) -> None:
    """Raise `InvalidParameter` if this cannot be the id of a channel."""
    if not isinstance(channel, str) or not 1 <= len(channel) <= NAME_MOST or not _is_text(channel):
        raise invalid_parameter("channel", channel, "channel_id")


def _is_text(name: str) -> bool:
    """Whether a name can be encoded; a lone surrogate cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
