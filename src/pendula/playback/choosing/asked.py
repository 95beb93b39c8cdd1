"""Records that come from outside, one at a time, in base64: those a player asks for, and new artwork in commands.

Whatever is handed in, nothing is raised: what is not a record is unreadable, or is rejected when it is inserted.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator
from typing import Protocol

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside
from pendula.playback.choosing.records import UNREADABLE, Row, kept, sound
from pendula.playback.choosing.snapshot import Channel
from pendula.playback.events import Contents, OfRecord
from pendula.playback.model import KEY_BYTES, MASK_64, PAYLOAD_BYTES, InvalidRecord, Record, refused


class Asking(Protocol):
    """An engine; its outside is another one with every command."""

    outside: Outside


class AskedShelf:
    """The records of a channel as the outside hands them out, one at a time."""

    __slots__ = ("_asking", "channel", "count", "generation")

    def __init__(self, asking: Asking, contents: Contents) -> None:
        self._asking = asking
        self.channel = contents.id
        self.count = contents.count
        self.generation = contents.generation

    @kept
    def run(self, at: int) -> Iterator[Row]:
        yield self.record(at)

    @kept
    def record(self, at: int) -> Row:
        question: Json = {"at": at, "channel": self.channel, "generation": self.generation}
        answer = self._asking.outside.ask("record", question)
        if not isinstance(answer, str):
            return UNREADABLE
        try:
            raw = b64decode(answer, validate=True)
        except (Base64Error, ValueError):
            return UNREADABLE
        return at, int.from_bytes(raw[:8], "little") if sound(raw) else None, raw


class FromShelves:
    """Answers a player out of shelves, whoever wrote them: what cannot be read is null, and nothing is ever raised."""

    def __init__(self, channels: Iterable[Channel]) -> None:
        self._channels = {channel.id: channel.shelf for channel in channels}

    def put(self, channel: Channel) -> None:
        """Another edition of a channel, or a new one; tell the player of it with `refresh` or `follow`."""
        self._channels[channel.id] = channel.shelf

    def ask(self, name: str, question: Json) -> Json:
        match question:
            case {"channel": str(channel), "generation": int(generation), "at": int(at)} if name == "record":
                shelf = self._channels.get(channel)
                if shelf is None or shelf.generation != generation or not 0 <= at < shelf.count:
                    return None
                place, _, raw = shelf.record(at)
                return None if place is None else b64encode(raw).decode()
        return None


def record_of(command: OfRecord) -> Record | bytes:
    """The record of a new artwork; no bytes at all for one that cannot be, so that it is rejected."""
    if command.id is None or not 0 <= command.id <= MASK_64:
        return b""
    try:
        key = bytes(KEY_BYTES) if command.storage_key is None else b64decode(command.storage_key, validate=True)
        payload = bytes(PAYLOAD_BYTES) if command.payload is None else b64decode(command.payload, validate=True)
    except (Base64Error, ValueError):
        return b""
    numbers = (command.kind, command.format, command.flags, command.dwell_ms, command.modified_ts)
    return Record(command.id, command.ts, *numbers, key, payload)


def record_to_show(command: OfRecord) -> Record:
    """The record that somebody wants to see; raises `InvalidRecord` for one that cannot be."""
    record = record_of(command)
    if isinstance(record, bytes):
        bad_id = command.id is None or not 0 <= command.id <= MASK_64
        raise refused(InvalidRecord, field="id" if bad_id else "payload")
    return record
