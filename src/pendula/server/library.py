"""The channels of the server: a cache file each, shared by all players, every edition readable while it is in use.

A refresh writes a new edition beside the old one, which stays open until it is released: nobody who reads it notices.
Nothing that a file holds makes reading raise; safe from any thread.
"""

import threading
from base64 import b64encode
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from pendula.kernel.canonical import Json
from pendula.kernel.disk import RealDisk
from pendula.kernel.errors import WorldBroken
from pendula.playback.cache import SUFFIX, CacheShelf, CacheUnreachable, open_or_set_aside
from pendula.playback.events import Contents
from pendula.playback.model import RECORDS_DEFAULT, Diagnostic, TooManyChannels, UnknownChannel
from pendula.playback.records import MemoryShelf, Shelf
from pendula.playback.refresh import Page, Refreshed, refresh_cache
from pendula.server.settings import CHANNEL

CHANNELS_KEPT = 256
NOTHING = MemoryShelf(())


class Held(Struct, frozen=True):
    """What a channel holds now, how many records its source says it has, and what was wrong with its file."""

    contents: Contents
    total_count: int
    recent_count: int = 0
    trouble: tuple[Diagnostic, ...] = ()


class Library:
    """The outside of the players: answers `record` with the bytes of one record of one edition."""

    def __init__(self, folder: Path) -> None:
        try:
            self._disk = RealDisk(folder)
        except OSError as trouble:
            raise WorldBroken(f"The library {folder} cannot be used: {trouble.strerror}", file=str(folder)) from trouble
        self._folder = folder
        self._lock = threading.Lock()
        self._editions: dict[str, list[Shelf]] = {}  # the newest comes last
        self._held: dict[str, Held] = {}
        for name in self._disk.list():
            channel = name.removesuffix(SUFFIX)
            if name.endswith(SUFFIX) and CHANNEL.fullmatch(channel):
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
        """What a channel holds; one that is not there holds nothing."""
        found = self._held.get(channel)
        return Contents(channel, 0, NOTHING.generation) if found is None else found.contents

    def path(self, channel: str) -> Path:
        """Where the cache of a channel is, or would be."""
        return self._folder / f"{channel}{SUFFIX}"

    def put(self, channel: str, page: Page, k: int = RECORDS_DEFAULT, counted: bool = True) -> Refreshed:
        """Merge records into a channel, making it if need be; raises `TooManyChannels`, `CacheUnreachable`.

        Not for two callers at once; reading goes on meanwhile.
        """
        if channel not in self._held and len(self._held) >= CHANNELS_KEPT:
            raise TooManyChannels(
                f"The library has {len(self._held)} channels; at most {CHANNELS_KEPT} are kept",
                limit="library_channels",
                value=len(self._held) + 1,
                allowed=CHANNELS_KEPT,
            )
        done = refresh_cache(self._disk, self.path(channel).name, channel, page, k=k)
        if done.written or channel not in self._held:
            self._open(channel)
        self.tell_counts(channel, page if counted else replace(page, total_count=done.count))
        return done

    def adopt(self, channel: str, shelf: Shelf, page: Page) -> None:
        """A new edition that somebody else wrote, or the present one again."""
        with self._lock:
            self._add(channel, shelf, page.diagnostics)
        self.tell_counts(channel, page)

    def reopen(self, channel: str) -> None:
        """Open the file of a channel again, so that it is read anew; raises `UnknownChannel`."""
        held = self.held(channel)
        self._open(channel)
        self.tell_counts(channel, Page((), held.total_count, held.recent_count))

    def tell_counts(self, channel: str, page: Page) -> None:
        """What the source says of the channel as a whole."""
        held = self._held[channel]
        self._held[channel] = Held(held.contents, page.total_count, page.recent_count, held.trouble)

    def release(self, channel: str) -> None:
        """Let go of all editions but the newest: everybody who used one knows of the newest."""
        with self._lock:
            editions = self._editions.get(channel, [])
            for shelf in editions[:-1]:
                _close(shelf)
            del editions[:-1]

    def remove(self, channel: str) -> None:
        """Remove a channel and its file; raises `UnknownChannel`, `CacheUnreachable`."""
        self.held(channel)
        name = self.path(channel).name
        try:
            if name in self._disk.list():
                self._disk.remove(name)
                self._disk.sync_dir()
        except OSError as trouble:
            raise CacheUnreachable(f"The cache {name} cannot be removed: {trouble.strerror}", file=name) from trouble
        with self._lock:
            for shelf in self._editions.pop(channel, ()):
                _close(shelf)
            del self._held[channel]

    def ask(self, name: str, question: Json) -> Json:
        """The 80 bytes of a record in base64; None for an edition or a record that cannot be read."""
        match question:
            case {"channel": str(channel), "generation": int(generation), "at": int(at)} if name == "record":
                with self._lock:
                    raw = self._raw(channel, generation, at)
                return b64encode(raw).decode() or None
            case _:
                return None

    def close(self) -> None:
        with self._lock:
            for editions in self._editions.values():
                for shelf in editions:
                    _close(shelf)
            self._editions.clear()
        self._disk.close()

    def _raw(self, channel: str, generation: int, at: int) -> bytes:
        for shelf in self._editions.get(channel, ()):
            if shelf.generation == generation and 0 <= at < shelf.count:
                return shelf.record(at)[2]
        return b""

    def _open(self, channel: str) -> None:
        opened = open_or_set_aside(self.path(channel), channel)
        with self._lock:
            self._add(channel, opened.shelf, (opened.diagnostic,) if opened.diagnostic else ())

    def _add(self, channel: str, shelf: Shelf, trouble: tuple[Diagnostic, ...]) -> None:
        editions = self._editions.setdefault(channel, [])
        if editions and editions[-1].generation == shelf.generation:
            # The same, opened anew: what could not be read may be readable by now.
            _close(editions.pop())
        editions.append(shelf)
        contents = Contents(channel, shelf.count, shelf.generation)
        self._held[channel] = Held(contents, shelf.count, 0, trouble)


def _close(shelf: Shelf) -> None:
    if isinstance(shelf, CacheShelf):
        shelf.close()
