"""Which file a store has open: device and inode of the database, its write-ahead log and its shared memory.

A connection goes on with the file that it opened, also when another lies at the path by now or none does: what it
commits is lost then. And processes that do not share one `-shm` file do not see each other's locks.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from pendula.jobs.store.protocol import StoreUnusable

LOG, SHARED_MEMORY = "-wal", "-shm"
HEAD_BYTES = 32
MAPS = Path("/proc/self/maps")
Part = tuple[int, int] | None


class FileIdentity:
    """The three files as they were when the store was opened, and whether they still are."""

    __slots__ = ("_log_head", "_paths", "log_bytes", "parts")

    def __init__(self, path: Path, place: Path) -> None:
        """`path` is how the store was named, `place` where links led to; both absolute. A connection is open on it."""
        self._paths = (str(path), f"{place}{LOG}", f"{place}{SHARED_MEMORY}")
        self.log_bytes = 0
        self._log_head = b""
        self.parts = self._look()
        if None in self.parts or not self._is_mapped():
            raise StoreUnusable(f"{path} is being replaced, or its {SHARED_MEMORY} file was; try again", path=str(path))

    def is_same(self) -> bool:
        """Whether the three files are still those that were opened."""
        return self._look() == self.parts

    def is_same_database(self) -> bool:
        return self._look()[0] == self.parts[0]

    def is_log_missing(self) -> bool:
        """Whether the write-ahead log was removed, and no process has opened the database since."""
        main, log, shared = self._look()
        return main == self.parts[0] and log is None and shared in (None, self.parts[2])

    def remember_log(self) -> None:
        """Keep by what the log is known: the head of its file, for a number is given again when a file is gone."""
        if self._look()[1] == self.parts[1]:
            self._log_head = _head(self._paths[1])

    def left_log(self) -> bool:
        """Whether another database lies there by now, beside the log of this one, which SQLite would take for its."""
        main, log, _ = self._look()
        there = main is not None and main != self.parts[0] and log == self.parts[1]
        return there and self._log_head != b"" and _head(self._paths[1]) == self._log_head

    def _look(self) -> Sequence[Part]:
        main, log, shared = self._paths
        found = _stat(log)
        self.log_bytes = 0 if found is None else found.st_size
        return [_part(_stat(main)), _part(found), _part(_stat(shared))]

    def _is_mapped(self) -> bool:
        """Whether this process uses the shared memory that lies there now. All connections of a process share one
        mapping, so another one may hold on to a file that was removed. A system that does not say is trusted."""
        try:
            maps = MAPS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return True
        name = f" {self._paths[2]}"
        return f"{name} (deleted)\n" not in maps or f"{name}\n" in maps


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116  (a path object costs more than the look itself, three times a call)
    except OSError:
        return None


def _head(path: str) -> bytes:
    """The head of a log, with the random numbers that SQLite gave it; nothing where there is none."""
    try:
        with Path(path).open("rb") as log:
            return log.read(HEAD_BYTES)
    except OSError:
        return b""


def _part(found: os.stat_result | None) -> Part:
    return None if found is None else (found.st_dev, found.st_ino)
