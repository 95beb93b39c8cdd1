"""Data of the scheduler: records, items, traces, diagnostics, errors."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from decimal import Decimal
from enum import StrEnum
from struct import Struct as Layout
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from pendula.documents.typed import Parse, limits, written
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused, LimitExceeded, PendulaError, WrongUsage
from pendula.playback.sentences import diagnostic_sentence, reset_sentence, sentence_of

CHANNELS_MOST = 64
NAME_MOST = 256  # characters of a channel's id
RECORDS_MOST = 8192
RECORDS_LEAST = 8
RECORDS_DEFAULT = 1024
RECORD_BYTES = 80
PAYLOAD_BYTES = 32
KEY_BYTES = 16
WSUM = 65536
MASK_64 = (1 << 64) - 1

LAYOUT = Layout("<QqBBHII16s32sI")
SAID_BITS, SAID_MOST = 256, 120

P = TypeVar("P", bound=PendulaError)


def short_repr(value: object) -> str:
    """A value for an error: at most 120 characters, without the digits of a huge number."""
    if isinstance(value, int) and value.bit_length() > SAID_BITS:
        return f"an_integer_of_{value.bit_length()}_bits"
    if isinstance(value, dict | list | tuple):
        text = msgspec.json.encode(value, enc_hook=repr).decode()
    else:
        text = str(value) if isinstance(value, int | float | Decimal) else repr(value)
    return text if len(text) <= SAID_MOST else text[:SAID_MOST] + "…"


def invalid_parameter(parameter: str, value: object, *allowed: str | int) -> "InvalidParameter":
    """A setting that is out of its range: `allowed` is the least and the most, or names as in `sentences.ALLOWED`."""
    return refused(InvalidParameter, parameter=parameter, value=short_repr(value), allowed=list(allowed))


def wrong_value(parameter: str, value: object, allowed: str) -> "InvalidParameter":
    """An argument that is out of its range; `allowed` is in words."""
    message = f"{parameter} is {value!r}; it must be {allowed}"
    return InvalidParameter(message, parameter=parameter, value=str(value), allowed=allowed)


def refused(kind: type[P], **facts: Any) -> P:
    """The error with the sentence of its code and facts."""
    return kind(sentence_of(kind.code, facts), **facts)


class InvalidWeight(InputRefused):
    """Facts: `channel`, `value`."""

    code = "invalid_weight"


class InvalidParameter(InputRefused):
    """Facts: `parameter`, `value`, `allowed`."""

    code = "invalid_parameter"


class InvalidCount(WrongUsage, ValueError):
    """Facts: `n`."""

    code = "invalid_count"


class TooManyChannels(LimitExceeded):
    code = "too_many_channels"


class UnknownChannel(InputRefused):
    """Facts: `channel`, `followed`."""

    code = "unknown_channel"


class ChannelTaken(InputRefused):
    """The channel is followed already. Facts: `channel`."""

    code = "channel_taken"


class InvalidRecord(InputRefused):
    """Facts: `field`, `value`, `allowed`."""

    code = "invalid_record"


class Banned(InputRefused):
    """A banned artwork cannot be pinned. Facts: `id`."""

    code = "artwork_banned"


class TooManyControls(LimitExceeded):
    """Too many artworks are pinned or banned."""

    code = "too_many_controls"


class Origin(StrEnum):
    """What selected an item: the round robin, the pool of new artwork, the round robin in place of new artwork that had
    just been shown, or a viewer."""

    BASE = "base"
    NAE = "nae"
    NAE_FALLBACK = "nae_fallback"
    PINNED = "pinned"


class InsertResult(StrEnum):
    """The result of inserting a new artwork."""

    INSERTED = "INSERTED"
    MERGED = "MERGED"
    DISABLED = "DISABLED"
    REJECTED = "REJECTED"
    BANNED = "BANNED"


def _bytes_of(size: int) -> Callable[[str], bytes]:
    def read(text: str) -> bytes:
        try:
            found = b64decode(text, validate=True)
        except (Base64Error, ValueError):
            raise InputRefused(f"not base64; expected {size} bytes in base64") from None
        if len(found) != size:
            raise InputRefused(f"{len(found)} bytes; expected {size} bytes in base64")
        return found

    return read


def _base64(size: int) -> Meta:
    length = 4 * -(-size // 3)
    return written(
        type="string",
        contentEncoding="base64",
        minLength=length,
        maxLength=length,
        pattern="^[A-Za-z0-9+/]+={0,2}$",
        description=f"{size} bytes.",
    )


# The limits are those of documents; `pack` has them for records of programs.
ArtworkId = Annotated[int, limits(minimum=0, maximum=MASK_64)]
Signed64 = Annotated[int, limits(minimum=-(1 << 63), maximum=(1 << 63) - 1)]
Unsigned8 = Annotated[int, limits(minimum=0, maximum=(1 << 8) - 1)]
Unsigned16 = Annotated[int, limits(minimum=0, maximum=(1 << 16) - 1)]
Unsigned32 = Annotated[int, limits(minimum=0, maximum=(1 << 32) - 1)]
StorageKey = Annotated[bytes, Parse(_bytes_of(KEY_BYTES), b""), _base64(KEY_BYTES)]
Payload = Annotated[bytes, Parse(_bytes_of(PAYLOAD_BYTES), b""), _base64(PAYLOAD_BYTES)]


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """One artwork, as a channel lists it. Times are Unix seconds; `dwell_ms` 0 means the player's default."""

    id: ArtworkId
    ts: Signed64
    kind: Unsigned8 = 0
    format: Unsigned8 = 0
    flags: Unsigned16 = 0
    dwell_ms: Unsigned32 = 0
    modified_ts: Unsigned32 = 0
    storage_key: StorageKey = bytes(KEY_BYTES)
    payload: Payload = bytes(PAYLOAD_BYTES)


