"""A folder of pictures, videos and sounds as a source of records, and the way back from an item to its file.

A record follows from the file's place and time alone: its id is the first 8 bytes (little-endian) of the sha256 of the
path within the folder, its storage key the first 16, its payload the beginning of the path itself; `ts` and
`modified_ts` are the time of the last change. A file that is moved is another artwork; one that is changed is newer.

Left out are hidden files and folders, links that lead out of the folder, and links to folders, whose files are listed
where they really are. A file that cannot be looked at is told of, and stops nothing.
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
    """The numbers by which a player knows what it has before it: `kind`, and `format`, which no two kinds share."""

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
    """The media files of a folder and of the folders in it. A `Source`; safe from any thread."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self._files: dict[int, str] | None = None

    def fetch(self) -> Page:
        """All files, in the order of their paths; raises `SourceFailed` when the folder itself cannot be read."""
        scan = self._scanned()
        # What could not be looked at may still be there: then what is not listed is not known to be gone.
        complete = not any(told.code == "UnreadableMedia" for told in scan.diagnostics)
        return Page(scan.records, len(scan.records), 0, complete, scan.diagnostics)

    def path_of(self, item_id: int) -> Path | None:
        """The file of an item, as of the last look at the folder; None for an id that no file has."""
        if self._files is None:
            try:
                self._scanned()
            except SourceFailed:
                return None
        relative = (self._files or {}).get(item_id)
        return None if relative is None else self.root / relative

    def is_there(self, item_id: int) -> bool:
        """Whether the item's file is there now."""
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
    """The shelf without the records whose media are missing; the shelf itself if none is."""
    gone = missing(shelf, is_there)
    if not gone:
        return shelf
    masked = MaskedShelf(shelf, gone)
    # As many others missing are other contents all the same.
    masked.generation = shelf.generation ^ (crc32(repr(gone).encode()) << 32)
    return masked


def missing(shelf: Shelf, is_there: Callable[[int], bool]) -> tuple[int, ...]:
    """The places of the records whose media are missing, as far as the shelf can be read."""
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
    told: list[Diagnostic] = []
    records: dict[int, Record] = {}
    files: dict[int, str] = {}
    try:
        inside = root.resolve(strict=True)
        os.scandir(inside).close()
    except (OSError, ValueError) as trouble:
        reason = getattr(trouble, "strerror", None) or trouble
        raise SourceFailed(f"The folder {root} cannot be read: {reason}", folder=str(root)) from trouble
    for relative in sorted(_media(root, inside, told)):
        try:
            record = record_of(relative, (root / relative).stat().st_mtime_ns)
        except (OSError, UnicodeError) as trouble:
            told.append(_left_out(relative, trouble))
            continue
        if record.id in files:
            facts = {"file": relative, "same_id_as": files[record.id], "id": str(record.id)}
            told.append(Diagnostic("SameId", "A file has the id of another and is left out.", facts))
            continue
        records[record.id], files[record.id] = record, relative
    return _Scan(tuple(records.values()), files, tuple(told))


def _media(root: Path, inside: Path, told: list[Diagnostic]) -> Iterator[str]:
    """The paths of media files within the folder, in POSIX form, in no particular order."""

    def tell(trouble: OSError) -> None:
        told.append(_left_out(os.path.relpath(trouble.filename, root), trouble))

    for folder, folders, names in os.walk(root, onerror=tell):
        # In order, so that what is told comes in order; hidden folders are not entered.
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
                told.append(_left_out(path.relative_to(root).as_posix(), trouble))


def _check_readable(path: Path) -> None:
    if not os.access(path, os.R_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), str(path))


def _extension(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _beginning(named: bytes) -> bytes:
    """As much of a path as a payload holds; no character is cut in two."""
    return named[:PAYLOAD_BYTES].decode("utf-8", "ignore").encode()


def _left_out(relative: str, trouble: Exception) -> Diagnostic:
    """`UnreadableMedia` for what may be there all the same, `UnusableMedia` for what is no media file for certain."""
    file = relative.encode("utf-8", "backslashreplace").decode()
    match trouble:
        case UnicodeError():
            return Diagnostic("UnusableMedia", "A file is left out: its name is not valid UTF-8.", {"file": file})
        case FileNotFoundError():
            return Diagnostic("UnusableMedia", "A file is left out: it leads nowhere.", {"file": file})
        case OSError(strerror=str(reason)):
            return Diagnostic("UnreadableMedia", f"A file is left out: {reason}.", {"file": file})
        case _:
            return Diagnostic("UnusableMedia", "A file is left out: its links go round in a circle.", {"file": file})
