"""Read a playback file and its settings; all faults are collected, each with its place. Its JSON Schema.

Faults that no schema can express are repeated ids and weights of unknown channels; missing files are found by
`opening`.
"""

from typing import Annotated, Any, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.documents import Cursor, Document, Members, from_value
from pendula.documents.schema import components, schema_of
from pendula.documents.typed import NULL_IS_ABSENT, Parse, Read, Unique, limits, read, read_at, reader_of, written
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import parse_utc
from pendula.kernel.wording import suggestion
from pendula.playback.clocks import UnknownZone, check_zone
from pendula.playback.messages import BanArtwork, Lift, PauseChannel, ResumeChannel
from pendula.playback.model import CHANNELS_MOST, NAME_MOST, RECORDS_MOST, Record
from pendula.playback.settings import DEFAULTS, Settings, checked

COUNT_MOST = 10_000_000

Records = Annotated[tuple[Record, ...], limits(maxItems=RECORDS_MOST), Unique("id", noun="id")]
Path = Annotated[str, limits(minLength=1)]
Name = Annotated[str, limits(minLength=1, maxLength=NAME_MOST)]
Times = Annotated[
    int,
    NULL_IS_ABSENT,
    limits(minimum=0, maximum=COUNT_MOST),
    written(type=["integer", "null"], minimum=0, maximum=COUNT_MOST),
]


class ChannelSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A channel of the file: its records, or the path of its cache or folder, relative to the file."""

    id: Name
    records: Records | UnsetType = UNSET
    cache: Annotated[Path, Meta(description="A cache file, relative to this file.")] | UnsetType = UNSET
    folder: Annotated[Path, Meta(description="A folder of media, relative to this file.")] | UnsetType = UNSET

    def check(self, at: Members) -> None:
        given = [source for source in SOURCES if source in at]
        if len(given) != 1:
            found = " and ".join(given) or "nothing"
            at.owner.refuse(f"a channel has one of records, cache and folder; found {found}", allowed=SOURCES)
        seen = at.owner.context.seen
        if at.sound("id") and self.id in seen:
            at["id"].refuse(f"channel {self.id!r} appears twice", code="channel_taken")
        seen.add(self.id)


SOURCES = ("records", "cache", "folder")


def _new_artwork(at: Cursor) -> Record | bytes:
    """A record, or empty bytes for an invalid one: the scheduler rejects it, it is not a fault of the file."""
    members = at.object(optional=Record.__struct_fields__)
    given = {name: members[name].any() for name in Record.__struct_fields__ if name in members}
    try:
        return read(from_value({"ts": 0, **given}), Record)
    except InputRefused:
        return b""


def _changed_settings(at: Cursor) -> Settings:
    """All settings after a `set`, which changes the settings of the calls before it."""
    context: Context = at.context
    context.present = _checked(read_at(at, Settings, present=context.present), at, context.present)
    return context.present


def _moment(text: str) -> int:
    """Milliseconds since 1970 of a time such as `2026-03-29T01:00:00Z`."""
    return parse_utc(text) // 1000


class Next(Struct, frozen=True, tag="next"):
    n: Times = 1


class Prev(Struct, frozen=True, tag="prev"):
    n: Times = 1


class Peek(Struct, frozen=True, tag="peek"):
    n: Times = 1


class NaeInsert(Struct, frozen=True, tag="nae_insert"):
    """`record` is empty bytes, which are rejected, if the file has an invalid one."""

    record: Annotated[
        Record | bytes,
        Read(_new_artwork, b""),
        written(type="object", properties={name: {} for name in Record.__struct_fields__}, additionalProperties=False),
    ]


class Reset(Struct, frozen=True, tag="reset"):
    reason: Annotated[str, limits(maxLength=NAME_MOST)] = "asked for"


class Set(Struct, frozen=True, tag="set"):
    """`settings` are all settings after the change."""

    settings: Annotated[Settings, Read(_changed_settings, DEFAULTS)]


class ShowNext(Struct, frozen=True, tag="show_next"):
    record: Record


class ClockIs(Struct, frozen=True, tag="clock"):
    """Set the clock: milliseconds since 1970."""

    utc_ms: Annotated[int, Parse(_moment, 0), written(type="string", format="date-time")]


# The commands of a player have the members of these calls, but for what only documents say of them.
ViewerCall: TypeAlias = ShowNext | PauseChannel | ResumeChannel | BanArtwork | Lift | ClockIs
Call: TypeAlias = Next | Prev | Peek | NaeInsert | Reset | Set | ViewerCall

# A call is an object of one member: its name, with the first field of its struct as the value.
CALLS: dict[str, type[Struct]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Call)}
NAMES = tuple(CALLS)
ALONE = ("next", "prev", "peek", "reset")  # names that are calls without a value


def _read_call(at: Cursor) -> Call:
    word = at.any()
    if isinstance(word, str):
        if word not in ALONE:
            at.refuse(f"{word!r} is not a call{suggestion(word, NAMES)}", allowed=NAMES)
            return Next()
        return CALLS[word]()  # type: ignore[return-value]
    members = at.object(optional=NAMES)
    given = [name for name in NAMES if name in members]
    if len(given) != 1:
        if at.is_object and not members.extra:
            at.refuse(f"a call has one member, its name; found {len(given)}", allowed=NAMES)
        return Next()
    kind = CALLS[given[0]]
    field = msgspec.structs.fields(kind)[0]
    # The value of `next:` in YAML is null, which counts as absent.
    return kind(reader_of(field.type)(members[given[0]], 1))  # type: ignore[return-value]


Calls = tuple[Annotated[Call, Read(_read_call, Next())], ...]


class Context(Struct):
    """What the readers of a file know beside the value, and what they make of several members."""

    names: tuple[str, ...]
    settings: Settings = DEFAULTS
    present: Settings = DEFAULTS  # before the next call
    calls: tuple[Call, ...] | None = None
    seen: set[str] = set()


class PlaybackFile(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of a file: settings, and the channels that they are for."""

    seed: Annotated[
        Annotated[int, limits(minimum=0, maximum=(1 << 64) - 1)] | None,
        Meta(description="Random seed; without it every run is different."),
    ] = None
    channels: Annotated[
        tuple[ChannelSpec, ...],
        limits(maxItems=CHANNELS_MOST),
        Meta(description="The followed channels, in order."),
    ]
    calls: Annotated[
        Any,
        written(type=["array", "null"], items={"$ref": "#/$defs/Call"}),
        Meta(description="Calls, in order; without it, --count gives the number of items."),
    ] = None

    def check(self, at: Members) -> None:
        """The calls come last, because they change the settings."""
        context: Context = at.owner.context
        settings = Settings(**{name: getattr(self, name) for name in Settings.__struct_fields__})
        context.settings = context.present = _checked(settings, at.owner, DEFAULTS)
        if at["calls"].unless_null().given:
            context.calls = reader_of(Calls)(at["calls"], ())


