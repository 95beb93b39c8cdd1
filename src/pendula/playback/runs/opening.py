"""Open the channels of a playback file: inline records, cache files, folders.

Missing caches and folders are refused before anything is changed, all at once; so are files that are not caches or
belong to another channel, since then the playback file is wrong. A corrupt cache is set aside: its channel is empty,
with a diagnostic, and the others continue.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Struct

from pendula.kernel.errors import WorldBroken
from pendula.playback.cache.merge import Page, SourceFailed, merge
from pendula.playback.cache.shelf import CacheShelf, is_not_a_cache, open_cache, open_or_set_aside
from pendula.playback.choosing.records import Channel, MemoryShelf, Shelf
from pendula.playback.model import RECORDS_MOST, Diagnostic
from pendula.playback.runs.loading import ChannelSpec, Spec
from pendula.playback.settings import Settings
from pendula.playback.sources.folder import FolderSource


class ChannelUnreachable(WorldBroken):
    """Facts: `channels`, each with `channel`, `path` and `reason`."""

    code = "channel_unreachable"


class FolderShelf(MemoryShelf):
    """The records of a folder; `total_count` also counts those beyond the limit."""

    __slots__ = ("total_count",)

    def __init__(self, page: Page) -> None:
        super().__init__(merge((), page.records, RECORDS_MOST))
        self.total_count = page.total_count


Found: TypeAlias = Shelf | Page | Diagnostic | SourceFailed


class Opening(Struct, frozen=True):
    """The channels in the order of the file, the settings with their sizes, and diagnostics."""

    channels: tuple[Channel, ...]
    settings: Settings
    diagnostics: tuple[Diagnostic, ...]


def opening_of(spec: Spec, base: Path, *, set_aside: bool = True) -> Opening:
    """Open the channels of a file; raises `ChannelUnreachable`."""
    channels, diagnostics = open_channels(spec.channels, base, set_aside=set_aside)
    return Opening(tuple(channels), counted(spec.settings, channels), tuple(diagnostics))


def open_channels(
    specs: Sequence[ChannelSpec], base: Path, *, set_aside: bool = True
) -> tuple[list[Channel], list[Diagnostic]]:
    """The channels in the order of the file, and diagnostics; paths are relative to `base`.

    With `set_aside=False` corrupt caches are not renamed. Raises `ChannelUnreachable` for caches and folders that do
    not exist or cannot be read.
    """
    found = [(spec, _found(spec, base)) for spec in specs]
    _refuse_unreachable(found, base)
    channels: list[Channel] = []
    diagnostics: list[Diagnostic] = []
    for spec, there in found:
        shelf, found_diagnostics = _shelved(spec, there, base, set_aside)
        channels.append(Channel(spec.id, shelf))
        diagnostics += found_diagnostics
    return channels, diagnostics


def counted(settings: Settings, channels: Sequence[Channel]) -> Settings:
    """The settings with the size of each folder as its total count, unless the settings have one."""
    totals = ((channel.id, getattr(channel.shelf, "total_count", None)) for channel in channels)
    by_channel = {name: total for name, total in totals if total is not None}
    total_count = {**by_channel, **settings.exposure.total_count}
    exposure = msgspec.structs.replace(settings.exposure, total_count=total_count)
    return msgspec.structs.replace(settings, exposure=exposure)


def _found(spec: ChannelSpec, base: Path) -> Found:
    if spec.cache is not UNSET:
        return open_cache(base / spec.cache, spec.id)
    if spec.folder is not UNSET:
        try:
            return FolderSource(base / spec.folder).fetch()
        except SourceFailed as failed:
            return failed
    return MemoryShelf(spec.records or ())


def _refuse_unreachable(found: Sequence[tuple[ChannelSpec, Found]], base: Path) -> None:
    unreachable = [
        {"channel": spec.id, "path": _path(spec, base), "reason": reason}
        for spec, there in found
        if (reason := _unreachable(spec, there)) is not None
    ]
    if not unreachable:
        return
    for _, there in found:
        if isinstance(there, CacheShelf):
            there.close()
    reasons = "; ".join(f"channel {one['channel']!r}: {one['path']}: {one['reason']}" for one in unreachable)
    raise ChannelUnreachable(f"Channels cannot be read: {reasons}", channels=unreachable)


def _unreachable(spec: ChannelSpec, there: Found) -> str | None:
    """Why a source cannot be opened; None if it exists, even if it is corrupt."""
    match there:
        case SourceFailed():
            return there.message
        case Diagnostic("CorruptCache") if is_not_a_cache(there) and not (spec.cache or "").endswith(".pch"):
            return there.sentence  # not a cache: it may be any file of the user, so it is not renamed
        case Diagnostic(code) if code != "CorruptCache":
            return there.sentence
        case _:
            return None


def _shelved(spec: ChannelSpec, there: Found, base: Path, set_aside: bool) -> tuple[Shelf, Sequence[Diagnostic]]:
    match there:
        case Page():
            named = [msgspec.structs.replace(one, facts={"channel": spec.id, **one.facts}) for one in there.diagnostics]
            return FolderShelf(there), named
        case SourceFailed():
            raise there
        case Diagnostic() if not set_aside:
            return MemoryShelf(()), (there,)
        case Diagnostic():
            assert spec.cache is not UNSET
            aside = open_or_set_aside(base / spec.cache, spec.id)
            return aside.shelf, () if aside.diagnostic is None else (aside.diagnostic,)
        case _:
            return there, ()


def _path(spec: ChannelSpec, base: Path) -> str:
    """The path with undecodable bytes escaped."""
    return str(base / (spec.cache or spec.folder or "")).encode("utf-8", "backslashreplace").decode()
