"""Settings: their form, validation and partial changes.

A given member replaces that member, the others stay. Numbers are read by their decimal text, never as floats.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from re import compile
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from pendula.documents import Cursor
from pendula.documents.typed import MERGED, Parse, Read, limits, written
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import split_place, suggestion
from pendula.playback.model import (
    NAME_MOST,
    RECORDS_MOST,
    InvalidParameter,
    InvalidWeight,
    invalid_parameter,
    refused,
    short_repr,
)

BUFFER_MOST = 1024  # of history and lookahead
POOL_MOST = 64
DIGITS_MOST = 30  # of a weight or fraction, before and after the point
COUNT_MOST = (1 << 63) - 1
PARTS_MOST = 32
PART_NAME_MOST = 64
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
TIME = compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00")
ZONE = compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){0,2}")


def followed_channel(at: Cursor) -> str:
    """The id of a channel; if the reader of the document gave the followed channels as context, one of them."""
    name = at.text(min=1, max=NAME_MOST)
    if name and at.context is not None and name not in at.context.names:
        names = tuple(at.context.names)
        at.refuse(f"unknown channel {name!r}{suggestion(name, names)}", code="unknown_channel", allowed=names)
    return name


def _read_weight(at: Cursor) -> Decimal:
    number = at.decimal()
    if exact(number) is None:
        at.refuse("the weight has too many digits", code="invalid_weight")
        return Decimal(0)
    return number


def _name_of_part(at: Cursor) -> str:
    # The stand-in is a valid name: a fault is noted once.
    return at.text(min=1, max=PART_NAME_MOST) or "?"


def _time_of_day(text: str) -> str:
    if TIME.fullmatch(text) is None:
        raise InputRefused(f"{text!r} is not a time of day from 00:00 to 24:00")
    return text


def _start_of_part(text: str) -> str:
    if TIME.fullmatch(text) is None or text == "24:00":
        raise InputRefused(f"{text!r} is not a time of day from 00:00 to 23:59")
    return text


# The limits are those of documents; `checked` has them for settings from programs and commands.
FollowedChannel = Annotated[str, Read(followed_channel, "")]
FollowedName = Annotated[FollowedChannel, limits(minLength=1, maxLength=NAME_MOST)]
Weight = Annotated[Decimal, Read(_read_weight, Decimal(0))]
Count = Annotated[int, limits(minimum=0, maximum=COUNT_MOST)]
Share = Annotated[Decimal, limits(minimum=0, maximum=1)]
PositiveShare = Annotated[Decimal, limits(minimum=0, exclusiveMinimum=0, maximum=1)]
BufferSize = Annotated[int, limits(minimum=1, maximum=BUFFER_MOST)]
Day = Annotated[str, Read(lambda at: at.one_of(DAYS, noun="a day"), DAYS[0]), written(enum=list(DAYS))]


class Mode(StrEnum):
    """Equal, manual or proportional exposure."""

    EQE = "EqE"
    MAE = "MaE"
    PRE = "PrE"


class PickMode(StrEnum):
    """From the newest to the oldest, repeatedly; or any of the newest `r`."""

    RECENCY = "recency"
    RANDOM = "random"


class Refresh(StrEnum):
    """Whether a material change restarts the round robin or keeps credits and cursors."""

    RESET = "reset"
    KEEP = "keep"


class Exposure(Struct, frozen=True, forbid_unknown_fields=True):
    """The mode and its numbers by channel id; a channel that is not named has 0."""

    mode: Mode = Mode.EQE
    manual_weights: Annotated[Mapping[FollowedChannel, Weight], MERGED] = {}
    total_count: Annotated[Mapping[FollowedChannel, Count], MERGED] = {}
    recent_count: Annotated[Mapping[FollowedChannel, Count], MERGED] = {}
    alpha: Share = Decimal("0.35")
    p_min: PositiveShare = Decimal("0.02")
    p_max: PositiveShare = Decimal("0.4")


class Pick(Struct, frozen=True, forbid_unknown_fields=True):
    """How the next record of a channel is picked; `r` is for random picks."""

    mode: PickMode = PickMode.RECENCY
    r: Annotated[int, limits(minimum=1, maximum=RECORDS_MOST)] = 64


class Nae(Struct, frozen=True, forbid_unknown_fields=True):
    """New artwork events: whether they are accepted, and the size of the pool."""

    enabled: bool = True
    cap: Annotated[int, limits(minimum=1, maximum=POOL_MOST)] = 32


class DayPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the day and its weights. `start` and `end` are `HH:MM`; `end` is exclusive, and on the next day if not
    after `start`. `days` are the days on which the part begins; empty means all."""

    name: Annotated[str, Read(_name_of_part, "?"), written(type="string", minLength=1, maxLength=PART_NAME_MOST)]
    start: Annotated[
        str,
        Parse(_start_of_part, "00:00"),
        written(type="string", pattern=f"^(?:{TIME.pattern})$", **{"not": {"const": "24:00"}}),
        Meta(description="The first minute, local time in the zone."),
    ]
    end: Annotated[
        str,
        Parse(_time_of_day, "24:00"),
        written(type="string", pattern=f"^(?:{TIME.pattern})$"),
        Meta(description="The first minute after the part; on the next day if not after start."),
    ]
    weights: Mapping[FollowedChannel, Weight]
    days: Annotated[tuple[Day, ...], limits(maxItems=len(DAYS))] = ()


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings; changing one is a material change."""

    exposure: Annotated[Exposure, Meta(description="The share of each channel: equal, manual or proportional.")] = (
        Exposure()
    )
    pick: Annotated[
        Pick,
        Meta(
            description="How the next record of a channel is picked: from the newest to the oldest, "
            "or any of the newest r."
        ),
    ] = Pick()
    history: Annotated[BufferSize, Meta(description="How many items `prev` can go back.")] = 32
    lookahead: Annotated[BufferSize, Meta(description="How many items are generated ahead, at least.")] = 32
    nae: Annotated[
        Nae, Meta(description="New artwork events: whether they are accepted, and the size of the pool.")
    ] = Nae()
    preserve_history: Annotated[bool, Meta(description="Whether the history survives a reset.")] = False
    refresh: Annotated[Refresh, Meta(description="Whether a change restarts the round robin or keeps it.")] = (
        Refresh.RESET
    )
    zone: Annotated[str, limits(minLength=1), Meta(description="The IANA time zone of the day parts.")] = "UTC"
    day_parts: Annotated[
        tuple[DayPart, ...],
        limits(maxItems=PARTS_MOST),
        Meta(
            description="Weights by time of day and weekday, in place of the exposure; "
            "the first part that applies is used."
        ),
    ] = ()


DEFAULTS = Settings()

UNKNOWN = compile(r"(?s)Object contains unknown field `(.*)`")
MISSING = compile(r"Object missing required field `([^`]*)`")
EXPECTED = compile(r"Expected `([^`]*)`")
STEPS = compile(r"\[[^\]]*\]|[^.\[\]]+")

E = TypeVar("E", bound=StrEnum)


def checked(settings: Settings) -> Settings:
    """The same with exact numbers; raises `InvalidParameter` and `InvalidWeight`."""
    spans = {
        "history": (settings.history, 1, BUFFER_MOST),
        "lookahead": (settings.lookahead, 1, BUFFER_MOST),
        "nae.cap": (settings.nae.cap, 1, POOL_MOST),
        "pick.r": (settings.pick.r, 1, RECORDS_MOST),
    }
    for name, (value, least, most) in spans.items():
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise invalid_parameter(name, value, least, most)
    for name, flag in (("nae.enabled", settings.nae.enabled), ("preserve_history", settings.preserve_history)):
        if not isinstance(flag, bool):
            raise invalid_parameter(name, flag, "bool")
    return msgspec.structs.replace(
        settings,
        exposure=checked_exposure(settings.exposure),
        pick=msgspec.structs.replace(settings.pick, mode=_known(PickMode, "pick.mode", settings.pick.mode)),
        refresh=_known(Refresh, "refresh", settings.refresh),
        zone=_zone(settings.zone),
        day_parts=_day_parts(settings.day_parts),
    )


def checked_exposure(exposure: Exposure) -> Exposure:
    """The same with every number exact; raises `InvalidWeight` and `InvalidParameter`."""
    weights = _weights(exposure.manual_weights)
    for field, counts in (("total_count", exposure.total_count), ("recent_count", exposure.recent_count)):
        for name, count in counts.items():
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COUNT_MOST:
                raise invalid_parameter(f"{field}.{name}", count, 0, COUNT_MOST)
    alpha, least, most = (_fraction(name, getattr(exposure, name)) for name in ("alpha", "p_min", "p_max"))
    if not 0 <= alpha <= 1:
        raise invalid_parameter("alpha", alpha, "share")
    if not 0 < least <= 1:
        raise invalid_parameter("p_min", least, "p_min")
    if not least <= most <= 1:
        raise invalid_parameter("p_max", most, "p_max")
    return msgspec.structs.replace(
        exposure,
        mode=_known(Mode, "mode", exposure.mode),
        manual_weights=weights,
        total_count={name: count for name, count in exposure.total_count.items() if count},
        recent_count={name: count for name, count in exposure.recent_count.items() if count},
        alpha=alpha,
        p_min=least,
        p_max=most,
    )


def _known(kind: type[E], name: str, value: object) -> E:
    try:
        return kind(value)  # type: ignore[arg-type]
    except ValueError:
        raise invalid_parameter(name, value, *(member.value for member in kind)) from None


def _weights(given: Mapping[str, object]) -> dict[str, Decimal]:
    weights = {name: _weight(name, value) for name, value in given.items()}
    # A channel that is not named has 0, so an explicit 0 is no change. Negative weights count as 0.
    return {name: weight for name, weight in weights.items() if weight > 0}


def _zone(name: object) -> str:
    """Checks only the form of the name; whether the zone exists is checked where a clock is."""
    if not isinstance(name, str) or ZONE.fullmatch(name) is None:
        raise invalid_parameter("zone", name, "iana_zone")
    return name


def _day_parts(parts: Sequence[DayPart]) -> tuple[DayPart, ...]:
    if isinstance(parts, str) or not isinstance(parts, Sequence) or len(parts) > PARTS_MOST:
        raise invalid_parameter("day_parts", parts, "day_parts")
    checked = tuple(_day_part(place, part) for place, part in enumerate(parts))
    for place, part in enumerate(checked):
        if part.name in {other.name for other in checked[:place]}:
            raise invalid_parameter(f"day_parts[{place}].name", part.name, "unique_name")
    return checked


def _day_part(place: int, part: DayPart) -> DayPart:
    at = f"day_parts[{place}]"
    if not isinstance(part, DayPart):
        raise invalid_parameter(at, part, "day_part")
    if not isinstance(part.name, str) or not 1 <= len(part.name) <= PART_NAME_MOST:
        raise invalid_parameter(f"{at}.name", part.name, "name_of_64")
    for name, most in (("start", "23:59"), ("end", "24:00")):
        value = getattr(part, name)
        if not isinstance(value, str) or TIME.fullmatch(value) is None or value > most:
            raise invalid_parameter(f"{at}.{name}", value, f"{name}_of_day_part")
    for day in part.days:
        if day not in DAYS:
            raise invalid_parameter(f"{at}.days", day, "days")
    days = tuple(day for day in DAYS if day in part.days)
    return msgspec.structs.replace(part, days=days if len(days) < len(DAYS) else (), weights=_weights(part.weights))


def _weight(name: str, value: object) -> Decimal:
    number = exact(value)
    if number is None:
        raise refused(InvalidWeight, channel=name, value=short_repr(value))
    return number


def _fraction(name: str, value: object) -> Decimal:
    number = exact(value)
    if number is None:
        raise invalid_parameter(name, value, "number_of_30_digits")
    return number


def exact(value: object) -> Decimal | None:
    """The number by its decimal text, so that 0.1 is a tenth; None if it is not a number, not finite or too long."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    if isinstance(value, int) and value.bit_length() > 4 * DIGITS_MOST:
        return None
    try:
        number = Decimal(str(value)) if not isinstance(value, Decimal) else value
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if len(digits) + max(exponent, 0) > DIGITS_MOST or -exponent > DIGITS_MOST:
        return None
    return _plain(sign, digits, exponent)


