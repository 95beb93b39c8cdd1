"""The two logs: all events in `world_log`, those that the player character learned of in `pc_log`, one chunk an epoch.

Both are append-only. A closed chunk never changes; a later reveal is a new record in the current chunk, with copies of
the revealed events and the numbers of those that this log does not have (`missing`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from pendula.actions.events import WORLD_EVENTS, End, EpochBegan, Event, Start, VisibilityChange, WorldEvent
from pendula.kernel.canonical import encode
from pendula.kernel.errors import InputRefused

# Members of `meta` in an ordinary start (segment, d, t_end, waited, admission) and end.
ORDINARY_START = 5
ORDINARY_END = 2
AT_ONCE = 4096  # lines that are written together

_encode = msgspec.json.Encoder(order="sorted").encode


class Files(Protocol):
    """The target of lines that are not kept in memory; see `LogFiles`."""

    next_seq: int | None
    epoch: int | None

    def begin(self, epoch: int) -> None: ...
    def has_shown(self, epoch: int, seq: int) -> bool: ...
    def append(self, world: Sequence[bytes], chunk: Sequence[bytes]) -> None: ...
    def sync(self) -> None: ...
    def line_of(self, seq: int) -> bytes | None: ...
    def lines(self) -> list[bytes]: ...
    def chunks(self) -> list[list[bytes]]: ...


class LogLines:
    """Both logs of a run as JSON lines; `feed` events in order. Without files the lines stay in memory."""

    def __init__(self, header: EpochBegan | None = None, files: Files | None = None) -> None:
        self._set_up(files)
        if header is not None:
            self.feed((header,))

    def _set_up(self, files: Files | None) -> None:
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
