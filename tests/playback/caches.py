"""Cache files for the tests, built with struct and zlib, without the code under test."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from struct import pack
from zlib import crc32

from pendula.playback.cache.shelf import CacheShelf, open_cache
from pendula.playback.model import Item


def raw(id: int, ts: int, *, modified: int = 0, payload: bytes = b"") -> bytes:
    """The 80 bytes of a record."""
    bare = pack("<QqBBHII16s32s", id, ts, 1, 2, 3, 4, modified, b"key", payload)
    return bare + pack("<I", crc32(bare))


def raws(count: int, first_id: int = 1) -> list[bytes]:
    """Records with ascending ids, newest first."""
    return [raw(first_id + place, 1_000_000 - place) for place in range(count)]


def header(
    channel: str,
    count: int,
    *,
    magic: bytes = b"PCH1",
    version: int = 1,
    record_bytes: int = 80,
    block_bytes: int = 4096,
    k: int = 1024,
    zero: int = 0,
    generation: int = 1,
) -> bytes:
    """The first 68 bytes of a file, with a valid checksum for any values."""
    hashed = sha256(channel.encode()).digest()
    bare = pack("<4sHHIIIIQ32s", magic, version, record_bytes, block_bytes, k, count, zero, generation, hashed)
    return bare + pack("<I", crc32(bare))


def cache_file(
    channel: str, records: Sequence[bytes], *, block_bytes: int = 4096, k: int = 1024, generation: int = 1
) -> bytes:
    """A whole file of these records, in this order."""
    per_block = {4096: 51, 8192: 102}[block_bytes]
    blocks = [header(channel, len(records), block_bytes=block_bytes, k=k, generation=generation)]
    blocks += [b"".join(records[first : first + per_block]) for first in range(0, len(records), per_block)]
    return b"".join(block.ljust(block_bytes, b"\0") for block in blocks)


def flipped(data: bytes, byte: int, bit: int = 0) -> bytes:
    """The data with one bit flipped."""
    return data[:byte] + bytes((data[byte] ^ 1 << bit,)) + data[byte + 1 :]


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def opened(path: Path, channel: str = "a", *, blocks: int = 2) -> CacheShelf:
    shelf = open_cache(path, channel, blocks=blocks)
    assert isinstance(shelf, CacheShelf), shelf
    return shelf


def shelf_of(folder: Path, records: list[bytes], channel: str = "a", *, blocks: int = 2) -> CacheShelf:
    return opened(put(folder / f"{channel}.pch", cache_file(channel, records)), channel, blocks=blocks)


def touched(items: list[Item], index: int) -> set[int]:
    """The blocks of a channel that a batch read."""
    places: set[int] = set()
    for item in items:
        if item.channel_index == index:
            assert item.at is not None
            places |= {item.at}
            if item.trace is not None:
                places |= {*item.trace.picked, *item.trace.skipped, *item.trace.bad}
    return {place // 51 for place in places}
