"""The channels of a file, opened: records as they are written, caches from disk, folders as they are now.

What is not there is refused, every channel at once, before anything is touched; so is a file that is no cache at all,
or another channel's: it is the file of channels that is wrong then. A cache that cannot be trusted is set aside: its
channel has no records, a diagnostic says why, and the others play on.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from pendula.kernel.errors import WorldBroken
from pendula.playback.cache.merge import Page, SourceFailed, merge
from pendula.playback.cache.shelf import CacheShelf, is_no_cache, open_cache, open_or_set_aside
from pendula.playback.choosing.records import MemoryShelf, Shelf
from pendula.playback.choosing.snapshot import Channel
from pendula.playback.model import RECORDS_MOST, Diagnostic, Settings
from pendula.playback.runs.loading import ChannelSpec, Spec
from pendula.playback.sources.folder import FolderSource


class ChannelUnreachable(WorldBroken):
    """Facts: `channels`, each with `channel`, `path` and `reason`."""

    code = "channel_unreachable"


class FolderShelf(MemoryShelf):
    """The records of a folder; `total_count` also counts those that were too many to take."""

    __slots__ = ("total_count",)

    def __init__(self, page: Page) -> None:
        super().__init__(merge((), page.records, RECORDS_MOST))
        self.total_count = page.total_count


Found: TypeAlias = Shelf | Page | Diagnostic | SourceFailed


class Opening(Struct, frozen=True):
    """What a run begins with: channels in the order of the file, settings that know their sizes, what went wrong."""

    channels: tuple[Channel, ...]
    settings: Settings
    diagnostics: tuple[Diagnostic, ...]


def opening_of(spec: Spec, base: Path, *, set_aside: bool = True) -> Opening:
    """The channels of a file as `opened` finds them, and the settings for them."""
    channels, diagnostics = opened(spec.channels, base, set_aside=set_aside)
    return Opening(tuple(channels), counted(spec.settings, channels), tuple(diagnostics))


def opened(
    specs: Sequence[ChannelSpec], base: Path, *, set_aside: bool = True
) -> tuple[list[Channel], list[Diagnostic]]:
    """The channels in the order of the file, and what went wrong without stopping anything; paths are from `base`.

    Without `set_aside` nothing is renamed, for those who only look. Raises `ChannelUnreachable` for caches and folders
    that are not there or cannot be read.
    """
    found = [(spec, _found(spec, base)) for spec in specs]
    _refuse_unreachable(found, base)
    channels: list[Channel] = []
    diagnostics: list[Diagnostic] = []
    for spec, there in found:
        shelf, told = _shelved(spec, there, base, set_aside)
        channels.append(Channel(spec.id, shelf))
        diagnostics += told
    return channels, diagnostics


def counted(settings: Settings, channels: Sequence[Channel]) -> Settings:
    """The settings with the size of each folder for proportional exposure, where they do not give one themselves."""
    totals = ((channel.id, getattr(channel.shelf, "total_count", None)) for channel in channels)
    by_channel = {name: total for name, total in totals if total is not None}
    total_count = {**by_channel, **settings.exposure.total_count}
    exposure = msgspec.structs.replace(settings.exposure, total_count=total_count)
    return msgspec.structs.replace(settings, exposure=exposure)


def _found(spec: ChannelSpec, base: Path) -> Found:
    if spec.cache is not None:
        return open_cache(base / spec.cache, spec.id)
    if spec.folder is not None:
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
    told = "; ".join(f"channel {one['channel']!r}: {one['path']}: {one['reason']}" for one in unreachable)
    raise ChannelUnreachable(f"Channels cannot be read: {told}", channels=unreachable)


def _unreachable(spec: ChannelSpec, there: Found) -> str | None:
    """Why there is nothing to open; None for what is there, be it corrupt."""
    match there:
        case SourceFailed():
            return there.message
        case Diagnostic("CorruptCache") if is_no_cache(there) and not (spec.cache or "").endswith(".pch"):
            return there.sentence  # somebody's other file, which is not ours to set aside
        case Diagnostic(code) if code != "CorruptCache":
            return there.sentence
        case _:
            return None


def _shelved(spec: ChannelSpec, there: Found, base: Path, set_aside: bool) -> tuple[Shelf, Sequence[Diagnostic]]:
    match there:
        case Page():
            told = [msgspec.structs.replace(one, facts={"channel": spec.id, **one.facts}) for one in there.diagnostics]
            return FolderShelf(there), told
        case SourceFailed():
            raise there
        case Diagnostic() if not set_aside:
            return MemoryShelf(()), (there,)
        case Diagnostic():
            assert spec.cache is not None
            aside = open_or_set_aside(base / spec.cache, spec.id)
            return aside.shelf, () if aside.diagnostic is None else (aside.diagnostic,)
        case _:
            return there, ()


def _path(spec: ChannelSpec, base: Path) -> str:
    """In characters that can be told to anybody; the system allows others."""
    return str(base / (spec.cache or spec.folder or "")).encode("utf-8", "backslashreplace").decode()
