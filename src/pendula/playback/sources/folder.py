"""A folder of pictures, videos and sounds as a source of records, and the file of an item.

A record depends only on the file's path and time: its id is the first 8 bytes (little-endian) of the sha256 of the
path within the folder, its storage key the first 16, its payload the beginning of the path itself; `ts` and
`modified_ts` are the time of the last change. A moved file is another artwork; a changed file is newer.

Left out are hidden files and folders, links that lead out of the folder, and links to folders, whose files are listed
under their real path. A file that cannot be read gives a diagnostic.
"""

import os
from collections.abc import Callable, Iterator
from errno import EACCES
from hashlib import sha256
from pathlib import Path, PurePosixPath
from zlib import crc32

from msgspec import Struct

from pendula.playback.cache.merge import Page, SourceFailed
from pendula.playback.choosing.records import MaskedShelf, Shelf
from pendula.playback.model import KEY_BYTES, PAYLOAD_BYTES, Diagnostic, Record

PICTURE, VIDEO, AUDIO = 1, 2, 3
SECOND_NS = 1_000_000_000
MASK_32 = (1 << 32) - 1


class Medium(Struct, frozen=True):
    """`kind` and `format` of a record; no format belongs to two kinds."""

    kind: int
    format: int


MEDIA: dict[str, Medium] = {
    ".jpg": Medium(PICTURE, 1),
    ".jpeg": Medium(PICTURE, 1),
    ".png": Medium(PICTURE, 2),
    ".gif": Medium(PICTURE, 3),
    ".webp": Medium(PICTURE, 4),
    ".avif": Medium(PICTURE, 5),
    ".bmp": Medium(PICTURE, 6),
    ".tif": Medium(PICTURE, 7),
    ".tiff": Medium(PICTURE, 7),
    ".heic": Medium(PICTURE, 8),
    ".svg": Medium(PICTURE, 9),
    ".mp4": Medium(VIDEO, 64),
    ".m4v": Medium(VIDEO, 64),
    ".webm": Medium(VIDEO, 65),
    ".mkv": Medium(VIDEO, 66),
    ".mov": Medium(VIDEO, 67),
    ".avi": Medium(VIDEO, 68),
    ".mp3": Medium(AUDIO, 128),
    ".m4a": Medium(AUDIO, 129),
    ".aac": Medium(AUDIO, 129),
    ".ogg": Medium(AUDIO, 130),
    ".oga": Medium(AUDIO, 130),
    ".opus": Medium(AUDIO, 131),
    ".flac": Medium(AUDIO, 132),
    ".wav": Medium(AUDIO, 133),
}


class _Scan(Struct, frozen=True):
    records: tuple[Record, ...]
    files: dict[int, str]
    diagnostics: tuple[Diagnostic, ...]


class FolderSource:
    """The media files of a folder and its subfolders. A `Source`; thread-safe."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self._files: dict[int, str] | None = None

    def fetch(self) -> Page:
        """All files, ordered by path; raises `SourceFailed` if the folder cannot be read."""
        scan = self._scanned()
        # A file that could not be read may still exist, so files that are not listed are not known to be gone.
        complete = not any(diagnostic.code == "UnreadableMedia" for diagnostic in scan.diagnostics)
        return Page(scan.records, len(scan.records), 0, complete, scan.diagnostics)

    def path_of(self, item_id: int) -> Path | None:
        """The file of an item, as of the last scan; None for an unknown id."""
        if self._files is None:
            try:
                self._scanned()
            except SourceFailed:
                return None
        relative = (self._files or {}).get(item_id)
        return None if relative is None else self.root / relative

    def is_there(self, item_id: int) -> bool:
        """Whether the item's file exists now."""
        path = self.path_of(item_id)
        try:
            return path is not None and path.is_file()
        except OSError:
            return False

    def _scanned(self) -> _Scan:
        scan = _scan(self.root)
        self._files = scan.files
        return scan