class Spec(Struct, frozen=True):
    """The contents of a file. `seed` and `calls` are None if the file has none."""

    channels: tuple[ChannelSpec, ...]
    settings: Settings
    seed: int | None = None
    calls: tuple[Call, ...] | None = None


def read_spec(document: Document) -> Spec:
    """The spec of a file; raises `DocumentRefused` with every fault."""
    context = Context(_names(document.value))
    form = read(document, PlaybackFile, context=context)
    return Spec(form.channels, context.settings, form.seed, context.calls)


def _names(value: Any) -> tuple[str, ...]:
    """The ids of the channels: the settings before them may have weights for each."""
    channels = value.get("channels") if isinstance(value, dict) else None
    ids = [one.get("id") for one in channels if isinstance(one, dict)] if isinstance(channels, list) else []
    return tuple(name for name in ids if isinstance(name, str))


def read_records(document: Document) -> tuple[Record, ...]:
    """The records of a document that is a list of them; raises `DocumentRefused` with every fault."""
    return document.read(lambda root: reader_of(Records)(root, ()))


def _checked(settings: Settings, at: Cursor, present: Settings) -> Settings:
    """The settings with exact numbers; what concerns several members is noted at the object of settings."""
    if not at.is_object:
        return present
    given = at.object(optional=Settings.__struct_fields__, unknown="keep")
    try:
        if "zone" in given and given["zone"].is_text:
            check_zone(settings.zone)
    except UnknownZone as refused:
        given["zone"].refuse(refused.message, code=InputRefused.code)
        settings = msgspec.structs.replace(settings, zone=present.zone)
    try:
        return checked(settings)
    except InputRefused as refused:
        # Each number is in its range; what remains is p_min above p_max, and two day parts with one name.
        given["day_parts" if "day_parts" in refused.message else "exposure"].refuse(refused.message, code=refused.code)
        return present


def file_schema() -> dict[str, Any]:
    """The JSON Schema of a file, as plain JSON values in a fixed order; a new copy each time."""
    schema = schema_of(
        PlaybackFile, title="A file of channels", description="What `pendula playback run` reads, as YAML or JSON."
    )
    forms = [msgspec.structs.fields(kind)[0].type for kind in CALLS.values()]
    members, definitions = components(forms)
    call = {
        "type": "object",
        "properties": dict(zip(NAMES, members, strict=True)),
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    definitions = {**schema["$defs"], **definitions, "Call": {"anyOf": [{"enum": list(ALONE)}, call]}}
    definitions["ChannelSpec"]["oneOf"] = [{"required": [name]} for name in SOURCES]
    return {**schema, "$defs": {name: definitions[name] for name in sorted(definitions)}}
