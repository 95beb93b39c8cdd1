"""The channels of the server: a cache file each, shared by all players.

A refresh writes a new edition; the old one stays open and readable until it is released. The contents of a file never
make reading raise. `Library` is thread-safe.

Random picks jump between the blocks of a channel, and many players share a channel, so blocks are kept between
questions; beyond a limit the least recently used channels are reduced.
"""

import threading
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from pendula.kernel.canonical import Json, encode
from pendula.kernel.disk import RealDisk, replace
from pendula.kernel.errors import WorldBroken
from pendula.playback.cache.merge import Page, Refreshed, refresh_cache
from pendula.playback.cache.shelf import (
    BAD_SUFFIX,
    SUFFIX,
    CacheShelf,
    CacheUnreachable,
    Header,
    Opened,
    channel_hash,
    open_or_set_aside,
    read_file,
    read_header,
)
from pendula.playback.choosing.records import MemoryShelf, Row, Shelf
from pendula.playback.messages import Contents
from pendula.playback.model import RECORDS_DEFAULT, Diagnostic, TooManyChannels, UnknownChannel
from pendula.server.settings import CHANNEL

CACHED_BLOCKS = 4096  # 16 MiB in blocks of 4 KiB

CHANNELS_KEPT = 256
COUNTS = "counts.json"


class BlockCache:
    """Reads records and keeps their blocks; beyond `most` the least recently used channel keeps only a few."""

    def __init__(self, most: int = CACHED_BLOCKS) -> None:
        self._most = most
        self._blocks: dict[CacheShelf, int] = {}  # blocks by shelf, ordered by last use
        self._sum = 0

    def record(self, shelf: Shelf, at: int) -> Row:
        """The record at a place of a shelf."""
        if not isinstance(shelf, CacheShelf):
            return shelf.record(at)
        before = self._blocks.pop(shelf, None)
        if before is None:
            shelf.hold()
        row = shelf.record(at)
        self._blocks[shelf] = shelf.blocks_in_memory
        self._sum += shelf.blocks_in_memory - (before or 0)
        while self._sum > self._most and len(self._blocks) > 1:
            self.forget(next(iter(self._blocks)))
        return row

    def forget(self, shelf: Shelf) -> None:
        """Keep only the blocks that the shelf keeps by itself."""
        if isinstance(shelf, CacheShelf):
            self._sum -= self._blocks.pop(shelf, 0)
            shelf.release_blocks()


NOTHING = MemoryShelf(())

OnTrouble = Callable[[str, int], object]


class Counts(Struct, frozen=True):
    """The counts of a source; a `total` of None is the number of records of the channel."""

    total: int | None = None
    recent: int = 0


class Held(Struct, frozen=True):
    """The contents of a channel, the counts of its source, and the diagnostics of its file."""

    contents: Contents
    total_count: int
    recent_count: int = 0
    trouble: tuple[Diagnostic, ...] = ()


