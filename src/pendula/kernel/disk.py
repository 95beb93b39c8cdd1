"""The disk protocol, and the real disk.

A disk is one directory of plain names. Writes are durable after `sync`; new names, renames and removals are durable
after `sync_dir`. Every method may raise `OSError`.
"""

import errno
import fcntl
import os
import re
from pathlib import Path
from typing import Protocol

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Disk(Protocol):
    """A directory as a journal or a cache uses it. Names are plain: no folders, no leading dot."""

    def create(self, name: str) -> None:
        """Create an empty file; raises `FileExistsError` if it exists."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Append to an existing file; after an error any prefix of `data` may have been written."""
        ...

    def read(self, name: str) -> bytes: ...

    def sync(self, name: str) -> None:
        """Make the contents of the file durable."""
        ...

    def sync_dir(self) -> None:
        """Make new names, renames and removals durable."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename atomically; an existing `new` is replaced."""
        ...

    def remove(self, name: str) -> None: ...

    def list(self) -> list[str]:
        """All names, sorted."""
        ...

    def free_bytes(self) -> int: ...

    def close(self) -> None: ...


def replace(disk: Disk, name: str, data: bytes) -> None:
    """Write a whole file atomically: after a crash it has either the old or the new contents."""
    draft = f"{name}.tmp"
    if draft in disk.list():
        # Durably, or a crash could bring the stale draft back under the name of the new file.
        disk.remove(draft)
        disk.sync_dir()
    disk.create(draft)
    disk.append(draft, data)
    disk.sync(draft)
    disk.rename(draft, name)
    disk.sync_dir()


class RealDisk:
    """A directory of the operating system; created with mode 0700 if missing."""

    def __init__(self, directory: str | os.PathLike[str], *, make: bool = True) -> None:
        self.directory = Path(directory)
        if make:
            _make_durably(self.directory)
        self._dir = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        self._open: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"RealDisk({str(self.directory)!r})"

    def create(self, name: str) -> None:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        self._open[name] = os.open(_plain(name), flags, 0o600, dir_fd=self._dir)

    def append(self, name: str, data: bytes) -> None:
        handle = self._handle(name)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]

    def read(self, name: str) -> bytes:
        handle = os.open(_plain(name), os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._dir)
        with os.fdopen(handle, "rb") as file:
            return file.read()

    def read_part(self, name: str, start: int, length: int) -> bytes:
        """Part of a file, shorter at its end. Optional: other disks may lack this method."""
        handle = os.open(_plain(name), os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._dir)
        try:
            return os.pread(handle, length, start)
        finally:
            os.close(handle)

    def sync(self, name: str) -> None:
        _sync_data(self._handle(name))

    def sync_dir(self) -> None:
        os.fsync(self._dir)

    def rename(self, old: str, new: str) -> None:
        os.rename(_plain(old), _plain(new), src_dir_fd=self._dir, dst_dir_fd=self._dir)
        self._forget(new)
        if old in self._open:
            self._open[new] = self._open.pop(old)

    def remove(self, name: str) -> None:
        os.unlink(_plain(name), dir_fd=self._dir)
        self._forget(name)

    def move_into(self, folder: str, name: str) -> None:
        """Move a file into a subfolder. Optional: other disks may lack this method."""
        inner = RealDisk(self.directory / _plain(folder))
        try:
            os.rename(_plain(name), name, src_dir_fd=self._dir, dst_dir_fd=inner._dir)
            inner.sync_dir()
        finally:
            inner.close()
        self._forget(name)

    def list(self) -> list[str]:
        return sorted(entry.name for entry in self.directory.iterdir() if NAME.fullmatch(entry.name))

    def free_bytes(self) -> int:
        facts = os.fstatvfs(self._dir)
        return facts.f_bavail * facts.f_frsize

    def claim(self) -> bool:
        """Lock the directory exclusively until this disk is closed or the process ends. False if another disk holds
        the lock, or if the directory was renamed or removed since it was opened."""
        try:
            fcntl.flock(self._dir, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(self._dir), self.directory.stat()):
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        self.release()
        return False

    def release(self) -> None:
        """Release the claim; open files stay open."""
        if self._dir >= 0:
            fcntl.flock(self._dir, fcntl.LOCK_UN)

    def close(self) -> None:
        for name in list(self._open):
            self._forget(name)
        if self._dir >= 0:
            os.close(self._dir)
            self._dir = -1

    def __del__(self) -> None:
        # Otherwise the claim would outlive an unreferenced disk, and this process could not claim the directory again.
        if getattr(self, "_dir", -1) >= 0:
            self.close()

    def _handle(self, name: str) -> int:
        if name not in self._open:
            self._open[name] = os.open(_plain(name), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, dir_fd=self._dir)
        return self._open[name]

    def _forget(self, name: str) -> None:
        handle = self._open.pop(name, None)
        if handle is not None:
            os.close(handle)


def _plain(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a plain file name; use letters, digits, '.', '_' and '-'")
    return name


def _sync_data(handle: int) -> None:
    if hasattr(fcntl, "F_FULLFSYNC"):
        # On macOS fsync leaves the data in the drive's cache; only this call empties it.
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    else:
        # fdatasync writes the file length too; it skips only the times, which are not needed.
        os.fdatasync(handle)


def _make_durably(directory: Path) -> None:
    """Create the directory and every missing parent; each new name is synced in its parent."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)


_REMEDIES = {
    errno.ENOSPC: "Free space on the disk",
    errno.EDQUOT: "Free space on the disk or raise the quota",
    errno.EROFS: "Mount the disk writable",
    errno.EACCES: "Give this program write permission there",
    errno.EPERM: "Give this program write permission there",
}


def remedy(trouble: OSError) -> str:
    """What to do about a disk that cannot be written, as the beginning of a sentence."""
    return _REMEDIES.get(trouble.errno or 0, "Check the disk")
