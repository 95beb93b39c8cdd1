"""Request bodies of the scheduler `playback`; settings that are left out stay as they are."""

from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.playback import events
from pendula.playback.model import CHANNELS_MOST, Mode, PickMode, Refresh
from pendula.server.data_directory import NAME
from pendula.server.routes.engine import LARGEST_N

# Whoever reads it checks it, in words; the second part keeps the line break out that `$` lets through.
NewName = Annotated[str, Meta(extra_json_schema={"pattern": rf"^{NAME.pattern}(?!\n)$"})]
Count = Annotated[int, Meta(ge=0, le=LARGEST_N)]
Ordinal = Annotated[int, Meta(ge=0, le=LARGEST_N)]
ArtworkId = Annotated[int, Meta(ge=0, extra_json_schema={"format": "uint64"})]
Names = Annotated[list[str], Meta(max_length=CHANNELS_MOST)]
Number = Annotated[Any, Meta(extra_json_schema={"type": "number"})]


class ExposureForm(Struct, frozen=True, forbid_unknown_fields=True):
    mode: Mode | UnsetType = UNSET
    manual_weights: dict[str, Number] | UnsetType = UNSET
    total_count: dict[str, int] | UnsetType = UNSET
    recent_count: dict[str, int] | UnsetType = UNSET
    alpha: Number = UNSET
    p_min: Number = UNSET
    p_max: Number = UNSET


class PickForm(Struct, frozen=True, forbid_unknown_fields=True):
    mode: PickMode | UnsetType = UNSET
    r: int | UnsetType = UNSET


class NaeForm(Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool | UnsetType = UNSET
    cap: int | UnsetType = UNSET


class DayPartForm(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the day and the weights that hold in it: from `start` to before `end`, HH:MM, on days that begin so."""

    name: str
    start: str
    end: str
    weights: dict[str, Number]
    days: list[str] = []


class SettingsForm(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings; what is left out stays as it is."""

    exposure: ExposureForm | UnsetType = UNSET
    pick: PickForm | UnsetType = UNSET
    history: int | UnsetType = UNSET
    lookahead: int | UnsetType = UNSET
    nae: NaeForm | UnsetType = UNSET
    preserve_history: bool | UnsetType = UNSET
    refresh: Refresh | UnsetType = UNSET
    zone: str | UnsetType = UNSET
    day_parts: list[DayPartForm] | UnsetType = UNSET


class NewPlayer(Struct, frozen=True, forbid_unknown_fields=True):
    """A player: its name, the channels of the library that it follows, in their order; a seed, unless by lot."""

    name: NewName
    channels: Names = []
    seed: int | None = None
    settings: SettingsForm = SettingsForm()
    dwell_ms: int = events.DWELL_MS


class SettingsChange(SettingsForm, frozen=True, forbid_unknown_fields=True):
    """Settings to change; all but `dwell_ms`, how long an item stays that does not say so itself, begin a new epoch."""

    dwell_ms: int | None = None


class ChannelNames(Struct, frozen=True, forbid_unknown_fields=True):
    channels: Names


class RecordForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One artwork. Times are Unix seconds; `storage_key` and `payload` are base64, of 16 and 32 bytes."""

    id: int
    ts: int
    kind: int = 0
    format: int = 0
    flags: int = 0
    dwell_ms: int = 0
    modified_ts: int = 0
    storage_key: str | None = None
    payload: str | None = None


class Artwork(RecordForm, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new artwork. `storage_key` and `payload` are base64, of 16 and 32 bytes."""

    ts: int = 0


class Upload(Struct, frozen=True, forbid_unknown_fields=True):
    """Records for a channel, merged by id with those it has; the newest `k` are kept, by default as many as before.

    `complete` says that these are all, so that others go. `total_count` and `recent_count` are for proportional
    exposure; without them, the records are counted.
    """

    records: list[RecordForm]
    complete: bool = False
    k: int | None = None
    total_count: Count | None = None
    recent_count: Count = 0


class BanRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be shown no more until its channel is refreshed: an item by its number, without one what is on.

    With an `id`, the artwork of that id, from whatever channel, for `for_ms` milliseconds or until it is lifted.
    """

    ordinal: Ordinal | None = None
    id: ArtworkId | None = None
    for_ms: Count | None = None


class ArtworkReference(Struct, frozen=True, forbid_unknown_fields=True):
    id: ArtworkId


class ChannelReference(Struct, frozen=True, forbid_unknown_fields=True):
    channel: str


class ResetRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a new epoch begins."""

    reason: Annotated[str, Meta(min_length=1, max_length=256)]


def given(form: SettingsForm) -> dict[str, Any]:
    """The members that were given, numbers exact."""
    members: dict[str, Any] = msgspec.to_builtins(form, builtin_types=(Decimal,))
    return members