class Entry(Struct, frozen=True, order=True, gc=False):
    """A new artwork in the pool. `number` stands for the time of its insertion and never ties."""

    number: int
    id: int
    raw: bytes


# The pool: entries at 32, 16, 8, 4 and 2 sixty-fourths, each level in order of insertion.
Levels = tuple[tuple[Entry, ...], ...]


class Trace(Struct, frozen=True, gc=False):
    """What a step drew and skipped: the draw against the pool, the pool before it, drawn and skipped places."""

    pool: Levels
    nae_draw: int | None = None
    picked: tuple[int, ...] = ()  # places drawn by a random pick, the last accepted
    skipped: tuple[int, ...] = ()  # places skipped because they repeat the last id
    bad: tuple[int, ...] = ()  # places whose record is damaged
    unreadable: tuple[int, ...] = ()  # channels that were selected and could not be read


class Item(Struct, frozen=True, gc=False):
    """A record to show, and how it was selected.

    `at` is the record's place in its channel (0 is the newest), `step` the round-robin step that chose the channel.
    """

    id: int
    raw: bytes
    channel: str | None
    channel_index: int | None
    at: int | None
    origin: Origin
    epoch_id: int
    ordinal: int
    step: int | None
    trace: Trace | None = None

    @property
    def ts(self) -> int:
        return int.from_bytes(self.raw[8:16], "little", signed=True)

    @property
    def kind(self) -> int:
        return self.raw[16]

    @property
    def format(self) -> int:
        return self.raw[17]

    @property
    def flags(self) -> int:
        return int.from_bytes(self.raw[18:20], "little")

    @property
    def dwell_ms(self) -> int:
        return int.from_bytes(self.raw[20:24], "little")

    @property
    def modified_ts(self) -> int:
        return int.from_bytes(self.raw[24:28], "little")

    @property
    def storage_key(self) -> bytes:
        return self.raw[28:44]

    @property
    def payload(self) -> bytes:
        return self.raw[44:76]


class Counts(Struct):
    """Counters over all epochs."""

    channels: dict[str, int] = {}
    others: int = 0  # items of channels that are no longer followed
    nae: int = 0
    nae_fallback: int = 0
    repeats: int = 0
    inserts: int = 0
    merges: int = 0
    evictions: int = 0
    expiries: int = 0


class ResetCode(StrEnum):
    """Why an epoch began."""

    ASKED_FOR = "asked_for"
    CHANNEL_READ_AGAIN = "channel_read_again"
    DAY_PART_BEGAN = "day_part_began"
    DAY_PART_ENDED = "day_part_ended"
    SNAPSHOT_CHANGED = "snapshot_changed"


class ResetReason(Struct, frozen=True, forbid_unknown_fields=True):
    """Why an epoch began: a code, and the channel, the day part or the reason that the caller gave."""

    code: ResetCode
    subject: str | None = None

    @property
    def sentence(self) -> str:
        return reset_sentence(self.code, self.subject)


class Diagnostic(Struct, frozen=True):
    """A problem that did not stop playback."""

    code: str
    sentence: str
    facts: dict[str, Any] = {}


def diagnostic(code: str, **facts: Any) -> Diagnostic:
    """A diagnostic of a programme, with the sentence of its code."""
    return Diagnostic(code, diagnostic_sentence(code, facts), facts)


def item_json(item: Item) -> dict[str, Json]:
    """The public form of an item."""
    return {
        "id": item.id,
        "channel": item.channel,
        "origin": item.origin.value,
        "epoch_id": item.epoch_id,
        "ordinal": item.ordinal,
    }
