"""Records as bytes: 80 each, checksummed, newest first, 51 to a block of 4096 (102 to 8192), none across two blocks."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from struct import Struct as Layout
from typing import Any, Protocol, TypeVar, runtime_checkable
from zlib import crc32

from msgspec.structs import astuple

from pendula.playback.model import (
    KEY_BYTES,
    LAYOUT,
    PAYLOAD_BYTES,
    RECORD_BYTES,
    RECORDS_MOST,
    InvalidRecord,
    Record,
    refused,
    said,
)

BLOCK_BYTES = 4096
BLOCK_SIZES = (4096, 8192)
RESIDUE = 0x2144DF1C  # the CRC-32 of anything followed by its own CRC-32, little-endian

# Place, id and bytes of a record; the id is None when the record is damaged, the place too when nothing can be read.
Row = tuple[int | None, int | None, bytes]
UNREADABLE: Row = (None, None, b"")

_UNSIGNED = {"id": 64, "kind": 8, "format": 8, "flags": 16, "dwell_ms": 32, "modified_ts": 32}


@runtime_checkable
class Shelf(Protocol):
    """The records of one channel, newest first, as the generator reaches them. Never raises; never changes.

    `generation` tells one set of contents from another. One that breaks its promises costs its channel the epoch.
    """

    @property
    def count(self) -> int: ...

    @property
    def generation(self) -> int: ...

    def run(self, at: int) -> Iterable[Row]:
        """Records from place `at` on, as far as is at hand; at least one row."""
        ...

    def record(self, at: int) -> Row: ...


@runtime_checkable
class Holding(Shelf, Protocol):
    """A shelf that reads blocks of a file, and can keep all that a batch asks for."""

    def hold(self) -> None: ...

    def let_go(self) -> None: ...


F = TypeVar("F")


def kept(method: F) -> F:
    """Mark a `run` or `record` that never raises and gives what a shelf promises: nobody has to watch it."""
    method.__kept__ = True  # type: ignore[attr-defined]
    return method


def is_kept(kind: type) -> bool:
    """Whether both ways to the records keep their promises; one that a subclass wrote anew does not."""
    return all(getattr(getattr(kind, name, None), "__kept__", False) for name in ("run", "record"))


def pack(record: Record) -> bytes:
    """The 80 bytes; raises `InvalidRecord` for what does not fit into its field."""
    for name, bits in _UNSIGNED.items():
        _check_integer(name, getattr(record, name), 0, (1 << bits) - 1)
    _check_integer("ts", record.ts, -(1 << 63), (1 << 63) - 1)
    for name, size in (("storage_key", KEY_BYTES), ("payload", PAYLOAD_BYTES)):
        value = getattr(record, name)
        if not isinstance(value, bytes) or len(value) != size:
            length = len(value) if isinstance(value, bytes) else said(value)
            raise refused(InvalidRecord, field=name, value=length, allowed=size)
    bare = LAYOUT.pack(*astuple(record), 0)[:-4]
    return bare + crc32(bare).to_bytes(4, "little")


def unpack(raw: bytes) -> Record:
    """Back again; raises `InvalidRecord` for another size or a wrong checksum."""
    if not sound(raw):
        raise InvalidRecord(
            f"These {len(raw)} bytes are not a record: {RECORD_BYTES} with a right checksum are one", field="raw"
        )
    return Record(*LAYOUT.unpack(raw)[:-1])


def sound(raw: bytes) -> bool:
    return len(raw) == RECORD_BYTES and crc32(raw) == RESIDUE


def newest_first(raws: Iterable[bytes]) -> list[bytes]:
    """In the order of a cache: later times first, of equal times the larger id."""
    return sorted(raws, key=_time_and_id, reverse=True)


def _time_and_id(raw: bytes) -> tuple[int, int]:
    return int.from_bytes(raw[8:16], "little", signed=True), int.from_bytes(raw[:8], "little")


def _check_integer(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise refused(InvalidRecord, field=name, value=said(value), allowed=[least, most])


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
    """The places, within the first `count` of a block, whose checksum is wrong."""
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
    """Records held in memory, in the same blocks as on disk; of more than 8192 the oldest are left out."""

    __slots__ = ("_blocks", "count", "generation")

    def __init__(self, records: Iterable[Record | bytes]) -> None:
        raws = [record if isinstance(record, bytes) else _packed(place, record) for place, record in enumerate(records)]
        for raw in raws:
            if not sound(raw):
                raise InvalidRecord(f"These {len(raw)} bytes are not a record", field="raw")
        seen: set[bytes] = set()
        for raw in raws:
            if raw[:8] in seen:
                id = int.from_bytes(raw[:8], "little")
                raise InvalidRecord(
                    f"The id {id} is there twice; ids are unique within a channel", field="id", value=id
                )
            seen.add(raw[:8])
        ordered = newest_first(raws)[:RECORDS_MOST]
        self.count = len(ordered)
        self._blocks = blocks_of(ordered)
        # No CRC: over records that end in their own it is the same for all contents.
        self.generation = int.from_bytes(sha256(b"".join(self._blocks)).digest()[:6], "little")

    @kept
    def run(self, at: int) -> Iterable[Row]:
        number, first = divmod(at, 51)
        base = number * 51
        return rows(self._blocks[number], first, min(51, self.count - base), base, ())

    @kept
    def record(self, at: int) -> Row:
        number, place = divmod(at, 51)
        raw = self._blocks[number][_SLICES[place]]
        return at, int.from_bytes(raw[:8], "little"), raw


def _packed(place: int, record: Record) -> bytes:
    if not isinstance(record, Record):
        raise InvalidRecord(
            f"records[{place}] is {said(record)}; allowed are records and their {RECORD_BYTES} bytes",
            field=f"records[{place}]",
            value=said(record),
        )
    return pack(record)


class PastShelf:
    """A shelf of which is known how much it held and which edition it was; its records are gone.

    `last` is the one of them that was shown last, where somebody remembers it.
    """

    __slots__ = ("count", "generation", "last")

    def __init__(self, count: int, generation: int) -> None:
        self.count = count
        self.generation = generation
        self.last: bytes | None = None

    @kept
    def run(self, at: int) -> Iterable[Row]:
        return (self.record(at),)

    @kept
    def record(self, _: int) -> Row:
        return UNREADABLE


class MaskedShelf:
    """A shelf without some of its records: those whose media are gone, or that nobody wants to see again."""

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
    """The place on the shelf of the record that is number `at` among those that are not gone; `gone` is sorted."""
    for place in gone:
        if place > at:
            break
        at += 1
    return at


def walk(shelf: Shelf, at: int) -> Iterator[Row]:
    """The rows of a shelf from a place on, from the newest again after the oldest, for ever."""
    while True:
        place: int | None = at
        for row in shelf.run(at):
            place = row[0]
            yield row
        while place is None:
            yield (None, None, b"")
        at = (place + 1) % shelf.count
