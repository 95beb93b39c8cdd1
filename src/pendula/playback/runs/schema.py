"""The JSON Schema of a playback file, for editors and other programs, with the limits of the reader.

Faults that no schema can express (repeated ids, weights of unknown channels, missing files) are found by `loading` and
`opening`.
"""

from collections.abc import Mapping
from typing import Any

from pendula.playback.model import (
    CHANNELS_MOST,
    KEY_BYTES,
    MASK_64,
    NAME_MOST,
    PAYLOAD_BYTES,
    RECORDS_MOST,
    Exposure,
    Mode,
    Nae,
    Pick,
    PickMode,
    Refresh,
)
from pendula.playback.runs.loading import COUNT_MOST, NAMES, SETTINGS, SIGNED_64, UNSIGNED
from pendula.playback.settings import BUFFER_MOST, DAYS, DEFAULTS, PART_NAME_MOST, PARTS_MOST, POOL_MOST, TIME

DRAFT = "https://json-schema.org/draft/2020-12/schema"

DESCRIPTIONS = {
    "seed": "Random seed; without it every run is different.",
    "channels": "The followed channels, in order.",
    "exposure": "The share of each channel: equal, manual or proportional.",
    "pick": "How the next record of a channel is picked: from the newest to the oldest, or any of the newest r.",
    "history": "How many items `prev` can go back.",
    "lookahead": "How many items are generated ahead, at least.",
    "nae": "New artwork events: whether they are accepted, and the size of the pool.",
    "preserve_history": "Whether the history survives a reset.",
    "refresh": "Whether a change restarts the round robin or keeps it.",
    "zone": "The IANA time zone of the day parts.",
    "day_parts": "Weights by time of day and weekday, in place of the exposure; the first part that applies is used.",
    "calls": "Calls, in order; without it, --count gives the number of items.",
}


def file_schema() -> dict[str, Any]:
    """The schema as plain JSON values in a fixed order; a new copy each time."""
    settings = _settings()
    sections = {
        "seed": {"type": ["integer", "null"], "minimum": 0, "maximum": MASK_64},
        "channels": {"type": "array", "items": _ref("Channel"), "maxItems": CHANNELS_MOST},
        **settings,
        "calls": {"type": ["array", "null"], "items": _ref("Call")},
    }
    return {
        "$schema": DRAFT,
        "title": "A file of channels",
        "description": "What `pendula playback run` reads, as YAML or JSON.",
        "type": "object",
        "required": ["channels"],
        "properties": {name: {"description": DESCRIPTIONS[name], **form} for name, form in sections.items()},
        "additionalProperties": False,
        "$defs": {
            "Call": _call(),
            "Channel": _channel(),
            "DayPart": _day_part(),
            "NewArtwork": _object({name: {} for name in _record_members()}),
            "Record": _object(_record_members(), required=("id", "ts")),
            "Settings": _object(settings),
        },
    }


def _settings() -> dict[str, dict[str, Any]]:
    forms = {
        "exposure": _exposure(),
        "pick": _object(
            {"mode": _choice(PickMode, Pick().mode), "r": {**_integer(1, RECORDS_MOST), "default": Pick().r}}
        ),
        "history": {**_integer(1, BUFFER_MOST), "default": DEFAULTS.history},
        "lookahead": {**_integer(1, BUFFER_MOST), "default": DEFAULTS.lookahead},
        "nae": _object(
            {
                "enabled": {"type": "boolean", "default": Nae().enabled},
                "cap": {**_integer(1, POOL_MOST), "default": Nae().cap},
            }
        ),
        "preserve_history": {"type": "boolean", "default": DEFAULTS.preserve_history},
        "refresh": _choice(Refresh, DEFAULTS.refresh),
        "zone": {"type": "string", "minLength": 1, "default": DEFAULTS.zone},
        "day_parts": {"type": "array", "items": _ref("DayPart"), "maxItems": PARTS_MOST},
    }
    return {name: forms[name] for name in SETTINGS}


