"""The small protocol through which files are reached, and the real disk behind it.

One disk is one directory of plain names. Nothing written counts before `sync`; no new name, rename or removal counts
before `sync_dir`. Every method may raise `OSError`; whoever calls decides what that breaks.
"""

import errno
import fcntl
import os
import re
from pathlib import Path
from typing import Protocol

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Disk(Protocol):
    """What a journal or a cache needs of a directory. Names are plain: no folders, no leading dot."""

    def create(self, name: str) -> None:
        """Make an empty file; `FileExistsError` if there is one."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Write at the end of an existing file; after an error any prefix of `data` may be there."""
        ...

    def read(self, name: str) -> bytes: ...

    def sync(self, name: str) -> None:
        """Make the contents of the file durable."""
        ...

    def sync_dir(self) -> None:
        """Make new names, renames and removals durable."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Replace `new` in one step."""
        ...

    def remove(self, name: str) -> None: ...

    def list(self) -> list[str]:
        """All names, sorted."""
        ...

    def free_bytes(self) -> int: ...

    def close(self) -> None: ...


def replace(disk: Disk, name: str, data: bytes) -> None:
    """Write a whole file so that after a crash either the old or the new contents are there."""
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
    """A directory of the operating system; made, private to its owner, when it does not exist."""

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
        """Some bytes of a file, fewer where it ends before; other disks may not have this."""
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
        """Put a file into a folder of this one; other disks may not have this."""
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
        """Take the directory for this disk alone, until it is closed or the process ends; false where it is taken, or
        has another name or none since it was opened: whoever had it is through with it."""
        try:
            fcntl.flock(self._dir, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(self._dir), self.directory.stat()):
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        self.release()
        return False

    def release(self) -> None:
        """Let others claim the directory; what is open stays open."""
        if self._dir >= 0:
            fcntl.flock(self._dir, fcntl.LOCK_UN)

    def close(self) -> None:
        for name in list(self._open):
            self._forget(name)
        if self._dir >= 0:
            os.close(self._dir)
            self._dir = -1

    def __del__(self) -> None:
        # A claim would outlive a disk that nobody has any more: the next one could not be made in this process.
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
        # The length of the file is part of what fdatasync writes; times are not, and nobody needs them.
        os.fdatasync(handle)


def _make_durably(directory: Path) -> None:
    """Make the directory and every missing parent; each new name is synced in its parent."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)


_REMEDIES = {
    errno.ENOSPC: "Make room on the disk",
    errno.EDQUOT: "Make room on the disk, or have the quota raised",
    errno.EROFS: "Let the disk be written to",
    errno.EACCES: "Let this program write there",
    errno.EPERM: "Let this program write there",
}


def remedy(trouble: OSError) -> str:
    """What helps where a disk cannot be written to, as the beginning of a sentence."""
    return _REMEDIES.get(trouble.errno or 0, "Look after the disk")
