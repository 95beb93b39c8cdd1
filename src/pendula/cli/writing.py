"""Atomic file writes: a reader sees either the old or the new file."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path


class _SourceFailed(Exception):
    """The source of the pieces failed, not the target file."""

    def __init__(self, trouble: OSError) -> None:
        self.trouble = trouble


def write_whole(target: Path, data: bytes) -> None:
    """Write a file; raises `OSError` with its name and keeps the old file."""
    write_pieces(target, (data,))


def write_pieces(target: Path, pieces: Iterable[bytes]) -> None:
    """Like `write_whole`, for content that is not in memory; an error of `pieces` is raised unchanged and keeps the old
    file."""
    if target.exists() and not target.is_file():
        # Pipes and devices are written directly; a directory raises its error.
        _write(target, pieces)
        return
    place = Path(os.path.realpath(target))  # keeps a link
    # A name per process, so that two processes do not share a draft.
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        _write(part, _had(pieces))
        part.replace(place)
    except _SourceFailed as failed:
        raise failed.trouble from None
    except OSError as error:
        # Name the requested file, not the draft.
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        part.unlink(missing_ok=True)


def _write(target: Path, pieces: Iterable[bytes]) -> None:
    with target.open("wb") as file:
        file.writelines(pieces)


def _had(pieces: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from pieces
    except OSError as trouble:
        raise _SourceFailed(trouble) from trouble
