"""Channel caches on disk: written whole and at once, read by blocks, set aside when they cannot be trusted.

Whoever reads keeps the file it opened: a rewrite gives the name to another file, and a running epoch reads on in the
old one. Nothing that a file holds makes reading raise: what is wrong is a diagnostic or an unreadable row.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from weakref import finalize

from msgspec import Struct

from pendula.kernel.disk import NAME, Disk, RealDisk, replace
from pendula.kernel.errors import WorldBroken
from pendula.playback.cache.layout import (
    CHANNEL_AT,
    MAGIC_AT,
    Fault,
    Header,
    Place,
    channel_hash,
    file_bytes,
    next_generation,
    read_header,
)
from pendula.playback.choosing.records import (
    BLOCK_BYTES,
    BLOCK_SIZES,
    UNREADABLE,
    MemoryShelf,
    Row,
    Shelf,
    damaged,
    kept,
    rows,
)
from pendula.playback.model import RECORD_BYTES, RECORDS_DEFAULT, Diagnostic, InvalidParameter

SUFFIX = ".pch"
BAD_SUFFIX = ".bad"
BLOCKS_KEPT = 2
NAMES_ALLOWED = "letters, digits, '.', '_' and '-', at most 124"

Block = tuple[bytes, tuple[int, ...]]


class CacheUnreachable(WorldBroken):
    """A cache file cannot be read or written; the disk is full, absent or failing. Facts: `file`."""

    code = "cache_unreachable"


def cache_name(channel: str) -> str:
    """A plain file name for the cache of any channel."""
    return channel_hash(channel).hex() + SUFFIX


def checked_name(name: str) -> str:
    """A file name that leaves room for `.bad`; raises `InvalidParameter`."""
    if not NAME.fullmatch(name + BAD_SUFFIX):
        raise InvalidParameter(
            _unfit_name(name),
            parameter="file",
            value=name,
            allowed=NAMES_ALLOWED,
        )
    return name


def _unfit_name(name: str) -> str:
    return f"{name!r} cannot be the name of a cache; use {NAMES_ALLOWED}"


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
    """Write a cache whole: after a crash the old or the new file is there. Returns its generation.

    The records are sorted, and the oldest dropped beyond `k`. Without a `generation` it is one more than that of the
    file that is there. Raises `InvalidParameter`, `InvalidRecord` and `CacheUnreachable`.
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
    """The whole file, or None when there is none; raises `CacheUnreachable`."""
    try:
        return disk.read(name)
    except FileNotFoundError:
        return None
    except OSError as trouble:
        raise CacheUnreachable(f"The cache {name} cannot be read: {trouble.strerror}", file=name) from trouble


def replace_file(disk: Disk, name: str, data: bytes) -> None:
    """The old or the new bytes, whatever happens; raises `CacheUnreachable`."""
    try:
        replace(disk, name, data)
    except OSError as trouble:
        raise CacheUnreachable(f"The cache {name} cannot be written: {trouble.strerror}", file=name) from trouble


def set_aside(disk: Disk, name: str) -> str:
    """Take a file that cannot be trusted out of the way; returns its new name. Raises `CacheUnreachable`.

    What was set aside before under this name is replaced.
    """
    bad = name + BAD_SUFFIX
    try:
        disk.rename(name, bad)
        disk.sync_dir()
    except OSError as trouble:
        raise CacheUnreachable(f"The cache {name} cannot be set aside: {trouble.strerror}", file=name) from trouble
    return bad