def record_of(relative: str, modified_ns: int) -> Record:
    """The record of the file at `relative`, a path in POSIX form with an extension of `MEDIA`."""
    named = relative.encode()
    digest = sha256(named).digest()
    medium = MEDIA[_extension(relative)]
    seconds = modified_ns // SECOND_NS
    return Record(
        id=int.from_bytes(digest[:8], "little"),
        ts=seconds,
        kind=medium.kind,
        format=medium.format,
        modified_ts=min(max(seconds, 0), MASK_32),
        storage_key=digest[:KEY_BYTES],
        payload=_beginning(named).ljust(PAYLOAD_BYTES, b"\0"),
    )


def available(shelf: Shelf, is_there: Callable[[int], bool]) -> Shelf:
    """The shelf without the records whose files are missing; the shelf itself if none is."""
    gone = missing(shelf, is_there)
    if not gone:
        return shelf
    masked = MaskedShelf(shelf, gone)
    # The same number of other missing files gives another generation.
    masked.generation = shelf.generation ^ (crc32(repr(gone).encode()) << 32)
    return masked


def missing(shelf: Shelf, is_there: Callable[[int], bool]) -> tuple[int, ...]:
    """The places of the records whose files are missing, as far as the shelf can be read."""
    gone: list[int] = []
    at = 0
    while at < shelf.count:
        for place, id, _ in shelf.run(at):
            if place is None:
                return tuple(gone)
            at = place + 1
            if id is not None and not is_there(id):
                gone.append(place)
    return tuple(gone)


def _scan(root: Path) -> _Scan:
    diagnostics: list[Diagnostic] = []
    records: dict[int, Record] = {}
    files: dict[int, str] = {}
    try:
        inside = root.resolve(strict=True)
        os.scandir(inside).close()
    except (OSError, ValueError) as trouble:
        reason = getattr(trouble, "strerror", None) or trouble
        raise SourceFailed(f"The folder {root} cannot be read: {reason}", folder=str(root)) from trouble
    for relative in sorted(_media(root, inside, diagnostics)):
        try:
            record = record_of(relative, (root / relative).stat().st_mtime_ns)
        except (OSError, UnicodeError) as trouble:
            diagnostics.append(_left_out(relative, trouble))
            continue
        if record.id in files:
            facts = {"file": relative, "same_id_as": files[record.id], "id": str(record.id)}
            diagnostics.append(Diagnostic("SameId", "A file has the id of another and is left out.", facts))
            continue
        records[record.id], files[record.id] = record, relative
    return _Scan(tuple(records.values()), files, tuple(diagnostics))


def _media(root: Path, inside: Path, diagnostics: list[Diagnostic]) -> Iterator[str]:
    """The paths of media files within the folder, in POSIX form, in no particular order."""

    def report(trouble: OSError) -> None:
        diagnostics.append(_left_out(os.path.relpath(trouble.filename, root), trouble))

    for folder, folders, names in os.walk(root, onerror=report):
        # Sorted, so that diagnostics are in order; hidden folders are skipped.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if name.startswith(".") or _extension(name) not in MEDIA:
                continue
            try:
                if path.resolve(strict=True).is_relative_to(inside) and path.is_file():
                    _check_readable(path)
                    yield path.relative_to(root).as_posix()
            except (OSError, RuntimeError) as trouble:
                diagnostics.append(_left_out(path.relative_to(root).as_posix(), trouble))


def _check_readable(path: Path) -> None:
    if not os.access(path, os.R_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), str(path))


def _extension(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _beginning(named: bytes) -> bytes:
    """The beginning of a path that fits a payload, without a partial character."""
    return named[:PAYLOAD_BYTES].decode("utf-8", "ignore").encode()


def _left_out(relative: str, trouble: Exception) -> Diagnostic:
    """`UnreadableMedia` for a file that may still exist, `UnusableMedia` for one that is certainly not usable."""
    file = relative.encode("utf-8", "backslashreplace").decode()
    match trouble:
        case UnicodeError():
            return Diagnostic("UnusableMedia", "A file is left out: its name is not valid UTF-8.", {"file": file})
        case FileNotFoundError():
            return Diagnostic("UnusableMedia", "A file is left out: its link is broken.", {"file": file})
        case OSError(strerror=str(reason)):
            return Diagnostic("UnreadableMedia", f"A file is left out: {reason}.", {"file": file})
        case _:
            return Diagnostic("UnusableMedia", "A file is left out: its links form a loop.", {"file": file})