def _plain(sign: int, digits: tuple[int, ...], exponent: int) -> Decimal:
    """The canonical form, so that 0.50 equals 0.5; independent of the caller's decimal context."""
    length = len(digits)
    while length > 1 and digits[length - 1] == 0:
        length -= 1
    if digits[:length] == (0,):
        return Decimal(0)
    return Decimal((sign, digits[:length], exponent + len(digits) - length))


def _merge_values(there: Json, value: Json) -> Json:
    """Merge objects member by member; a null member is removed."""
    if not isinstance(there, Mapping) or not isinstance(value, Mapping):
        return value
    joined = {**there, **{name: _merge_values(there.get(name), one) for name, one in value.items()}}
    return {name: one for name, one in joined.items() if one is not None}


def merge_changes(settings: Settings, changes: Json) -> Settings:
    """The settings with these changes; raises `InvalidParameter` and `InvalidWeight`."""
    if not isinstance(changes, Mapping):
        raise invalid_parameter("settings", changes, "settings")
    whole: dict[str, Json] = msgspec.to_builtins(settings)
    for name, value in changes.items():
        whole[name] = _merge_values(whole.get(name), value)
    try:
        return checked(msgspec.convert(whole, Settings))
    except msgspec.ValidationError as trouble:
        raise explain_validation(trouble, whole, "settings") from None