class CacheShelf:
    """The records of an open cache file. Reads whole blocks and keeps the last few, as they stand on disk.

    A `Shelf`; not safe for several threads at once. While a batch of random picks is made, every block that it has
    asked for stays; between batches at most `blocks` do. `reads` counts the blocks that were asked of the file, `hits`
    those that were at hand; `trouble` says why the last failing read failed. The file is closed with the shelf.
    """

    __slots__ = (
        "__weakref__",
        "_block_bytes",
        "_close",
        "_handle",
        "_held",
        "_holding",
        "_most",
        "_per_block",
        "count",
        "generation",
        "hits",
        "reads",
        "trouble",
    )

    def __init__(self, handle: int, header: Header, blocks: int = BLOCKS_KEPT) -> None:
        self._handle = handle
        self._close = finalize(self, os.close, handle)
        self._block_bytes = header.block_bytes
        self._per_block = header.per_block
        self._most = blocks
        self._held: dict[int, Block] = {}  # the one used last comes last
        self._holding = False
        self.count = header.count
        self.generation = header.generation
        self.reads = 0
        self.hits = 0
        self.trouble: str | None = None

    @kept
    def run(self, at: int) -> Iterable[Row]:
        """The rest of the block that holds the record `at`."""
        number, first = divmod(at, self._per_block)
        block = self._block(number) if 0 <= at < self.count else None
        if block is None:
            return (UNREADABLE,)
        base = number * self._per_block
        return rows(block[0], first, min(self._per_block, self.count - base), base, block[1])

    @kept
    def record(self, at: int) -> Row:
        number, place = divmod(at, self._per_block)
        block = self._block(number) if 0 <= at < self.count else None
        if block is None:
            return UNREADABLE
        raw = block[0][place * RECORD_BYTES : (place + 1) * RECORD_BYTES]
        return at, None if place in block[1] else int.from_bytes(raw[:8], "little"), raw

    @property
    def held(self) -> tuple[int, ...]:
        """The numbers of the blocks in memory, the one used last at the end."""
        return tuple(self._held)

    @property
    def at_hand(self) -> int:
        """How many blocks are in memory."""
        return len(self._held)

    def hold(self) -> None:
        """Keep every block that is read, until `let_go`: a batch asks for none twice, wherever its draws fall."""
        self._holding = True

    def let_go(self) -> None:
        """Keep no more than the blocks that were used last."""
        self._holding = False
        while len(self._held) > self._most:
            del self._held[next(iter(self._held))]

    def close(self) -> None:
        """Let go of the file; what is asked for after this is unreadable."""
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
    """A channel's shelf, empty when its file cannot be used; the diagnostic says why, and that a refresh is needed."""

    shelf: Shelf
    diagnostic: Diagnostic | None = None


def open_cache(path: str | os.PathLike[str], channel: str, *, blocks: int = BLOCKS_KEPT) -> CacheShelf | Diagnostic:
    """The channel's cache, of which at most `blocks` blocks stay in memory; or what is wrong with the file.

    Diagnostics: `CorruptCache` (to be set aside), `OtherChannel`, `MissingCache`, `UnreadableCache`. Raises
    `InvalidParameter` for `blocks`, and nothing for what lies at `path`.
    """
    if isinstance(blocks, bool) or not isinstance(blocks, int) or blocks < 1:
        raise InvalidParameter(
            f"blocks is {blocks!r}; it must be an integer of 1 or more",
            parameter="blocks",
            value=str(blocks),
            allowed="1..",
        )
    if not NAME.fullmatch(Path(path).name + BAD_SUFFIX):
        # Nobody could set it aside or write it anew.
        return _diagnostic("UnreadableCache", f"{_unfit_name(Path(path).name)}.", path, channel)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return _diagnostic("MissingCache", "There is no cache file.", path, channel)
    except (OSError, ValueError) as trouble:
        return _diagnostic("UnreadableCache", f"The cache cannot be opened: {_reason(trouble)}.", path, channel)
    found = _examined(handle, path, channel)
    if isinstance(found, Diagnostic):
        os.close(handle)
        return found
    return CacheShelf(handle, found, blocks)


def open_or_set_aside(path: str | os.PathLike[str], channel: str, *, blocks: int = BLOCKS_KEPT) -> Opened:
    """The channel's cache. A corrupt file is renamed to `.bad`, and the channel has no records until a refresh.

    A sound file of another channel stays: it is the name or the channel that is wrong.
    """
    opened = open_cache(path, channel, blocks=blocks)
    if isinstance(opened, CacheShelf):
        return Opened(opened)
    if opened.code == "CorruptCache":
        opened = _put_away(Path(path), opened)
    return Opened(MemoryShelf(()), opened)


def _put_away(path: Path, diagnostic: Diagnostic) -> Diagnostic:
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
    """The diagnostic for a file that cannot be trusted, or is another channel's."""
    sentence = f"The cache cannot be used: {fault.sentence}"
    facts = {"channel": channel, "file": file, "place": fault.place.value, "offset": fault.offset}
    if (fault.place, fault.offset) == (Place.HEADER, CHANNEL_AT):
        return Diagnostic("OtherChannel", sentence, facts)
    return Diagnostic("CorruptCache", sentence, facts)


def is_no_cache(told: Diagnostic) -> bool:
    """Whether the file does not even begin as a cache does: then it may be anything, and anybody's."""
    return (told.facts.get("place"), told.facts.get("offset")) == (Place.HEADER, MAGIC_AT)


def _diagnostic(code: str, sentence: str, path: str | os.PathLike[str], channel: str) -> Diagnostic:
    return Diagnostic(code, sentence, {"channel": channel, "file": _shown(path)})


def _reason(trouble: Exception) -> str:
    """What the system says, without the path: whoever hears of it may be somewhere else."""
    return getattr(trouble, "strerror", None) or str(trouble)


def _shown(path: str | os.PathLike[str]) -> str:
    """The path in characters that can be told to anybody; the system allows others."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()
