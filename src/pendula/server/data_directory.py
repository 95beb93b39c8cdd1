"""The data directory: private, locked by the one server that uses it, and where each thing lies in it.

DATA/lock                       held while a server runs
DATA/tokens.json                access tokens, as digests
DATA/rooms/ROOM/ENGINE/         the journal of one engine
DATA/stores/ROOM/               what a room keeps beside its engines
"""

import fcntl
import os
import re
from pathlib import Path
from types import TracebackType
from typing import Self

from pendula.kernel.disk import RealDisk
from pendula.server.errors import DataLocked, DataUnusable

NAME = re.compile(r"[a-z0-9-]{1,64}")


class DataDirectory:
    """A locked data directory; closing it, or the end of the process, lets it go."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle: int | None = handle

    @classmethod
    def lock(cls, path: str | os.PathLike[str]) -> "DataDirectory":
        """Make the directory if need be and take its lock; raises `DataLocked` or `DataUnusable`."""
        directory = Path(path).absolute()
        try:
            RealDisk(directory).close()
            handle = os.open(directory / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataUnusable(
                f"The data directory {directory} cannot be used: {error.strerror}", directory=str(directory)
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise DataLocked(
                f"Another server uses the data directory {directory}; stop it, or choose another with --data",
                directory=str(directory),
            ) from None
        return cls(directory, handle)

    def journal(self, room: str, engine: str) -> Path:
        """Where the journal of an engine lies."""
        assert NAME.fullmatch(room), room
        assert NAME.fullmatch(engine), engine
        return self.path / "rooms" / room / engine

    def store(self, room: str) -> Path:
        """Where a room keeps what its engines share."""
        assert NAME.fullmatch(room), room
        return self.path / "stores" / room

    def engines(self, room: str) -> list[str]:
        """The engines of a room that have a journal here, sorted."""
        assert NAME.fullmatch(room), room
        folder = self.path / "rooms" / room
        if not folder.is_dir():
            return []
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and NAME.fullmatch(entry.name))

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