class Library:
    """The outside of the players: answers `record` with the bytes of a record of an edition.

    `on_trouble(channel, generation)` is called, on any thread, for a record that cannot be read.
    """

    def __init__(self, folder: Path, on_trouble: OnTrouble | None = None) -> None:
        try:
            self._disk = RealDisk(folder)
        except OSError as trouble:
            raise WorldBroken(f"The library {folder} cannot be used: {trouble.strerror}", file=str(folder)) from trouble
        self._folder = folder
        self._on_trouble = on_trouble
        self._lock = threading.Lock()
        self._counting = threading.Lock()  # separate, so that reading does not wait for a disk sync
        self._counts = self._read_counts()
        self._editions: dict[str, list[Shelf]] = {}  # the newest is last
        self._blocks = BlockCache()
        self._held: dict[str, Held] = {}
        for name in self._disk.list():
            # Also one whose file was set aside: a player may follow it.
            channel = name.removesuffix(BAD_SUFFIX).removesuffix(SUFFIX)
            if name in (channel + SUFFIX, channel + SUFFIX + BAD_SUFFIX) and CHANNEL.fullmatch(channel):
                self._open(channel)

    def names(self) -> list[str]:
        """All channels, sorted."""
        return sorted(self._held)

    def held(self, channel: str) -> Held:
        """Raises `UnknownChannel`."""
        found = self._held.get(channel)
        if found is None:
            raise UnknownChannel(
                f"The library has no channel {channel!r}; it has {', '.join(self.names()) or 'none'}",
                channel=channel,
                known=self.names(),
            )
        return found

    def contents(self, channel: str) -> Contents:
        """The contents of a channel; empty if it does not exist."""
        found = self._held.get(channel)
        return Contents(channel, 0, NOTHING.generation) if found is None else found.contents

    def path(self, channel: str) -> Path:
        """The path of the cache file of a channel."""
        return self._folder / f"{channel}{SUFFIX}"

    def expect(self, channel: str) -> None:
        """Add an empty channel if it does not exist."""
        if channel not in self._held:
            self._held[channel] = self._holding(Contents(channel, 0, NOTHING.generation))

    def put(self, channel: str, page: Page, k: int | None = None, counted: bool = True) -> Refreshed:
        """Merge records into a channel, creating it if necessary; raises `TooManyChannels`, `CacheUnreachable`.

        `k` is by default that of the present file. Without `counted` the total count is the number of records. Only
        one caller at a time; concurrent reads are allowed.
        """
        if channel not in self._held and len(self._held) >= CHANNELS_KEPT:
            raise TooManyChannels(
                f"The library has {len(self._held)} channels; at most {CHANNELS_KEPT} are kept",
                limit="library_channels",
                value=len(self._held) + 1,
                allowed=CHANNELS_KEPT,
            )
        name = self.path(channel).name
        done = refresh_cache(self._disk, name, channel, page, k=self._kept(channel) if k is None else k)
        if done.written or channel not in self._held:
            self._open(channel)
        self._count(channel, Counts(page.total_count if counted else None, page.recent_count))
        return done

    def adopt(self, channel: str, shelf: Shelf, page: Page) -> None:
        """Add an edition that a refresher wrote, or reopen the present one."""
        with self._lock:
            self._add(channel, shelf, page.diagnostics)
        self._count(channel, Counts(page.total_count, page.recent_count))

    def reopen(self, channel: str) -> None:
        """Open the file of a channel again; raises `UnknownChannel`."""
        self.held(channel)
        self._open(channel)

    def release(self, channel: str) -> None:
        """Close all editions but the newest, or all of a removed channel, once no player uses them."""
        with self._lock:
            kept = 1 if channel in self._held else 0
            editions = self._editions.get(channel, [])
            while len(editions) > kept:
                self._close(editions.pop(0))

    def remove(self, channel: str) -> None:
        """Remove a channel and its files; editions in use stay readable until `release`.

        Raises `UnknownChannel`, `CacheUnreachable`.
        """
        self.held(channel)
        name = self.path(channel).name
        try:
            there = self._disk.list()
            for one in (name, name + BAD_SUFFIX):
                if one in there:
                    self._disk.remove(one)
            self._disk.sync_dir()
        except OSError as trouble:
            raise CacheUnreachable(f"The cache {name} cannot be removed: {trouble.strerror}", file=name) from trouble
        with self._lock:
            del self._held[channel]
        self._keep_counts(channel, Counts())

    def ask(self, name: str, question: Json) -> Json:
        """The 80 bytes of a record in base64; None for an edition or a record that cannot be read."""
        match question:
            case {"channel": str(channel), "generation": int(generation), "at": int(at)} if name == "record":
                with self._lock:
                    id, raw = self._row(channel, generation, at)
                if id is None and self._on_trouble is not None:
                    self._on_trouble(channel, generation)
                return b64encode(raw).decode() or None
            case _:
                return None

    def close(self) -> None:
        with self._lock:
            for editions in self._editions.values():
                for shelf in editions:
                    self._close(shelf)
            self._editions.clear()
        self._disk.close()

    def _row(self, channel: str, generation: int, at: int) -> tuple[int | None, bytes]:
        """The id and the bytes of a record; None for a damaged one, no bytes for one that cannot be read."""
        for shelf in self._editions.get(channel, ()):
            if shelf.generation == generation and 0 <= at < shelf.count:
                return self._blocks.record(shelf, at)[1:]
        return None, b""

    def _open(self, channel: str) -> None:
        opened = self._opened(channel)
        with self._lock:
            self._add(channel, opened.shelf, (opened.diagnostic,) if opened.diagnostic else ())

    def _add(self, channel: str, shelf: Shelf, trouble: tuple[Diagnostic, ...]) -> None:
        editions = self._editions.setdefault(channel, [])
        if editions and editions[-1].generation == shelf.generation:
            # The same edition, opened again: unreadable records may be readable now.
            self._close(editions.pop())
        editions.append(shelf)
        self._held[channel] = self._holding(Contents(channel, shelf.count, shelf.generation), trouble)

    def _close(self, shelf: Shelf) -> None:
        self._blocks.forget(shelf)
        if isinstance(shelf, CacheShelf):
            shelf.close()

    def _opened(self, channel: str) -> Opened:
        path = self.path(channel)
        opened = open_or_set_aside(path, channel)
        bad = path.name + BAD_SUFFIX
        missing = opened.diagnostic is not None and opened.diagnostic.code == "MissingCache"
        if not missing or bad not in self._disk.list():
            return opened
        facts = {"channel": channel, "file": path.name, "set_aside": bad}
        return Opened(opened.shelf, Diagnostic("CorruptCache", "The cache could not be used and was set aside.", facts))

    def _kept(self, channel: str) -> int:
        """The K of the cache file of a channel."""
        data = read_file(self._disk, self.path(channel).name) or b""
        header = read_header(data, len(data), channel_hash(channel))
        return header.k if isinstance(header, Header) else RECORDS_DEFAULT

    # Counts of the sources

    def _holding(self, contents: Contents, trouble: tuple[Diagnostic, ...] = ()) -> Held:
        counts = self._counts.get(contents.id, Counts())
        total = contents.count if counts.total is None else counts.total
        return Held(contents, total, counts.recent, trouble)

    def _count(self, channel: str, counts: Counts) -> None:
        self._keep_counts(channel, counts)
        with self._lock:
            held = self._held[channel]
            self._held[channel] = self._holding(held.contents, held.trouble)

    def _keep_counts(self, channel: str, counts: Counts) -> None:
        """Store counts beside the caches, so that a restart does not change shares; raises `CacheUnreachable`."""
        with self._counting:
            others = {name: one for name, one in self._counts.items() if name != channel}
            updated = others if counts == Counts() else {**others, channel: counts}
            if updated == self._counts:
                return
            try:
                replace(self._disk, COUNTS, encode(updated))
            except OSError as trouble:
                raise CacheUnreachable(f"{COUNTS} cannot be written: {trouble.strerror}", file=COUNTS) from trouble
            self._counts = updated

    def _read_counts(self) -> dict[str, Counts]:
        data = read_file(self._disk, COUNTS)
        try:
            return {} if data is None else msgspec.json.decode(data, type=dict[str, Counts])
        except msgspec.DecodeError:
            # Not our file: records are counted until the sources report counts.
            return {}
