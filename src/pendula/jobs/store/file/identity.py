"""The files that a store has open: device and inode of the database, its write-ahead log and its shared memory.

A connection keeps using the file that it opened after that was replaced or removed: its commits are lost then. And
processes that do not share one `-shm` file do not see each other's locks. For the same reason a store may not be on a
network file system: locks and write-ahead logs do not work there.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from pendula.jobs.store.protocol import StoreUnusable
from pendula.kernel.errors import InputRefused

LOG, SHARED_MEMORY = "-wal", "-shm"
HEAD_BYTES = 32
MAPS = Path("/proc/self/maps")
Part = tuple[int, int] | None


class FileIdentity:
    """The three files when the store was opened, and whether they are still the same."""

    __slots__ = ("_log_head", "_paths", "log_bytes", "parts")

    def __init__(self, path: Path, place: Path) -> None:
        """`path` is the given path, `place` the resolved one; both absolute. A connection must be open on it."""
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
        """Remember the header of the log, since inode numbers are reused."""
        if self._look()[1] == self.parts[1]:
            self._log_head = _head(self._paths[1])

    def left_log(self) -> bool:
        """Whether the database was replaced beside the old log, which SQLite would apply to the new database."""
        main, log, _ = self._look()
        replaced = main is not None and main != self.parts[0] and log == self.parts[1]
        return replaced and self._log_head != b"" and _head(self._paths[1]) == self._log_head

    def _look(self) -> Sequence[Part]:
        main, log, shared = self._paths
        status = _stat(log)
        self.log_bytes = 0 if status is None else status.st_size
        return [_part(_stat(main)), _part(status), _part(_stat(shared))]

    def _is_mapped(self) -> bool:
        """Whether this process maps the present `-shm` file. All connections of a process share one mapping, so an
        older one may keep a removed file mapped. True where the system has no `/proc/self/maps`."""
        try:
            maps = MAPS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return True
        name = f" {self._paths[2]}"
        return f"{name} (deleted)\n" not in maps or f"{name}\n" in maps


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116  (a path object costs more than the stat, three times a call)
    except OSError:
        return None


def _head(path: str) -> bytes:
    """The header of a log, with its random salts; empty without a log."""
    try:
        with Path(path).open("rb") as log:
            return log.read(HEAD_BYTES)
    except OSError:
        return b""


def _part(status: os.stat_result | None) -> Part:
    return None if status is None else (status.st_dev, status.st_ino)


NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.glusterfs"}
)
MOUNTS = Path("/proc/self/mounts")


class NetworkFileSystem(InputRefused):
    """Facts: `path`, `type` of the file system, where it is `mounted`."""

    code = "network_file_system"


def refuse_network(directory: Path, mounts: Path = MOUNTS) -> None:
    """Raise `NetworkFileSystem` when `directory` is on one; without `/proc/self/mounts` nothing is refused."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    place = directory.resolve()
    mounted, kind = Path(), ""
    for line in lines:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = Path(_plain(parts[1]))
        # The longest mount point above the directory; of equals the later one, which hides the earlier.
        if place.is_relative_to(point) and len(point.parts) >= len(mounted.parts):
            mounted, kind = point, parts[2]
    if kind in NETWORK:
        raise NetworkFileSystem(
            f"{directory} is on a network file system ({kind}); a store of jobs needs a local disk",
            path=str(directory),
            type=kind,
            mounted=str(mounted),
        )


def _plain(text: str) -> str:
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