CHOICES = {"exposure.mode": Mode, "pick.mode": PickMode, "refresh": Refresh}
MEMBERS: dict[str, type[Struct]] = {"exposure": Exposure, "pick": Pick, "nae": Nae}


def explain_validation(trouble: msgspec.ValidationError, whole: Json, what: str) -> InvalidParameter:
    """A validation error of msgspec as one of our own, with place, value, allowed values and the nearest name."""
    complaint, steps = split_place(str(trouble), whole)
    place = "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in steps if step is not ...)
    place = place.removeprefix(".")
    if (unknown := UNKNOWN.match(complaint)) is not None:
        known = [field.name for field in msgspec.structs.fields(_form(place))]
        name = f"{place}.{unknown[1]}" if place else unknown[1]
        return refused(InvalidParameter, parameter=name, fault="unknown", allowed=known)
    if (missing := MISSING.match(complaint)) is not None:
        return refused(InvalidParameter, parameter=f"{place or what}.{missing[1]}", fault="missing")
    choices = next((kind for name, kind in CHOICES.items() if place == name or place.endswith(f".{name}")), None)
    if choices is not None:
        return invalid_parameter(place, _at(whole, place), *(member.value for member in choices))
    expected = EXPECTED.match(complaint)
    allowed = (
        expected[1].split(" | ") if expected else ["decimal" if complaint == "Invalid decimal string" else "other_form"]
    )
    return invalid_parameter(place or what, _at(whole, place), *allowed)


def _form(place: str) -> type[Struct]:
    last = place.rsplit(".", 1)[-1]
    return DayPart if last.startswith("day_parts[") else MEMBERS.get(last, Settings)


def _at(whole: Any, place: str) -> object:
    """The value at a place; None if the path does not exist."""
    for name in STEPS.findall(place):
        try:
            whole = whole[int(name[1:-1]) if name.startswith("[") else name]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return whole
