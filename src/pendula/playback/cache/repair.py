"""Inspect, verify and repair a cache file.

All three read the whole file and work with a damaged header, too.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from pendula.kernel.disk import Disk, RealDisk
from pendula.playback.cache.merge import merge
from pendula.playback.cache.shelf import (
    BAD_SUFFIX,
    HEADER_BYTES,
    CacheUnreachable,
    Fault,
    Header,
    Place,
    channel_hash,
    checked_name,
    file_bytes,
    file_size,
    header_faults,
    is_intact,
    next_generation,
    offset_of,
    parse_header,
    replace_file,
    set_aside,
)
from pendula.playback.choosing.records import BLOCK_SIZES, newest_first, sound
from pendula.playback.model import RECORD_BYTES, RECORDS_DEFAULT, RECORDS_LEAST, RECORDS_MOST, InvalidParameter

# The largest cache file; bytes beyond are not read.
READ_MOST = max(file_size(RECORDS_MOST, size) for size in BLOCK_SIZES)


class BlockFacts(Struct, frozen=True):
    """A data block, numbered from 1: its records, and how many of them are damaged."""

    block: int
    records: int
    damaged: int


class Inspection(Struct, frozen=True):
    """The facts of a file. `header` is not checked; None if the file is too short."""

    size: int
    header: Header | None
    faults: tuple[Fault, ...]
    blocks: tuple[BlockFacts, ...]

    @property
    def records(self) -> int:
        return sum(block.records - block.damaged for block in self.blocks)


class Repaired(Struct, frozen=True):
    """The result of a repair; `old` is the name of the old file, None if there were no faults."""

    kept: int
    generation: int
    faults: tuple[Fault, ...]
    dropped: tuple[Fault, ...]
    old: str | None

    @property
    def written(self) -> bool:
        return self.old is not None


class _Slot(Struct, frozen=True):
    at: int
    offset: int
    raw: bytes


def inspect(path: str | os.PathLike[str], channel: str | None = None) -> Inspection:
    """The header and the blocks of a file; raises `CacheUnreachable`."""
    data, size = _read(Path(path))
    shape = _shape(data)
    slots = _slots(data, shape)
    blocks: dict[int, list[_Slot]] = {}
    for slot in slots:
        blocks.setdefault(slot.offset // shape.block_bytes, []).append(slot)
    return Inspection(
        size,
        parse_header(data) if len(data) >= HEADER_BYTES else None,
        tuple(_header_faults(data, size, channel)),
        tuple(
            BlockFacts(number, len(held), sum(not sound(slot.raw) for slot in held)) for number, held in blocks.items()
        ),
    )


def verify(path: str | os.PathLike[str], channel: str | None = None) -> list[Fault]:
    """All faults of a file: header, records, padding; raises `CacheUnreachable`."""
    data, size = _read(Path(path))
    return [*_header_faults(data, size, channel), *_record_faults(data)]


def repair(path: str | os.PathLike[str], channel: str | None = None) -> Repaired:
    """Replace a file that has faults by one with all its valid records; the old file is kept as `.bad`.

    The records are sorted, and of two with one id the one modified later is kept. If the header is damaged, `channel`
    is required. Raises `InvalidParameter` and `CacheUnreachable`.
    """
    path = Path(path)
    data, size = _read(path)
    faults = (*_header_faults(data, size, channel), *_record_faults(data))
    shape = _shape(data)
    if not faults:
        return Repaired(shape.count, shape.generation, (), (), None)
    slots = [slot for slot in _slots(data, shape) if sound(slot.raw)]
    raws = merge((), (slot.raw for slot in slots), shape.k)
    header = shape if is_intact(data) else None
    generation = next_generation(header, raws)
    whose = _owner_hash(data, channel)
    new = file_bytes(whose, raws, k=shape.k, block_bytes=shape.block_bytes, generation=generation)
    disk = _open_disk(path)
    try:
        old = exchange(disk, path.name, data if size == len(data) else None, new)
    finally:
        disk.close()
    dropped = [fault for fault in faults if fault.place is Place.RECORD]
    dropped += _superseded(slots, raws)
    return Repaired(len(raws), generation, faults, tuple(dropped), old)


def _read(path: Path) -> tuple[bytes, int]:
    """The file, up to the size of the largest cache, and its size."""
    try:
        if not path.is_file():
            raise CacheUnreachable(f"{path} is not a file", file=str(path))
        with path.open("rb") as file:
            data = file.read(READ_MOST)
            return data, os.fstat(file.fileno()).st_size
    except (OSError, ValueError) as trouble:
        raise CacheUnreachable(f"{path} cannot be read: {trouble}", file=str(path)) from trouble


def _header_faults(data: bytes, size: int, channel: str | None) -> Iterator[Fault]:
    return header_faults(data, size, None if channel is None else channel_hash(channel))


def _shape(data: bytes) -> Header:
    """The header if it is intact and in range, else one that fits the records that are found."""
    if is_intact(data):
        said = parse_header(data)
        fits = RECORDS_LEAST <= said.k <= RECORDS_MOST and said.count <= said.k
        if fits and said.block_bytes in BLOCK_SIZES:
            return said
    # Use the block size that finds more valid records; on ties the smaller one, the default.
    found = {size: _used(data, size) for size in BLOCK_SIZES}
    block_bytes = max(BLOCK_SIZES, key=lambda size: (sum(map(sound, found[size])), -size))
    count = min(len(found[block_bytes]), RECORDS_MOST)
    generation = parse_header(data).generation if is_intact(data) else 0
    return Header(block_bytes, max(count, RECORDS_DEFAULT), count, generation, b"")


def _used(data: bytes, block_bytes: int) -> list[bytes]:
    """The slots up to the last one that is not empty."""
    slots = []
    at = 0
    while (offset := offset_of(at, block_bytes)) + RECORD_BYTES <= len(data):
        slots.append(data[offset : offset + RECORD_BYTES])
        at += 1
    while slots and not any(slots[-1]):
        slots.pop()
    return slots


def _slots(data: bytes, shape: Header) -> list[_Slot]:
    """The slots of the records; short or empty beyond the end of the file."""
    offsets = ((at, offset_of(at, shape.block_bytes)) for at in range(shape.count))
    return [_Slot(at, offset, data[offset : offset + RECORD_BYTES]) for at, offset in offsets]


def _record_faults(data: bytes) -> Iterator[Fault]:
    shape = _shape(data)
    slots = _slots(data, shape)
    first: dict[bytes, int] = {}
    before: bytes | None = None
    for slot in slots:
        if not sound(slot.raw):
            whole = len(slot.raw) == RECORD_BYTES
            sentence = "The record's checksum is wrong." if whole else "The file ends before the record does."
            yield Fault(Place.RECORD, slot.offset, sentence, slot.at)
            continue
        key = slot.raw[:8]
        if key in first:
            id = int.from_bytes(key, "little")
            yield Fault(Place.DUPLICATE, slot.offset, f"The id {id} is that of record {first[key]} too.", slot.at)
        elif before is not None and newest_first((slot.raw, before))[0] is slot.raw:
            yield Fault(Place.ORDER, slot.offset, "The record is newer than the one before it.", slot.at)
        first.setdefault(key, slot.at)
        before = slot.raw
    yield from _padding_faults(data, shape)


def _padding_faults(data: bytes, shape: Header) -> Iterator[Fault]:
    """Bytes of data blocks that belong to no record and are not zero."""
    for number in range(-(-shape.count // shape.per_block)):
        held = min(shape.per_block, shape.count - number * shape.per_block)
        start = (1 + number) * shape.block_bytes
        if any(data[start + held * RECORD_BYTES : start + shape.block_bytes]):
            offset = start + held * RECORD_BYTES
            yield Fault(Place.PADDING, offset, f"Block {1 + number} is not zero after its records.")


def _owner_hash(data: bytes, channel: str | None) -> bytes:
    if channel is not None:
        return channel_hash(channel)
    if is_intact(data):
        return parse_header(data).channel_hash
    raise InvalidParameter(
        "The header is damaged, so the channel is unknown; name it",
        parameter="channel",
        value="",
        allowed="the id of the channel",
    )


def _open_disk(path: Path) -> RealDisk:
    checked_name(path.name)
    try:
        return RealDisk(path.parent, make=False)
    except OSError as trouble:
        raise CacheUnreachable(f"{path.parent} cannot be opened: {trouble.strerror}", file=path.name) from trouble


def exchange(disk: Disk, name: str, old: bytes | None, new: bytes) -> str:
    """Write the new file after the copy of the old one is durable, so that a crash loses nothing.

    Returns the name of the copy. `old` is None for a file too large to be copied: it is renamed.
    """
    if old is None:
        set_aside(disk, name)
    else:
        replace_file(disk, name + BAD_SUFFIX, old)
    replace_file(disk, name, new)
    return name + BAD_SUFFIX


def _superseded(slots: list[_Slot], kept: list[bytes]) -> Iterator[Fault]:
    """Valid records that are dropped because another one with the same id was modified later."""
    left = set(kept)
    for slot in slots:
        if slot.raw in left:
            left.remove(slot.raw)
        else:
            yield Fault(Place.DUPLICATE, slot.offset, "Another record has its id.", slot.at)