def _exposure() -> dict[str, Any]:
    counts = {"type": "object", "additionalProperties": _integer(0, SIGNED_64[1])}
    share = {"type": "number", "minimum": 0, "maximum": 1}
    above_nothing = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    return _object(
        {
            "mode": _choice(Mode, Exposure().mode),
            "manual_weights": {"type": "object", "additionalProperties": {"type": "number"}},
            "total_count": counts,
            "recent_count": counts,
            "alpha": {**share, "description": f"{Exposure().alpha} unless given."},
            "p_min": {**above_nothing, "description": f"{Exposure().p_min} unless given."},
            "p_max": {**above_nothing, "description": f"{Exposure().p_max} unless given."},
        }
    )


def _day_part() -> dict[str, Any]:
    time = {"type": "string", "pattern": f"^(?:{TIME.pattern})$"}
    return _object(
        {
            "name": {"type": "string", "minLength": 1, "maxLength": PART_NAME_MOST},
            "start": {**time, "not": {"const": "24:00"}, "description": "The first minute, local time in the zone."},
            "end": {**time, "description": "The first minute after the part; on the next day if not after start."},
            "weights": {"type": "object", "additionalProperties": {"type": "number"}},
            "days": {"type": "array", "items": {"enum": list(DAYS)}, "maxItems": len(DAYS)},
        },
        required=("name", "start", "end", "weights"),
    )


def _channel() -> dict[str, Any]:
    text = {"type": "string", "minLength": 1}
    sources: dict[str, Any] = {
        "records": {"type": "array", "items": _ref("Record"), "maxItems": RECORDS_MOST},
        "cache": {**text, "description": "A cache file, relative to this file."},
        "folder": {**text, "description": "A folder of media, relative to this file."},
    }
    channel = _object({"id": {**text, "maxLength": NAME_MOST}, **sources}, required=("id",))
    return {**channel, "oneOf": [{"required": [name]} for name in sources]}


def _record_members() -> dict[str, Any]:
    return {
        "id": _integer(0, MASK_64),
        "ts": _integer(*SIGNED_64),
        "payload": _base64(PAYLOAD_BYTES),
        **{name: _integer(0, (1 << bits) - 1) for name, bits in UNSIGNED.items()},
        "storage_key": _base64(KEY_BYTES),
    }


def _call() -> dict[str, Any]:
    times = {"type": ["integer", "null"], "minimum": 0, "maximum": COUNT_MOST}
    forms: dict[str, dict[str, Any]] = {
        "next": times,
        "prev": times,
        "peek": times,
        # An invalid artwork is answered with REJECTED; it is not a fault of the file.
        "nae_insert": _ref("NewArtwork"),
        "reset": {"type": "string", "maxLength": NAME_MOST},
        "set": _ref("Settings"),
        "show_next": _ref("Record"),
        "pause_channel": {"type": "string", "minLength": 1, "maxLength": NAME_MOST},
        "resume_channel": {"type": "string", "minLength": 1, "maxLength": NAME_MOST},
        "ban_artwork": _integer(0, MASK_64),
        "lift": _integer(0, MASK_64),
        "clock": {"type": "string", "format": "date-time"},
    }
    members = {name: forms[name] for name in NAMES}
    named = {**_object(members), "minProperties": 1, "maxProperties": 1}
    return {"anyOf": [{"enum": ["next", "prev", "peek", "reset"]}, named]}


def _base64(size: int) -> dict[str, Any]:
    length = 4 * -(-size // 3)
    form = {"type": "string", "contentEncoding": "base64", "minLength": length, "maxLength": length}
    return {**form, "pattern": "^[A-Za-z0-9+/]+={0,2}$", "description": f"{size} bytes."}


def _integer(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _choice(kind: type[Mode] | type[PickMode] | type[Refresh], default: str) -> dict[str, Any]:
    return {"enum": [member.value for member in kind], "default": str(default)}


def _object(members: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "object", "properties": dict(members), "additionalProperties": False}
    return {**form, "required": list(required)} if required else form


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}
