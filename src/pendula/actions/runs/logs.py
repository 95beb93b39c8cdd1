"""The two logs: all events in `world_log`, those that the player character learned of in `pc_log`, one chunk an epoch.

Both are append-only, in memory or on a disk: `world_log.jsonl`, and one `pc_log_epochNN.jsonl` for each chunk. A closed
chunk never changes; a later reveal is a new record in the current chunk, with copies of the revealed events and the
numbers of those that this log does not have (`missing`). Of files, memory holds only the offset of every
MARKED_EVERY-th line.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from re import compile as regex
from typing import Any, Self

import msgspec

from pendula.actions.messages import WORLD_EVENTS, End, EpochBegan, Event, Start, VisibilityChange, WorldEvent
from pendula.kernel.canonical import encode
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


# Members of `meta` in an ordinary start (segment, d, t_end, waited, admission) and end.
ORDINARY_START = 5
ORDINARY_END = 2
AT_ONCE = 4096  # lines that are written together

_encode = msgspec.json.Encoder(order="sorted").encode


class Logs:
    """Both logs of a run as JSON lines; `feed` events in order.

    Without a disk the lines stay in memory. With a disk they are written; `feed` returns when they are durable, `write`
    does not wait. A closed chunk is never opened again.
    """

    def __init__(self, header: EpochBegan | None = None, disk: Disk | None = None) -> None:
        """Create new logs. Raises `InputRefused` if the disk has logs (see `continued`)."""
        self._set_up(None if disk is None else LogFiles.new(disk))
        if header is not None:
            self.feed((header,))

    @classmethod
    def continued(cls, disk: Disk) -> Self:
        """Continue the logs in a folder; an empty folder expects the header of an epoch.

        Events that are already written are skipped, so after a crash all events may be fed again. A torn last line is
        removed.
        """
        logs = cls()
        logs._set_up(LogFiles.found(disk))
        return logs

    def _set_up(self, files: LogFiles | None) -> None:
        self._world: list[bytes] = []
        self._chunks: list[list[bytes]] = []
        self.first_epoch = 0
        self._files = files
        self._first_seq: int | None = None
        self._new_world: list[bytes] = []
        self._new_chunk: list[bytes] = []

    @property
    def world(self) -> list[bytes]:
        """The lines of the world log, from memory or files."""
        return self._world if self._files is None else self._files.lines()

    @property
    def chunks(self) -> list[list[bytes]]:
        """The lines of every chunk, header first, from memory or files."""
        return self._chunks if self._files is None else self._files.chunks()

    @property
    def next_seq(self) -> int | None:
        """The number of the next event of the world log; None if the log is empty."""
        if self._files is not None:
            return self._files.next_seq
        return None if self._first_seq is None else self._first_seq + len(self._world)

    @property
    def epoch(self) -> int | None:
        """The epoch of the current chunk; None before the first."""
        if self._files is not None:
            return self._files.epoch
        return self.first_epoch + len(self._chunks) - 1 if self._chunks else None

    def feed(self, events: Iterable[Event]) -> None:
        """Write events and sync them."""
        self.write(events)
        self.sync()

    def write(self, events: Iterable[Event]) -> None:
        """Write events without waiting for the disk."""
        for event in events:
            if isinstance(event, WORLD_EVENTS):
                self._take(event)
            elif isinstance(event, EpochBegan) and (self.epoch is None or event.epoch > self.epoch):
                self._write()
                self._begin(event)
        self._write()

    def sync(self) -> None:
        if self._files is not None:
            self._files.sync()

    def _take(self, event: WorldEvent) -> None:
        if self.epoch is None:
            raise InputRefused("Logs begin with the header of an epoch: feed `world.header()` or `world.history()`")
        line = _line(event)
        files = self._files
        if files is None:
            self._first_seq = event.seq if self._first_seq is None else self._first_seq
            self._world.append(line)
        elif files.next_seq is None or event.seq >= files.next_seq + len(self._new_world):
            self._new_world.append(line)
            if files.next_seq is None:
                files.next_seq = event.seq
        if event.pc and (files is None or not files.has_shown(event.epoch, event.seq)):
            self._show(event, line)
        if len(self._new_world) >= AT_ONCE:
            self._write()

    def _begin(self, header: EpochBegan) -> None:
        seen = [{key: one[key] for key in ("action_id", "remaining")} for one in header.carried_in if one["pc"]]
        line = encode({"epoch": header.epoch, "start_at": header.start_at, "carried_in": seen})
        if self._files is not None:
            self._files.begin(header.epoch)
            self._new_chunk.append(line)
            return
        self.first_epoch = self.first_epoch if self._chunks else header.epoch
        self._chunks.append([line])

    def _write(self) -> None:
        """Append the new lines, the world log first, because it must contain all that the player knows."""
        if self._files is not None:
            self._files.append(self._new_world, self._new_chunk)
            self._new_world, self._new_chunk = [], []

    def _show(self, event: WorldEvent, line: bytes) -> None:
        if isinstance(event, VisibilityChange) and event.meta["reveals"]:
            line = line[:-1] + b"".join(self._revealed(event.meta["reveals"], event.seq)) + b"}"
        if self._files is None:
            self._chunks[-1].append(line)
        else:
            self._new_chunk.append(line)

    def _revealed(self, seqs: Sequence[int], upto: int) -> Iterator[bytes]:
        """Copies of the revealed events, and the numbers of those that this log does not have."""
        if self._files is not None:
            self._write()
        lines = {seq: self._line_of(seq) for seq in seqs if seq <= upto}
        copies = [line for line in lines.values() if line is not None]
        missing = [seq for seq, line in lines.items() if line is None]
        if copies:
            yield b',"revealed":[%b]' % b",".join(copies)
        if missing:
            yield b',"missing":' + encode(missing)

    def _line_of(self, seq: int) -> bytes | None:
        if self._files is not None:
            return self._files.line_of(seq)
        place = seq - (self._first_seq or 0)
        return self._world[place] if 0 <= place < len(self._world) else None

    def as_json(self) -> dict[str, Any]:
        """The lines of the world log, and the chunks with their lines."""
        return {
            "world_log": [line.decode() for line in self.world],
            "pc_log": [[line.decode() for line in chunk] for chunk in self.chunks],
        }


def _line(event: WorldEvent) -> bytes:
    """The canonical bytes of an event. Texts and integers of an ordinary start or end take the fast encoder."""
    kind, size = type(event), len(event.meta)
    if (kind is End and size == ORDINARY_END) or (kind is Start and size == ORDINARY_START):
        try:
            return _encode(event)
        except (TypeError, ValueError, OverflowError):
            pass  # a lone surrogate or a huge integer: `encode` raises with its place
    return encode(event)
