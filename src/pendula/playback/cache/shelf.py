"""Cache files of channels: written atomically, read by blocks, renamed to `.bad` if corrupt.

A file is a header block, then data blocks of whole records, newest first:

    0  4s  magic PCH1        8  u32  block size      20  u32  zero             64  u32  CRC-32 of bytes 0..63
    4  u16 version 1        12  u32  K               24  u64  generation       68  zero to the end of the block
    6  u16 record size 80   16  u32  count           32  32s  sha256 of the channel's id

All little-endian. A file has exactly the blocks that its records need. A reader keeps its open file: a rewrite replaces
the name, and a running epoch continues with the old file. The contents of a file never make reading raise; faults
become diagnostics or unreadable rows.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from struct import Struct as Layout
from weakref import finalize
from zlib import crc32

from msgspec import Struct

from pendula.kernel.disk import NAME, Disk, RealDisk, replace
from pendula.kernel.errors import WorldBroken
from pendula.playback.choosing.records import (
    BLOCK_BYTES,
    BLOCK_SIZES,
    UNREADABLE,
    MemoryShelf,
    Row,
    Shelf,
    blocks_of,
    check_raws,
    damaged,
    newest_first,
    rows,
    trusted,
)
from pendula.playback.model import (
    MASK_64,
    RECORD_BYTES,
    RECORDS_DEFAULT,
    RECORDS_LEAST,
    RECORDS_MOST,
    Diagnostic,
    InvalidParameter,
    wrong_value,
)

MAGIC = b"PCH1"
VERSION = 1
FIELDS = Layout("<4sHHIIIIQ32s")
SUM = Layout("<I")
HEADER_BYTES = FIELDS.size + SUM.size
MAGIC_AT, CHANNEL_AT = 0, 32


class Place(StrEnum):
    """The part of a cache file that has a fault."""

    HEADER = "header"
    SIZE = "size"
    RECORD = "record"
    ORDER = "order"
    DUPLICATE = "duplicate"
    PADDING = "padding"


class Fault(Struct, frozen=True):
    """A fault of a cache file. `offset` is a byte of the file, `record` a place from 0."""

    place: Place
    offset: int
    sentence: str
    record: int | None = None


class Header(Struct, frozen=True):
    """The header of a cache file."""

    block_bytes: int
    k: int
    count: int
    generation: int
    channel_hash: bytes

    @property
    def per_block(self) -> int:
        return self.block_bytes // RECORD_BYTES

    @property
    def file_bytes(self) -> int:
        return file_size(self.count, self.block_bytes)

    def pack(self) -> bytes:
        """The whole header block."""
        sizes = (RECORD_BYTES, self.block_bytes, self.k, self.count, 0)
        fields = FIELDS.pack(MAGIC, VERSION, *sizes, self.generation, self.channel_hash)
        return (fields + SUM.pack(crc32(fields))).ljust(self.block_bytes, b"\0")


def channel_hash(channel: str) -> bytes:
    """The 32 bytes that identify the channel in the header."""
    return sha256(channel.encode("utf-8", "surrogatepass")).digest()


def offset_of(at: int, block_bytes: int) -> int:
    """The offset of record `at`."""
    block, place = divmod(at, block_bytes // RECORD_BYTES)
    return (1 + block) * block_bytes + place * RECORD_BYTES


def file_size(count: int, block_bytes: int) -> int:
    """The size of a file with `count` records."""
    return (1 + -(-count // (block_bytes // RECORD_BYTES))) * block_bytes


def file_bytes(channel: bytes, raws: Sequence[bytes], *, k: int, block_bytes: int, generation: int) -> bytes:
    """The file with these records, sorted; beyond `k` the oldest are dropped. `channel` is the hash of its id.

    Raises `InvalidParameter` for K, block size or generation, `InvalidRecord` for a damaged record or a repeated id.
    """
    _check_parameters(k, block_bytes, generation)
    check_raws(raws, "file")
    kept = newest_first(raws)[:k]
    header = Header(block_bytes, k, len(kept), generation, channel)
    return header.pack() + b"".join(blocks_of(kept, block_bytes))


def checked_k(k: int) -> int:
    """`k` within its limits; raises `InvalidParameter`."""
    if isinstance(k, bool) or not isinstance(k, int) or not RECORDS_LEAST <= k <= RECORDS_MOST:
        raise wrong_value("k", k, f"an integer from {RECORDS_LEAST} to {RECORDS_MOST}")
    return k


def _check_parameters(k: int, block_bytes: int, generation: int) -> None:
    checked_k(k)
    if block_bytes not in BLOCK_SIZES:
        raise wrong_value("block_bytes", block_bytes, " or ".join(map(str, BLOCK_SIZES)))
    if isinstance(generation, bool) or not isinstance(generation, int) or not 0 <= generation <= MASK_64:
        raise wrong_value("generation", generation, "an integer from 0 to 2^64 - 1")


def next_generation(header: Header | None, raws: Sequence[bytes]) -> int:
    """One more than the previous generation; without a valid previous file, a hash of the contents.

    Restarting at 1 could give other contents a generation that a reader of a lost file still knows. 48 bits are exact
    in programs that only have floats.
    """
    if header is None:
        # Not a CRC-32: over data that ends in its own CRC-32 it is the same for all contents.
        return int.from_bytes(sha256(b"".join(newest_first(raws))).digest()[:6], "little")
    return (header.generation + 1) & MASK_64


def read_header(head: bytes, size: int, channel: bytes | None = None) -> Header | Fault:
    """The header of a file of `size` bytes, or its first fault.

    `head` has at least the header block, unless the file is shorter. `channel` is the expected hash.
    """
    for fault in header_faults(head, size, channel):
        return fault
    return parse_header(head)


def parse_header(head: bytes) -> Header:
    """The fields of a header of at least 68 bytes, without checks."""
    _, _, _, block_bytes, k, count, _, generation, hashed = FIELDS.unpack_from(head)
    return Header(block_bytes, k, count, generation, hashed)


def is_intact(head: bytes) -> bool:
    """Whether magic and checksum are valid; the fields may still be out of range."""
    return len(head) >= HEADER_BYTES and head[:4] == MAGIC and SUM.unpack_from(head, FIELDS.size) == (crc32(head[:64]),)


def header_faults(head: bytes, size: int, channel: bytes | None = None) -> Iterator[Fault]:
    """The faults of a header and of the size of its file; the most important first."""
    if len(head) < HEADER_BYTES:
        if head[:4] != MAGIC:
            yield _no_cache(head[:4])
        yield Fault(Place.SIZE, 0, f"The file has {size} bytes; a header alone has {min(BLOCK_SIZES)} or more.")
        return
    magic, version, record_bytes, block_bytes, k, count, zero, _, hashed = FIELDS.unpack_from(head)
    if magic != MAGIC:
        yield _no_cache(magic)
    if version != VERSION:
        yield _header(4, f"The version is {version}; version {VERSION} can be read.")
    if SUM.unpack_from(head, FIELDS.size) != (crc32(head[: FIELDS.size]),):
        yield _header(FIELDS.size, "The header's checksum is wrong.")
    if record_bytes != RECORD_BYTES:
        yield _header(6, f"A record has {record_bytes} bytes; {RECORD_BYTES} can be read.")
    if not RECORDS_LEAST <= k <= RECORDS_MOST:
        yield _header(12, f"K is {k}; it must be {RECORDS_LEAST} to {RECORDS_MOST}.")
    if count > k:
        yield _header(16, f"The count is {count}, more than K, which is {k}.")
    if zero:
        yield _header(20, f"Bytes 20 to 23 hold {zero}; they must be zero.")
    if channel is not None and hashed != channel:
        yield _header(CHANNEL_AT, "The file belongs to another channel.")
    if block_bytes not in BLOCK_SIZES:
        yield _header(8, f"A block has {block_bytes} bytes; {' and '.join(map(str, BLOCK_SIZES))} can be read.")
        return
    if any(head[HEADER_BYTES:block_bytes]):
        yield _header(HEADER_BYTES, "The rest of the header block is not zero.")
    if size != (due := file_size(count, block_bytes)):
        yield Fault(Place.SIZE, min(size, due), f"The file has {size} bytes; {count} records make {due}.")


def _no_cache(magic: bytes) -> Fault:
    return _header(MAGIC_AT, f"The file begins with {magic!r}; a cache begins with {MAGIC!r}.")


def _header(offset: int, sentence: str) -> Fault:
    return Fault(Place.HEADER, offset, sentence)


SUFFIX = ".pch"
BAD_SUFFIX = ".bad"
BLOCKS_KEPT = 2
NAMES_ALLOWED = "letters, digits, '.', '_' and '-', at most 124"

Block = tuple[bytes, tuple[int, ...]]


class CacheUnreachable(WorldBroken):
    """A cache file cannot be read or written; the disk is full, absent or failing. Facts: `file`."""

    code = "cache_unreachable"


def cache_name(channel: str) -> str:
    """The file name for the cache of any channel."""
    return channel_hash(channel).hex() + SUFFIX


def checked_name(name: str) -> str:
    """A file name that leaves room for `.bad`; raises `InvalidParameter`."""
    if not NAME.fullmatch(name + BAD_SUFFIX):
        raise InvalidParameter(
            _invalid_name_sentence(name),
            parameter="file",
            value=name,
            allowed=NAMES_ALLOWED,
        )
    return name


def _invalid_name_sentence(name: str) -> str:
    return f"{name!r} is not a valid name of a cache file; use {NAMES_ALLOWED}"


def write_cache(
    disk: Disk,
    name: str,
    channel: str,
    raws: Sequence[bytes],
    *,
    k: int = RECORDS_DEFAULT,
    block_bytes: int = BLOCK_BYTES,
    generation: int | None = None,
) -> int:
    """Write a cache atomically. Returns its generation.

    The records are sorted; beyond `k` the oldest are dropped. `generation` is by default one more than that of the
    present file. Raises `InvalidParameter`, `InvalidRecord` and `CacheUnreachable`.
    """
    hashed = channel_hash(channel)
    checked_name(name)
    if generation is None:
        before = read_file(disk, name)
        header = read_header(before, len(before), hashed) if before is not None else None
        generation = next_generation(header if isinstance(header, Header) else None, raws)
    data = file_bytes(hashed, raws, k=k, block_bytes=block_bytes, generation=generation)
    replace_file(disk, name, data)
    return generation


def read_file(disk: Disk, name: str) -> bytes | None:
    """The whole file, or None if it does not exist; raises `CacheUnreachable`."""
    try:
        return disk.read(name)
    except FileNotFoundError:
        return None
    except OSError as trouble:
        raise CacheUnreachable(f"The cache {name} cannot be read: {trouble.strerror}", file=name) from trouble


def replace_file(disk: Disk, name: str, data: bytes) -> None:
    """Replace a file atomically; raises `CacheUnreachable`."""
    try:
        replace(disk, name, data)
    except OSError as trouble:
        raise CacheUnreachable(f"The cache {name} cannot be written: {trouble.strerror}", file=name) from trouble


def set_aside(disk: Disk, name: str) -> str:
    """Rename a corrupt file to `.bad`, replacing an earlier one; returns its new name. Raises `CacheUnreachable`."""
    bad = name + BAD_SUFFIX
    try:
        disk.rename(name, bad)
        disk.sync_dir()
    except OSError as trouble:
        raise CacheUnreachable(f"The cache {name} cannot be set aside: {trouble.strerror}", file=name) from trouble
    return bad


class CacheShelf:
    """The records of an open cache file; reads whole blocks and caches the last few.

    A `Shelf`; not safe for threads. During a batch of random picks every block that was read stays in memory, else at
    most `blocks`. `reads` counts blocks read from the file, `hits` blocks found in memory; `trouble` is the cause of
    the last failed read. The file is closed with the shelf.
    """

    def __init__(self, handle: int, header: Header, blocks: int = BLOCKS_KEPT) -> None:
        self._handle = handle
        self._close = finalize(self, os.close, handle)
        self._block_bytes = header.block_bytes
        self._per_block = header.per_block
        self._most = blocks
        self._held: dict[int, Block] = {}  # ordered by last use
        self._holding = False
        self.count = header.count
        self.generation = header.generation
        self.reads = 0
        self.hits = 0
        self.trouble: str | None = None

    @trusted
    def run(self, at: int) -> Iterable[Row]:
        """The rest of the block that holds the record `at`."""
        number, first = divmod(at, self._per_block)
        block = self._block(number) if 0 <= at < self.count else None
        if block is None:
            return (UNREADABLE,)
        base = number * self._per_block
        return rows(block[0], first, min(self._per_block, self.count - base), base, block[1])

    @trusted
    def record(self, at: int) -> Row:
        number, place = divmod(at, self._per_block)
        block = self._block(number) if 0 <= at < self.count else None
        if block is None:
            return UNREADABLE
        raw = block[0][place * RECORD_BYTES : (place + 1) * RECORD_BYTES]
        return at, None if place in block[1] else int.from_bytes(raw[:8], "little"), raw

    @property
    def held(self) -> tuple[int, ...]:
        """The numbers of the blocks in memory, ordered by last use."""
        return tuple(self._held)

    @property
    def blocks_in_memory(self) -> int:
        return len(self._held)

    def hold(self) -> None:
        """Keep every block that is read until `release_blocks`, so that a batch reads no block twice."""
        self._holding = True

    def release_blocks(self) -> None:
        """Keep only the blocks used last."""
        self._holding = False
        while len(self._held) > self._most:
            del self._held[next(iter(self._held))]

    def close(self) -> None:
        """Close the file; after this every record is unreadable."""
        self._handle = -1
        self._held.clear()
        self._close()

    def _block(self, number: int) -> Block | None:
        held = self._held.pop(number, None)
        if held is not None:
            self.hits += 1
        else:
            if len(self._held) >= self._most and not self._holding:
                del self._held[next(iter(self._held))]
            held = self._load(number)
            if held is None:
                return None
        self._held[number] = held
        return held

    def _load(self, number: int) -> Block | None:
        self.reads += 1
        try:
            block = os.pread(self._handle, self._block_bytes, (1 + number) * self._block_bytes)
        except OSError as trouble:
            self.trouble = f"Data block {number} cannot be read: {trouble.strerror}."
            return None
        if len(block) != self._block_bytes:
            self.trouble = f"The file has shrunk: data block {number} has {len(block)} bytes."
            return None
        return block, damaged(block, min(self._per_block, self.count - number * self._per_block))


class Opened(Struct, frozen=True):
    """The shelf of a channel; empty, with a diagnostic, if its file cannot be used."""

    shelf: Shelf
    diagnostic: Diagnostic | None = None


def open_cache(path: str | os.PathLike[str], channel: str, *, blocks: int = BLOCKS_KEPT) -> CacheShelf | Diagnostic:
    """The shelf of a cache file, of which at most `blocks` blocks stay in memory; or a diagnostic.

    Diagnostics: `CorruptCache` (to be set aside), `OtherChannel`, `MissingCache`, `UnreadableCache`. Raises
    `InvalidParameter` for `blocks`; never raises because of the file.
    """
    if isinstance(blocks, bool) or not isinstance(blocks, int) or blocks < 1:
        raise InvalidParameter(
            f"blocks is {blocks!r}; it must be an integer of 1 or more",
            parameter="blocks",
            value=str(blocks),
            allowed="1..",
        )
    if not NAME.fullmatch(Path(path).name + BAD_SUFFIX):
        # It could not be set aside or written again.
        return _diagnostic("UnreadableCache", f"{_invalid_name_sentence(Path(path).name)}.", path, channel)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return _diagnostic("MissingCache", "The cache file does not exist.", path, channel)
    except (OSError, ValueError) as trouble:
        return _diagnostic("UnreadableCache", f"The cache cannot be opened: {_reason(trouble)}.", path, channel)
    found = _examined(handle, path, channel)
    if isinstance(found, Diagnostic):
        os.close(handle)
        return found
    return CacheShelf(handle, found, blocks)


def open_or_set_aside(path: str | os.PathLike[str], channel: str, *, blocks: int = BLOCKS_KEPT) -> Opened:
    """The shelf of a cache file. A corrupt file is renamed to `.bad`; its channel is empty until a refresh.

    A valid file of another channel is not renamed: then the name or the channel is wrong.
    """
    opened = open_cache(path, channel, blocks=blocks)
    if isinstance(opened, CacheShelf):
        return Opened(opened)
    if opened.code == "CorruptCache":
        opened = _set_aside_corrupt(Path(path), opened)
    return Opened(MemoryShelf(()), opened)


def _set_aside_corrupt(path: Path, diagnostic: Diagnostic) -> Diagnostic:
    try:
        disk = RealDisk(path.parent, make=False)
        try:
            kept: str | None = set_aside(disk, path.name)
        finally:
            disk.close()
    except (CacheUnreachable, OSError, ValueError) as trouble:
        return Diagnostic(
            diagnostic.code,
            f"{diagnostic.sentence} It could not be set aside: {_reason(trouble)}.",
            {**diagnostic.facts, "set_aside": None},
        )
    return Diagnostic(diagnostic.code, diagnostic.sentence, {**diagnostic.facts, "set_aside": kept})


def _examined(handle: int, path: str | os.PathLike[str], channel: str) -> Header | Diagnostic:
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return _diagnostic("UnreadableCache", "The cache is not a regular file.", path, channel)
        head = os.pread(handle, max(BLOCK_SIZES), 0)
    except OSError as trouble:
        return _diagnostic("UnreadableCache", f"The cache cannot be read: {trouble.strerror}.", path, channel)
    found = read_header(head, facts.st_size, channel_hash(channel))
    return found if isinstance(found, Header) else corrupt(_shown(path), channel, found)


def corrupt(file: str, channel: str, fault: Fault) -> Diagnostic:
    """The diagnostic for a corrupt file or one of another channel."""
    sentence = f"The cache cannot be used: {fault.sentence}"
    facts = {"channel": channel, "file": file, "place": fault.place.value, "offset": fault.offset}
    if (fault.place, fault.offset) == (Place.HEADER, CHANNEL_AT):
        return Diagnostic("OtherChannel", sentence, facts)
    return Diagnostic("CorruptCache", sentence, facts)


def is_not_a_cache(diagnostic: Diagnostic) -> bool:
    """Whether the file does not begin with the magic of a cache; then it may be any file of the user."""
    return (diagnostic.facts.get("place"), diagnostic.facts.get("offset")) == (Place.HEADER, MAGIC_AT)


def _diagnostic(code: str, sentence: str, path: str | os.PathLike[str], channel: str) -> Diagnostic:
    return Diagnostic(code, sentence, {"channel": channel, "file": _shown(path)})


def _reason(trouble: Exception) -> str:
    """The reason that the system gives, without the path, which may not concern the reader."""
    return getattr(trouble, "strerror", None) or str(trouble)


def _shown(path: str | os.PathLike[str]) -> str:
    """The path with undecodable bytes escaped."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()
