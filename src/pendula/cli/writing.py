"""Files that a command writes, whole or not at all: whoever opens one finds the old one or the new one."""

import os
from pathlib import Path


def write_whole(target: Path, data: bytes) -> None:
    """Write a file; raises `OSError` with its name, and then what was there before is there still."""
    if target.exists() and not target.is_file():
        # A pipe or a device takes what it is given; a directory says that it is one.
        target.write_bytes(data)
        return
    place = Path(os.path.realpath(target))  # a link stays a link
    # Of this process alone: two that write the same file do not write into each other's.
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(place)
    except OSError as error:
        # Of the file that was asked for, not of the one beside it.
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        part.unlink(missing_ok=True)
