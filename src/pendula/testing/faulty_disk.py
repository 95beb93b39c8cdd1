"""An in-memory disk that tracks synced and unsynced bytes, and crashes or fails on request.

After a crash each file has its synced bytes and any prefix of the bytes appended since, possibly followed by a block of
zeros; new names, renames and removals survive if the directory was synced after them, otherwise by chance. A seed
decides which of the possible disks a crash leaves. After a failed sync, later syncs of that file report success and
save nothing, as operating systems do.
"""

import errno
from collections.abc import Mapping
from random import Random
from typing import Literal, TypeAlias

from msgspec import Struct

from pendula.kernel.limits import GIB

Failure: TypeAlias = Literal["crash", "no_space", "io_error"]
BLOCK = 4096


class Crashed(BaseException):
    """Power loss at this call. Not an `Exception`, so that no handler catches it."""


class Call(Struct, frozen=True):
    """One recorded call of the disk."""

    operation: str
    name: str
    size: int = 0


class _File:
    __slots__ = ("lying", "synced", "unsynced")

    def __init__(self, contents: bytes = b"") -> None:
        self.synced = contents
        self.unsynced = b""
        self.lying = False

    def contents(self) -> bytes:
        return self.synced + self.unsynced

    def left_by_a_crash(self, luck: Random) -> bytes:
        kept = luck.choice((0, len(self.unsynced), luck.randint(0, len(self.unsynced))))
        lost = len(self.unsynced) - kept
        # The length of a file can reach the disk before its blocks, which then read as zeros.
        zeros = luck.choice((0, lost, min(lost, BLOCK), luck.randint(0, lost)))
        return self.synced + self.unsynced[:kept] + bytes(zeros)


class _Renaming(Struct, frozen=True):
    """A directory change: `file` gets the name `new`, and `old` is removed; either may be absent."""

    old: str | None
    new: str | None
    file: _File | None = None


class FaultyDisk:
    """A `Disk`. `failures` maps call numbers (from 0) to failures; `calls` lists all calls."""

    def __init__(
        self,
        failures: Mapping[int, Failure] | None = None,
        *,
        free_bytes: int = GIB,
        contents: dict[str, bytes] | None = None,
    ) -> None:
        self.calls: list[Call] = []
        self.free = free_bytes
        self._failures = dict(failures or {})
        self._names = {name: _File(data) for name, data in (contents or {}).items()}
        self._synced_names = dict(self._names)
        self._changes: list[_Renaming] = []
        self._off = False

    def after_crash(self, seed: int) -> "FaultyDisk":
        """A possible disk after a crash now; equal seeds give equal disks."""
        luck = Random(seed)
        names = dict(self._synced_names)
        for change in self._changes:
            if luck.random() < 0.5:
                _carry_out(change, names)
        kept = {name: file.left_by_a_crash(luck) for name, file in sorted(names.items())}
        return FaultyDisk(free_bytes=self.free, contents=kept)

    def create(self, name: str) -> None:
        self._begin("create", name)
        if name in self._names:
            raise FileExistsError(errno.EEXIST, "File exists", name)
        self._change(_Renaming(None, name, _File()))

    def append(self, name: str, data: bytes) -> None:
        file = self._file(name)
        failure = self._begin("append", name, len(data), tears=True)
        if failure is not None:
            # A failing write may leave any part of its bytes; half of them represents all parts.
            file.unsynced += data[: len(data) // 2]
            self._fail(failure, name)
        file.unsynced += data

    def read(self, name: str) -> bytes:
        self._begin("read", name)
        return self._file(name).contents()

    def sync(self, name: str) -> None:
        file = self._file(name)
        failure = self._begin("sync", name, tears=True)
        if failure is not None:
            file.lying = failure != "crash"
            self._fail(failure, name)
        if not file.lying:
            file.synced, file.unsynced = file.contents(), b""

    def sync_dir(self) -> None:
        self._begin("sync_dir", "")
        self._synced_names = dict(self._names)
        self._changes.clear()

    def rename(self, old: str, new: str) -> None:
        self._begin("rename", new)
        self._change(_Renaming(old, new, self._file(old)))

    def remove(self, name: str) -> None:
        self._begin("remove", name)
        self._file(name)
        self._change(_Renaming(name, None))

    def list(self) -> list[str]:
        self._begin("list", "")
        return sorted(self._names)

    def free_bytes(self) -> int:
        self._begin("free_bytes", "")
        return self.free

    def close(self) -> None:
        """Does nothing; unsynced bytes stay unsynced."""

    def _file(self, name: str) -> _File:
        try:
            return self._names[name]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "No such file", name) from None

    def _change(self, change: _Renaming) -> None:
        _carry_out(change, self._names)
        self._changes.append(change)

    def _begin(self, operation: str, name: str, size: int = 0, tears: bool = False) -> Failure | None:
        """Count the call and fail it if planned; returns the failure if the caller first writes a part (`tears`)."""
        if self._off:
            raise Crashed("the disk is off")
        failure = self._failures.get(len(self.calls))
        self.calls.append(Call(operation, name, size))
        if failure is not None and not tears:
            self._fail(failure, name)
        return failure

    def _fail(self, failure: Failure, name: str) -> None:
        match failure:
            case "crash":
                self._off = True
                raise Crashed(f"crash at call {len(self.calls) - 1}: {self.calls[-1]}")
            case "no_space":
                raise OSError(errno.ENOSPC, "No space left on device", name)
            case "io_error":
                raise OSError(errno.EIO, "Input/output error", name)


def _carry_out(change: _Renaming, names: dict[str, _File]) -> None:
    file = change.file
    if change.old is not None:
        # A rename may survive although the creation before it is lost: then there is nothing to rename.
        file = names.pop(change.old, None)
    if change.new is not None and file is not None:
        names[change.new] = file
