"""Files that a command writes, whole or not at all: whoever opens one finds the old one or the new one."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path


class _SourceFailed(Exception):
    """The pieces cannot be had, which is no fault of the file that they go to."""

    def __init__(self, trouble: OSError) -> None:
        self.trouble = trouble


def write_whole(target: Path, data: bytes) -> None:
    """Write a file; raises `OSError` with its name, and then what was there before is there still."""
    write_pieces(target, (data,))


def write_pieces(target: Path, pieces: Iterable[bytes]) -> None:
    """As `write_whole`, for what is not all in memory; whatever ends the pieces early is raised as it is, and leaves
    what was there before."""
    if target.exists() and not target.is_file():
        # A pipe or a device takes what it is given; a directory says that it is one.
        _write(target, pieces)
        return
    place = Path(os.path.realpath(target))  # a link stays a link
    # Of this process alone: two that write the same file do not write into each other's.
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        _write(part, _had(pieces))
        part.replace(place)
    except _SourceFailed as failed:
        raise failed.trouble from None
    except OSError as error:
        # Of the file that was asked for, not of the one beside it.
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
