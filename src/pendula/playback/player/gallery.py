"""Folders of media as channels of a player, with records in memory or in cache files.

If a rescan cannot read a folder, its records stay, with a diagnostic.
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
from pendula.playback.messages import Contents, Refresh
from pendula.playback.model import CHANNELS_MOST, RECORDS_MOST, Diagnostic
from pendula.playback.runs.opening import ChannelUnreachable
from pendula.playback.sources.folder import FolderSource


class Gallery:
    """One folder. `shelf` has the records of the last scan, `total` is the number of files."""

    def __init__(self, id: str, folder: Path, cache: Path | None = None) -> None:
        self.id = id
        self.source = FolderSource(folder)
        self.shelf: Shelf = MemoryShelf(())
        self.total = 0
        self._cache = cache

    def scan(self) -> Sequence[Diagnostic]:
        """Read the folder; returns diagnostics. Raises `SourceFailed` and `CacheUnreachable`."""
        page = self.source.fetch()
        diagnostics = self._load(page) if self._cache is None else self._store(page, self._cache)
        self.total = page.total_count
        return diagnostics

    @property
    def contents(self) -> Contents:
        return Contents(self.id, self.shelf.count, self.shelf.generation)

    def _load(self, page: Page) -> Sequence[Diagnostic]:
        self.shelf = MemoryShelf(merge((), page.records, RECORDS_MOST))
        return page.diagnostics

    def _store(self, page: Page, cache: Path) -> Sequence[Diagnostic]:
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
    """All folders of a player, in order; also the outside that the player asks for records."""

    def __init__(self, folders: Sequence[Path], cache: Path | None = None) -> None:
        """Channels have the names of their folders; raises `WrongUsage` for none, too many or a repeated folder."""
        if not 1 <= len(folders) <= CHANNELS_MOST:
            raise WrongUsage(f"{len(folders)} folders given; allowed are 1 to {CHANNELS_MOST}", count=len(folders))
        self._by_id: dict[str, Gallery] = {}
        for id, folder in zip(names(folders), folders, strict=True):
            if id in self._by_id:
                raise WrongUsage(f"The folder {id} is given twice", folder=id)
            self._by_id[id] = Gallery(id, folder, cache)

    def __iter__(self) -> Iterator[Gallery]:
        return iter(self._by_id.values())

    def open(self) -> list[Diagnostic]:
        """The first scan; raises `ChannelUnreachable` for all folders that cannot be read, and `CacheUnreachable`."""
        diagnostics: list[Diagnostic] = []
        unreachable: list[dict[str, str]] = []
        for gallery in self:
            try:
                diagnostics += gallery.scan()
            except SourceFailed as failed:
                path = shown(gallery.source.root)
                unreachable.append({"channel": gallery.id, "path": path, "reason": failed.message})
        if unreachable:
            reasons = "; ".join(one["reason"] for one in unreachable)
            raise ChannelUnreachable(f"Folders cannot be played: {reasons}", channels=unreachable)
        return diagnostics

    def rescan(self) -> tuple[list[Refresh], list[Diagnostic]]:
        """Scan all folders; returns a refresh for each readable one, and diagnostics."""
        refreshes: list[Refresh] = []
        diagnostics: list[Diagnostic] = []
        for gallery in self:
            try:
                diagnostics += gallery.scan()
            except (SourceFailed, CacheUnreachable) as failed:
                diagnostics.append(Diagnostic(failed.code, failed.message, {"channel": gallery.id}))
                continue
            refreshes.append(Refresh(gallery.contents, gallery.total, 0))
        return refreshes, diagnostics

    def ask(self, name: str, question: Json) -> Json:
        """Answer the `record` question of the engine."""
        assert name == "record"
        assert isinstance(question, dict)
        channel, at = question["channel"], question["at"]
        assert isinstance(channel, str)
        assert isinstance(at, int)
        place, _, raw = self._by_id[channel].shelf.record(at)
        return None if place is None else b64encode(raw).decode()

    def path_of(self, channel: str | None, id: int) -> str | None:
        """The file of an item; without a channel the first file with its id; None if the file is gone."""
        galleries = [one for one in self if channel in (None, one.id)]
        paths = (gallery.source.path_of(id) for gallery in galleries)
        path = next((path for path in paths if path is not None), None)
        return None if path is None else shown(path)


def names(folders: Sequence[Path]) -> list[str]:
    """The last part of each path; the whole path if two are equal."""
    short = [shown(folder.resolve().name or folder) for folder in folders]
    often = Counter(short)
    return [name if often[name] == 1 else shown(folder) for name, folder in zip(short, folders, strict=True)]


def shown(path: Path | str) -> str:
    """The path with undecodable bytes escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()
