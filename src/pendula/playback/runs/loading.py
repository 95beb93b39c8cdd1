"""Read a playback file and its settings; all faults are collected, each with its place."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from pendula.documents import Cursor, Document, Members
from pendula.documents.faults import suggestion
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import parse_utc
from pendula.playback.choosing.records import pack
from pendula.playback.clocks import UnknownZone, check_zone
from pendula.playback.model import (
    CHANNELS_MOST,
    KEY_BYTES,
    MASK_64,
    NAME_MOST,
    PAYLOAD_BYTES,
    RECORDS_MOST,
    DayPart,
    Exposure,
    Mode,
    Nae,
    Pick,
    PickMode,
    Record,
    Refresh,
    Settings,
)
from pendula.playback.settings import (
    BUFFER_MOST,
    DAYS,
    DEFAULTS,
    PART_NAME_MOST,
    PARTS_MOST,
    POOL_MOST,
    TIME,
    checked,
    exact,
)

T = TypeVar("T")

SETTINGS = (
    "exposure",
    "pick",
    "history",
    "lookahead",
    "nae",
    "preserve_history",
    "refresh",
    "zone",
    "day_parts",
)
SIGNED_64 = (-(1 << 63), (1 << 63) - 1)


def settings_of(it: Members, present: Settings, names: tuple[str, ...]) -> Settings:
    settings = Settings(
        exposure=_exposure(it["exposure"], present.exposure, names),
        pick=_pick(it["pick"], present.pick),
        history=it["history"].integer(min=1, max=BUFFER_MOST, default=present.history),
        lookahead=it["lookahead"].integer(min=1, max=BUFFER_MOST, default=present.lookahead),
        nae=_nae(it["nae"], present.nae),
        preserve_history=it["preserve_history"].boolean(default=present.preserve_history),
        refresh=it["refresh"].choice(Refresh, default=present.refresh),
        zone=it["zone"].parsed(_zone, stand_in="UTC", default=present.zone),
        day_parts=it["day_parts"].list_of(lambda at: _day_part(at, names), max=PARTS_MOST, default=present.day_parts),
    )
    try:
        return checked(settings)
    except InputRefused as refused:
        # Each number is in its range; what remains is p_min above p_max, and two day parts with one name.
        it["day_parts" if "day_parts" in refused.message else "exposure"].refuse(refused.message, code=refused.code)
        return present


def _exposure(at: Cursor, present: Exposure, names: tuple[str, ...]) -> Exposure:
    if not at.given:
        return present
    it = at.object(optional=("mode", "manual_weights", "total_count", "recent_count", "alpha", "p_min", "p_max"))
    return Exposure(
        mode=it["mode"].choice(Mode, default=present.mode),
        manual_weights=_by_channel(it["manual_weights"], _weight, present.manual_weights, names),
        total_count=_by_channel(it["total_count"], _count, present.total_count, names),
        recent_count=_by_channel(it["recent_count"], _count, present.recent_count, names),
        alpha=it["alpha"].decimal(min=0, max=1, default=present.alpha),
        p_min=it["p_min"].decimal(min=0, max=1, default=present.p_min),
        p_max=it["p_max"].decimal(min=0, max=1, default=present.p_max),
    )


def _by_channel(
    at: Cursor, read: Callable[[Cursor], T], present: Mapping[str, T], names: tuple[str, ...]
) -> Mapping[str, T]:
    def known(key: Cursor) -> None:
        name = key.any()
        if isinstance(name, str) and name not in names:
            key.refuse(f"unknown channel {name!r}{suggestion(name, names)}", code="unknown_channel", allowed=names)

    found: Mapping[str, T] = at.map_of(read, key=known, default={})
    return {**present, **found}


def _weight(at: Cursor) -> Decimal:
    number = at.decimal()
    if exact(number) is None:
        at.refuse("the weight has too many digits", code="invalid_weight")
        return Decimal(0)
    return number


def _count(at: Cursor) -> int:
    return at.integer(min=0, max=SIGNED_64[1])


def _pick(at: Cursor, present: Pick) -> Pick:
    if not at.given:
        return present
    it = at.object(optional=("mode", "r"))
    mode = it["mode"].choice(PickMode, default=present.mode)
    return Pick(mode, it["r"].integer(min=1, max=RECORDS_MOST, default=present.r))


def _nae(at: Cursor, present: Nae) -> Nae:
    if not at.given:
        return present
    it = at.object(optional=("enabled", "cap"))
    enabled = it["enabled"].boolean(default=present.enabled)
    return Nae(enabled, it["cap"].integer(min=1, max=POOL_MOST, default=present.cap))


def _zone(name: str) -> str:
    try:
        check_zone(name)
    except UnknownZone as refused:
        raise InputRefused(refused.message) from None
    return name


def _day_part(at: Cursor, names: tuple[str, ...]) -> DayPart:
    it = at.object(required=("name", "start", "end", "weights"), optional=("days",))
    return DayPart(
        name=it["name"].text(min=1, max=PART_NAME_MOST) or "?",
        start=it["start"].parsed(_time("23:59"), stand_in="00:00"),
        end=it["end"].parsed(_time("24:00"), stand_in="24:00"),
        weights=_by_channel(it["weights"], _weight, {}, names),
        days=it["days"].list_of(_day, max=len(DAYS), default=()),
    )


def _time(most: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if TIME.fullmatch(text) is None or text > most:
            raise InputRefused(f"{text!r} is not a time of day from 00:00 to {most}")
        return text

    return read


def _day(at: Cursor) -> str:
    day = at.text()
    if day not in DAYS:
        at.refuse(f"{day!r} is not a day{suggestion(day, DAYS)}", code="invalid_enum", allowed=DAYS)
        return DAYS[0]
    return day


COUNT_MOST = 10_000_000
RECORD_FIELDS = ("id", "ts", "payload", "kind", "format", "flags", "dwell_ms", "modified_ts", "storage_key")
UNSIGNED = {"kind": 8, "format": 8, "flags": 16, "dwell_ms": 32, "modified_ts": 32}


class ChannelSpec(Struct, frozen=True):
    """A channel of the file: its records, or the path of its cache or folder."""

    id: str
    records: tuple[Record, ...] | None = None
    cache: str | None = None
    folder: str | None = None


class Next(Struct, frozen=True, tag="next"):
    n: int = 1


class Prev(Struct, frozen=True, tag="prev"):
    n: int = 1


class Peek(Struct, frozen=True, tag="peek"):
    n: int = 1


class NaeInsert(Struct, frozen=True, tag="nae_insert"):
    """`record` is empty bytes, which are rejected, if the file has an invalid one."""

    record: Record | bytes


class Reset(Struct, frozen=True, tag="reset"):
    reason: str = "asked for"


class Set(Struct, frozen=True, tag="set"):
    """`settings` are all settings after the change."""

    settings: Settings


class ShowNext(Struct, frozen=True, tag="show_next"):
    record: Record


class PauseChannel(Struct, frozen=True, tag="pause_channel"):
    channel: str


class ResumeChannel(Struct, frozen=True, tag="resume_channel"):
    channel: str


class BanArtwork(Struct, frozen=True, tag="ban_artwork"):
    id: int


class Lift(Struct, frozen=True, tag="lift"):
    id: int


class ClockIs(Struct, frozen=True, tag="clock"):
    """Set the clock: milliseconds since 1970."""

    utc_ms: int


ViewerCall: TypeAlias = ShowNext | PauseChannel | ResumeChannel | BanArtwork | Lift | ClockIs
Call: TypeAlias = Next | Prev | Peek | NaeInsert | Reset | Set | ViewerCall


class Spec(Struct, frozen=True):
    """The contents of a file. `seed` and `calls` are None if the file has none."""

    channels: tuple[ChannelSpec, ...]
    settings: Settings
    seed: int | None = None
    calls: tuple[Call, ...] | None = None


def read_spec(document: Document) -> Spec:
    """The spec of a file; raises `DocumentRefused` with every fault."""
    return document.read(_spec)


def _spec(root: Cursor) -> Spec:
    it = root.object(required=("channels",), optional=("seed", "calls", *SETTINGS))
    channels = it["channels"].list_of(_channels(), max=CHANNELS_MOST)
    names = tuple(channel.id for channel in channels)
    settings = settings_of(it, DEFAULTS, names)
    calls = _calls(it["calls"], settings, names) if it["calls"].unless_null().given else None
    return Spec(channels, settings, it["seed"].unless_null().integer(min=0, max=MASK_64, default=None), calls)


def read_records(document: Document) -> tuple[Record, ...]:
    """The records of a document that is a list of them; raises `DocumentRefused` with every fault."""
    return document.read(lambda root: root.list_of(_records(), max=RECORDS_MOST))


def _channels() -> Callable[[Cursor], ChannelSpec]:
    """A reader of channels; a repeated id is a fault at its second place."""
    seen: set[str] = set()

    def read(at: Cursor) -> ChannelSpec:
        channel = _channel(at)
        if channel.id and channel.id in seen:
            at.object(optional=("id",), unknown="keep")["id"].refuse(
                f"channel {channel.id!r} appears twice", code="channel_taken"
            )
        seen.add(channel.id)
        return channel

    return read


def _records() -> Callable[[Cursor], Record]:
    """A reader of records; a repeated id is a fault at its second place."""
    seen: set[int] = set()

    def read(at: Cursor) -> Record:
        record = _record(at)
        if record.id in seen and at.is_object:
            id = at.object(optional=("id",), unknown="keep")["id"]
            # An invalid id is read as 0, which is not a repeated 0.
            if type(id.any()) is int and id.any() == record.id:
                id.refuse(f"the id {record.id} appears twice; ids are unique within a channel", code="not_unique")
        seen.add(record.id)
        return record

    return read


def _channel(at: Cursor) -> ChannelSpec:
    it = at.object(required=("id",), optional=("records", "cache", "folder"))
    name = it["id"].text(min=1, max=NAME_MOST)
    given = [source for source in ("records", "cache", "folder") if source in it]
    if at.is_object and len(given) != 1:
        found = " and ".join(given) or "nothing"
        at.refuse(
            f"a channel has one of records, cache and folder; found {found}",
            allowed=("records", "cache", "folder"),
        )
    records = it["records"].list_of(_records(), max=RECORDS_MOST, default=None)
    cache = it["cache"].text(min=1, default=None)
    return ChannelSpec(name, records, cache, it["folder"].text(min=1, default=None))


def _record(at: Cursor) -> Record:
    it = at.object(required=("id", "ts"), optional=RECORD_FIELDS[2:])
    record = Record(
        id=it["id"].integer(min=0, max=MASK_64),
        ts=it["ts"].integer(min=SIGNED_64[0], max=SIGNED_64[1]),
        payload=it["payload"].parsed(_bytes_of(PAYLOAD_BYTES), stand_in=b"", default=bytes(PAYLOAD_BYTES)),
        storage_key=it["storage_key"].parsed(_bytes_of(KEY_BYTES), stand_in=b"", default=bytes(KEY_BYTES)),
    )
    numbers = {name: it[name].integer(min=0, max=(1 << bits) - 1, default=0) for name, bits in UNSIGNED.items()}
    return msgspec.structs.replace(record, **numbers)


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


def _calls(at: Cursor, settings: Settings, names: tuple[str, ...]) -> tuple[Call, ...]:
    """The calls in order; a `set` changes the settings of the calls before it."""
    present = settings

    def read(one: Cursor) -> Call:
        nonlocal present
        call = _call(one, present, names)
        if isinstance(call, Set):
            present = call.settings
        return call

    return at.list_of(read)


VIEWER_CALLS = ("show_next", "pause_channel", "resume_channel", "ban_artwork", "lift", "clock")
NAMES = ("next", "prev", "peek", "nae_insert", "reset", "set", *VIEWER_CALLS)


def _call(at: Cursor, settings: Settings, names: tuple[str, ...]) -> Call:
    name = at.any()
    if isinstance(name, str):
        match name:
            case "next":
                return Next()
            case "prev":
                return Prev()
            case "peek":
                return Peek()
            case "reset":
                return Reset()
        at.refuse(f"{name!r} is not a call{suggestion(name, NAMES)}", allowed=NAMES)
        return Next()
    it = at.object(optional=NAMES)
    given = [name for name in NAMES if name in it]
    if len(given) != 1:
        if at.is_object and not it.extra:
            at.refuse(f"a call has one member, its name; found {len(given)}", allowed=NAMES)
        return Next()
    member = it[given[0]]
    match given[0]:
        case "next":
            return Next(_times(member))
        case "prev":
            return Prev(_times(member))
        case "peek":
            return Peek(_times(member))
        case "nae_insert":
            return NaeInsert(_new_artwork(member))
        case "reset":
            return Reset(member.text(max=NAME_MOST))
        case "set":
            return Set(settings_of(member.object(optional=SETTINGS), settings, names))
    return _viewer_call(given[0], member, names)


def _viewer_call(name: str, at: Cursor, names: tuple[str, ...]) -> Call:
    match name:
        case "show_next":
            return ShowNext(_record(at))
        case "pause_channel":
            return PauseChannel(_followed(at, names))
        case "resume_channel":
            return ResumeChannel(_followed(at, names))
        case "ban_artwork":
            return BanArtwork(at.integer(min=0, max=MASK_64))
        case "lift":
            return Lift(at.integer(min=0, max=MASK_64))
    return ClockIs(at.parsed(_moment, stand_in=0))


def _followed(at: Cursor, names: tuple[str, ...]) -> str:
    name = at.text(min=1, max=NAME_MOST)
    if name and name not in names:
        at.refuse(f"unknown channel {name!r}{suggestion(name, names)}", code="unknown_channel", allowed=names)
    return name


def _moment(text: str) -> int:
    """Milliseconds since 1970 of a time such as `2026-03-29T01:00:00Z`."""
    return parse_utc(text) // 1000


def _times(at: Cursor) -> int:
    return at.unless_null().integer(min=0, max=COUNT_MOST, default=1)


def _new_artwork(at: Cursor) -> Record | bytes:
    """A record, or empty bytes for an invalid one: the scheduler rejects it, it is not a fault of the file."""
    it = at.object(optional=RECORD_FIELDS)
    fields: dict[str, Any] = {name: it[name].any() for name in RECORD_FIELDS if name in it}
    if "id" not in fields:
        return b""
    fields.setdefault("ts", 0)
    try:
        for name, size in (("payload", PAYLOAD_BYTES), ("storage_key", KEY_BYTES)):
            if name in fields:
                fields[name] = _bytes_of(size)(fields[name]) if isinstance(fields[name], str) else None
        record = Record(**fields)
        pack(record)
    except InputRefused:
        return b""
    return record
