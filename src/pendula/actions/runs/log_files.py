"""The files of the two logs: appended to, recovered after a crash, single lines read for reveals.

Memory holds only the offset of every MARKED_EVERY-th line.
"""

from array import array
from collections.abc import Sequence
from re import compile as regex
from typing import Any, Self

import msgspec

from pendula.kernel.disk import Disk, replace
from pendula.kernel.errors import InputRefused

WORLD_LOG = "world_log.jsonl"
CHUNK = regex(r"pc_log_epoch(\d{2,})\.jsonl")
MARKED_EVERY = 256


class _Numbered(msgspec.Struct):
    """The number of a line; headers have none."""

    seq: int = -1


_number = msgspec.json.Decoder(_Numbered).decode


class LogFiles:
    """Both logs on a disk."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.next_seq: int | None = None  # of the world log
        self.epoch: int | None = None  # of the current chunk
        self._shown = -1  # the last event in the current chunk
        self._first_seq = 0
        self._lines = 0
        self._size = 0
        self._marks = array("Q")  # offsets of every MARKED_EVERY-th line

    @classmethod
    def new(cls, disk: Disk) -> Self:
        """Create an empty world log. Raises `InputRefused` if logs exist."""
        if found := [name for name in disk.list() if name == WORLD_LOG or CHUNK.fullmatch(name)]:
            raise InputRefused(f"Logs already exist: {found[0]}", found=found)
        files = cls(disk)
        disk.create(WORLD_LOG)
        return files

    @classmethod
    def found(cls, disk: Disk) -> Self:
        """Open existing logs without a torn last line, or create an empty world log."""
        files = cls(disk)
        if WORLD_LOG not in disk.list():
            return cls.new(disk)
        files._count(_whole_lines(disk, WORLD_LOG))
        epochs = sorted(int(match[1]) for name in disk.list() if (match := CHUNK.fullmatch(name)))
        # A chunk with a torn header is created again.
        while epochs and not (lines := _whole_lines(disk, _chunk(epochs[-1])).splitlines()):
            disk.remove(_chunk(epochs.pop()))
        if epochs:
            files.epoch = epochs[-1]
            files._shown = _number(lines[-1]).seq
        return files

    def begin(self, epoch: int) -> None:
        """Begin a chunk."""
        self.epoch, self._shown = epoch, -1
        self._disk.create(_chunk(epoch))
        self._disk.sync_dir()

    def has_shown(self, epoch: int, seq: int) -> bool:
        """Whether an event is already in a chunk, or belongs to a closed one."""
        return self.epoch is not None and (epoch < self.epoch or (epoch == self.epoch and seq <= self._shown))

    def append(self, world: Sequence[bytes], chunk: Sequence[bytes]) -> None:
        if world:
            data = b"".join(line + b"\n" for line in world)
            self._disk.append(WORLD_LOG, data)
            self._count(data)
        if chunk and self.epoch is not None:
            self._disk.append(_chunk(self.epoch), b"".join(line + b"\n" for line in chunk))
            self._shown = max(self._shown, _number(chunk[-1]).seq)

    def sync(self) -> None:
        self._disk.sync(WORLD_LOG)
        if self.epoch is not None:
            self._disk.sync(_chunk(self.epoch))

    def line_of(self, seq: int) -> bytes | None:
        """The line of an event; None if the log does not have it."""
        place = seq - self._first_seq
        if not 0 <= place < self._lines:
            return None
        mark = place // MARKED_EVERY
        start = self._marks[mark]
        end = self._marks[mark + 1] if mark + 1 < len(self._marks) else self._size
        return self._part(start, end).split(b"\n")[place % MARKED_EVERY]

    def lines(self) -> list[bytes]:
        """Everything in the world log."""
        return self._disk.read(WORLD_LOG).splitlines()

    def chunks(self) -> list[list[bytes]]:
        """Everything in every chunk, by epoch."""
        epochs = sorted(int(match[1]) for name in self._disk.list() if (match := CHUNK.fullmatch(name)))
        return [self._disk.read(_chunk(epoch)).splitlines() for epoch in epochs]

    def _part(self, start: int, end: int) -> bytes:
        read_part: Any = getattr(self._disk, "read_part", None)
        if read_part is not None:
            data: bytes = read_part(WORLD_LOG, start, end - start)
            return data
        return self._disk.read(WORLD_LOG)[start:end]

    def _count(self, data: bytes) -> None:
        """Count whole lines appended to the world log."""
        if not data:
            return
        if self._lines == 0:
            self._first_seq = _number(data[: data.index(b"\n")]).seq
        begin = 0
        while begin < len(data):
            if self._lines % MARKED_EVERY == 0:
                self._marks.append(self._size + begin)
            begin = data.index(b"\n", begin) + 1
            self._lines += 1
        self._size += len(data)
        self.next_seq = self._first_seq + self._lines


def _chunk(epoch: int) -> str:
    return f"pc_log_epoch{epoch:02d}.jsonl"


def _whole_lines(disk: Disk, name: str) -> bytes:
    """The file without an incomplete last line, which is also removed on the disk."""
    data = disk.read(name)
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        replace(disk, name, whole)
    return whole
