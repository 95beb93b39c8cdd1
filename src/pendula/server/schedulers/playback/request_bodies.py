"""Request bodies of the scheduler `playback`."""

from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.playback import messages
from pendula.playback.model import CHANNELS_MOST
from pendula.playback.settings import Mode, PickMode, Refresh
from pendula.server.api.engines import LARGEST_N
from pendula.server.data_directory import NAME

# The reader checks the name with a message of its own. The lookahead excludes the line break that `$` allows.
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
    """A day part and its weights: from `start` to before `end`, HH:MM, on the days on which it begins."""

    name: str
    start: str
    end: str
    weights: dict[str, Number]
    days: list[str] = []


class SettingsForm(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings; omitted members stay as they are."""

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
    """A player: name, channels of the library in their order, seed (default random) and settings."""

    name: NewName
    channels: Names = []
    seed: int | None = None
    settings: SettingsForm = SettingsForm()
    dwell_ms: int = messages.DWELL_MS


class SettingsChange(SettingsForm, frozen=True, forbid_unknown_fields=True):
    """Settings to change. All but `dwell_ms`, the default dwell time of items, begin a new epoch."""

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
    """Records for a channel, merged by id; the newest `k` are kept, by default as many as before.

    `complete` means that other records are removed. `total_count` and `recent_count` are for proportional exposure; by
    default the records are counted.
    """

    records: list[RecordForm]
    complete: bool = False
    k: int | None = None
    total_count: Count | None = None
    recent_count: Count = 0


class BanRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Hide an item, by ordinal or the current one, until its channel is refreshed.

    With `id`, ban that artwork in all channels, for `for_ms` milliseconds or until the ban is lifted.
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
    """The given members, with exact numbers."""
    members: dict[str, Any] = msgspec.to_builtins(form, builtin_types=(Decimal,))
    return members
