"""Records from the outside in base64: those a player asks for, and new artwork in commands.

Invalid bytes never raise: a record is then unreadable, and an insertion is rejected.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator
from typing import Protocol

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside
from pendula.playback.choosing.records import UNREADABLE, Row, sound, trusted
from pendula.playback.choosing.snapshot import Channel
from pendula.playback.events import Contents, RecordCommand
from pendula.playback.model import KEY_BYTES, MASK_64, PAYLOAD_BYTES, InvalidRecord, Record, refused


class Asking(Protocol):
    """An engine; the driver sets another outside for every command."""

    outside: Outside


class OutsideShelf:
    """The records of a channel, each asked of the outside."""

    __slots__ = ("_asking", "channel", "count", "generation")

    def __init__(self, asking: Asking, contents: Contents) -> None:
        self._asking = asking
        self.channel = contents.id
        self.count = contents.count
        self.generation = contents.generation

    @trusted
    def run(self, at: int) -> Iterator[Row]:
        yield self.record(at)

    @trusted
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
    """Answers the questions of a player from shelves; null for a record that cannot be read. Never raises."""

    def __init__(self, channels: Iterable[Channel]) -> None:
        self._channels = {channel.id: channel.shelf for channel in channels}

    def put(self, channel: Channel) -> None:
        """Replace or add a channel; then send the player `Refresh` or `Follow`."""
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


def record_of(command: RecordCommand) -> Record | bytes:
    """The record of a new artwork; empty bytes, which are rejected, if a field is invalid."""
    if command.id is None or not 0 <= command.id <= MASK_64:
        return b""
    try:
        key = bytes(KEY_BYTES) if command.storage_key is None else b64decode(command.storage_key, validate=True)
        payload = bytes(PAYLOAD_BYTES) if command.payload is None else b64decode(command.payload, validate=True)
    except (Base64Error, ValueError):
        return b""
    numbers = (command.kind, command.format, command.flags, command.dwell_ms, command.modified_ts)
    return Record(command.id, command.ts, *numbers, key, payload)


def record_to_show(command: RecordCommand) -> Record:
    """The record to show next; raises `InvalidRecord`."""
    record = record_of(command)
    if isinstance(record, bytes):
        bad_id = command.id is None or not 0 <= command.id <= MASK_64
        raise refused(InvalidRecord, field="id" if bad_id else "payload")
    return record
