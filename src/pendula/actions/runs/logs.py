"""The two logs: everything in `world_log`, what the player character learned in `pc_log`, one chunk an epoch.

Both are append-only. A chunk that is closed is never changed; older matter that comes to light later is a new record in
the present chunk, with copies of what it reveals.
"""

from collections.abc import Iterable

import msgspec

from pendula.actions.events import WORLD_EVENTS, End, EpochBegan, Event, Start, VisibilityChange, WorldEvent
from pendula.kernel.canonical import encode
from pendula.kernel.disk import Disk

# segment, d, t_end, waited, admission: with more, the first start has something to tell of its making.
ORDINARY_START = 5

_encode = msgspec.json.Encoder(order="sorted").encode

WORLD_LOG = "world_log.jsonl"
CHANNELS = ("world", "pc", "sys", "ally")


class Logs:
    """Both logs of a run as JSON lines; `feed` events in the order they came.

    With a disk they are written as they come: `world_log.jsonl` and one `pc_log_epochNN.jsonl` for each chunk. What
    `feed` was given is durable when it returns; a closed chunk is never opened again.
    """

    def __init__(self, header: EpochBegan, disk: Disk | None = None) -> None:
        self.world: list[bytes] = []
        self.chunks: list[list[bytes]] = []
        self.first_epoch = header.epoch
        self._disk = disk
        self._written = (0, 0)  # lines of the world log, lines of the present chunk
        if disk is not None:
            disk.create(WORLD_LOG)
        self._begin(header)
        self._write()

    def feed(self, events: Iterable[Event]) -> None:
        keep = self.world.append
        for event in events:
            if isinstance(event, WORLD_EVENTS):
                line = _line(event)
                keep(line)
                if event.pc:
                    self._show(event, line)
            elif isinstance(event, EpochBegan):
                self._write()
                self._begin(event)
        self._write()

    def _write(self) -> None:
        """Append what is new, the world log first: whatever the player knows of is in it."""
        if self._disk is None:
            return
        world, chunk = self._written
        for name, new in ((WORLD_LOG, self.world[world:]), (self._chunk_name(), self.chunks[-1][chunk:])):
            if new:
                self._disk.append(name, b"".join(line + b"\n" for line in new))
                self._disk.sync(name)
        self._written = (len(self.world), len(self.chunks[-1]))

    def _chunk_name(self) -> str:
        return f"pc_log_epoch{self.first_epoch + len(self.chunks) - 1:02d}.jsonl"

    def _begin(self, header: EpochBegan) -> None:
        seen = [{key: one[key] for key in ("action_id", "remaining")} for one in header.carried_in if one["pc"]]
        line = encode({"epoch": header.epoch, "start_at": header.start_at, "carried_in": seen})
        self.chunks.append([line])
        self._written = (self._written[0], 0)
        if self._disk is not None:
            self._disk.create(self._chunk_name())
            self._disk.sync_dir()

    def _show(self, event: WorldEvent, line: bytes) -> None:
        copies = self._revealed(event) if isinstance(event, VisibilityChange) else []
        self.chunks[-1].append(line[:-1] + b',"revealed":[%b]}' % b",".join(copies) if copies else line)

    def _revealed(self, event: VisibilityChange) -> list[bytes]:
        """Copies of the events that a record reveals, as far as this run has them."""
        # The event is the last in the log, which has every number up to it without a gap.
        first = event.seq - len(self.world) + 1
        places = [seq - first for seq in event.meta["reveals"]]
        return [self.world[place] for place in places if 0 <= place < len(self.world)]


def _line(event: WorldEvent) -> bytes:
    """The canonical bytes of an event. What an ordinary start or end holds needs no checking: texts and integers."""
    if type(event) is End or (type(event) is Start and len(event.meta) == ORDINARY_START):
        try:
            return _encode(event)
        except (TypeError, ValueError, OverflowError):
            pass  # a lone surrogate in an id, an integer too long: the careful way says where
    return encode(event)


def audio_name(epoch: int, slot: int, channel: str) -> str:
    """`epoch03_slot14_pc.ogg`; raises `ValueError` for what is not a channel."""
    if channel not in CHANNELS:
        raise ValueError(f"{channel!r} is not a channel; allowed are {', '.join(CHANNELS)}")
    return f"epoch{epoch:02d}_slot{slot:02d}_{channel}.ogg"
