"""Folders of media as the channels of a player: their records in memory or in cache files, looked at now and again.

A folder that cannot be read later on keeps the records it had, and what is wrong is told.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pendula.kernel.canonical import Json
from pendula.kernel.disk import RealDisk
from pendula.kernel.errors import WrongUsage
from pendula.playback.cache.merge import Page, SourceFailed, merge, refresh_cache
from pendula.playback.cache.shelf import CacheShelf, CacheUnreachable, cache_name, open_cache
from pendula.playback.choosing.records import MemoryShelf, Shelf
from pendula.playback.events import Contents, Refresh
from pendula.playback.model import CHANNELS_MOST, RECORDS_MOST, Diagnostic
from pendula.playback.runs.opening import ChannelUnreachable
from pendula.playback.sources.folder import FolderSource


class Gallery:
    """One folder. `shelf` holds what the last look found, `total` is how many files there were."""

    def __init__(self, id: str, folder: Path, cache: Path | None = None) -> None:
        self.id = id
        self.source = FolderSource(folder)
        self.shelf: Shelf = MemoryShelf(())
        self.total = 0
        self._cache = cache

    def look(self) -> Sequence[Diagnostic]:
        """Read the folder; what had to be left out. Raises `SourceFailed` and `CacheUnreachable`."""
        page = self.source.fetch()
        told = self._remember(page) if self._cache is None else self._keep(page, self._cache)
        self.total = page.total_count
        return told

    @property
    def contents(self) -> Contents:
        return Contents(self.id, self.shelf.count, self.shelf.generation)

    def _remember(self, page: Page) -> Sequence[Diagnostic]:
        self.shelf = MemoryShelf(merge((), page.records, RECORDS_MOST))
        return page.diagnostics

    def _keep(self, page: Page, cache: Path) -> Sequence[Diagnostic]:
        name = cache_name(self.id)
        try:
            disk = RealDisk(cache)
        except OSError as trouble:
            raise CacheUnreachable(f"{cache} cannot be used: {trouble.strerror}", file=str(cache)) from trouble
        try:
            refreshed = refresh_cache(disk, name, self.id, page, k=RECORDS_MOST)
        finally:
            disk.close()
        if isinstance(self.shelf, CacheShelf) and not refreshed.written:
            return refreshed.diagnostics
        found = open_cache(cache / name, self.id)
        if isinstance(found, Diagnostic):
            raise CacheUnreachable(f"{cache / name}: {found.sentence}", file=name)
        self.shelf = found
        return refreshed.diagnostics


class Galleries:
    """All folders of a player, in order. It is also the outside that the player asks for records."""

    def __init__(self, folders: Sequence[Path], cache: Path | None = None) -> None:
        """Channels are called like their folders; raises `WrongUsage` for none, too many and the same twice."""
        if not 1 <= len(folders) <= CHANNELS_MOST:
            raise WrongUsage(f"There are {len(folders)} folders; give 1 to {CHANNELS_MOST}", count=len(folders))
        self._by_id: dict[str, Gallery] = {}
        for id, folder in zip(names(folders), folders, strict=True):
            if id in self._by_id:
                raise WrongUsage(f"The folder {id} is there twice", folder=id)
            self._by_id[id] = Gallery(id, folder, cache)

    def __iter__(self) -> Iterator[Gallery]:
        return iter(self._by_id.values())

    def open(self) -> list[Diagnostic]:
        """The first look; raises `ChannelUnreachable` for all folders that cannot be read, and `CacheUnreachable`."""
        told: list[Diagnostic] = []
        unreachable: list[dict[str, str]] = []
        for gallery in self:
            try:
                told += gallery.look()
            except SourceFailed as failed:
                path = shown(gallery.source.root)
                unreachable.append({"channel": gallery.id, "path": path, "reason": failed.message})
        if unreachable:
            reasons = "; ".join(one["reason"] for one in unreachable)
            raise ChannelUnreachable(f"Folders cannot be played: {reasons}", channels=unreachable)
        return told

    def rescan(self) -> tuple[list[Refresh], list[Diagnostic]]:
        """What there is now of each folder that can be read, and what is wrong."""
        refreshes: list[Refresh] = []
        told: list[Diagnostic] = []
        for gallery in self:
            try:
                told += gallery.look()
            except (SourceFailed, CacheUnreachable) as failed:
                told.append(Diagnostic(failed.code, failed.message, {"channel": gallery.id}))
                continue
            refreshes.append(Refresh(gallery.contents, gallery.total, 0))
        return refreshes, told

    def ask(self, name: str, question: Json) -> Json:
        """A record by channel and place, as the engine asks for it."""
        assert name == "record"
        assert isinstance(question, dict)
        channel, at = question["channel"], question["at"]
        assert isinstance(channel, str)
        assert isinstance(at, int)
        place, _, raw = self._by_id[channel].shelf.record(at)
        return None if place is None else b64encode(raw).decode()

    def path_of(self, channel: str | None, id: int) -> str | None:
        """The file of an item, of one of no channel the first that has its id; None when no file has it any more."""
        galleries = [one for one in self if channel in (None, one.id)]
        paths = (gallery.source.path_of(id) for gallery in galleries)
        path = next((path for path in paths if path is not None), None)
        return None if path is None else shown(path)


def names(folders: Sequence[Path]) -> list[str]:
    """The last part of each path; the whole path where two end alike."""
    short = [shown(folder.resolve().name or folder) for folder in folders]
    often = Counter(short)
    return [name if often[name] == 1 else shown(folder) for name, folder in zip(short, folders, strict=True)]


def shown(path: Path | str) -> str:
    """A path in characters that can be told to anybody; the system allows others."""
    return str(path).encode("utf-8", "backslashreplace").decode()
