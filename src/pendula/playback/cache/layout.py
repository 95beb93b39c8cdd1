"""The format of a cache file: a header block, then data blocks of whole records, newest first.

    0  4s  magic PCH1        8  u32  block size      20  u32  zero             64  u32  CRC-32 of bytes 0..63
    4  u16 version 1        12  u32  K               24  u64  generation       68  zero to the end of the block
    6  u16 record size 80   16  u32  count           32  32s  sha256 of the channel's id

All little-endian. A file has exactly the blocks that its records need.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from hashlib import sha256
from struct import Struct as Layout
from zlib import crc32

from msgspec import Struct

from pendula.playback.choosing.records import BLOCK_SIZES, blocks_of, newest_first, sound
from pendula.playback.model import (
    MASK_64,
    RECORD_BYTES,
    RECORDS_LEAST,
    RECORDS_MOST,
    InvalidParameter,
    InvalidRecord,
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
    seen: set[bytes] = set()
    for raw in raws:
        if not sound(raw):
            raise InvalidRecord(f"These {len(raw)} bytes are not a record", field="raw")
        if raw[:8] in seen:
            id = int.from_bytes(raw[:8], "little")
            raise InvalidRecord(f"The id {id} appears twice; ids are unique within a file", field="id", value=id)
        seen.add(raw[:8])
    kept = newest_first(raws)[:k]
    header = Header(block_bytes, k, len(kept), generation, channel)
    return header.pack() + b"".join(blocks_of(kept, block_bytes))


def checked_k(k: int) -> int:
    """`k` within its limits; raises `InvalidParameter`."""
    if isinstance(k, bool) or not isinstance(k, int) or not RECORDS_LEAST <= k <= RECORDS_MOST:
        raise _invalid("k", k, f"an integer from {RECORDS_LEAST} to {RECORDS_MOST}")
    return k


def _check_parameters(k: int, block_bytes: int, generation: int) -> None:
    checked_k(k)
    if block_bytes not in BLOCK_SIZES:
        raise _invalid("block_bytes", block_bytes, " or ".join(map(str, BLOCK_SIZES)))
    if isinstance(generation, bool) or not isinstance(generation, int) or not 0 <= generation <= MASK_64:
        raise _invalid("generation", generation, "an integer from 0 to 2^64 - 1")


def _invalid(name: str, value: object, allowed: str) -> InvalidParameter:
    return InvalidParameter(
        f"{name} is {value!r}; it must be {allowed}", parameter=name, value=str(value), allowed=allowed
    )


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
