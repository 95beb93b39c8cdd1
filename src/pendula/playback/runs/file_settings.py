"""Read the settings of a playback file; all faults are collected, each with its place."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeVar

from pendula.documents import Cursor, Members
from pendula.documents.faults import suggestion
from pendula.kernel.errors import InputRefused
from pendula.playback.clocks import UnknownZone, check_zone
from pendula.playback.model import RECORDS_MOST, DayPart, Exposure, Mode, Nae, Pick, PickMode, Refresh, Settings
from pendula.playback.settings import BUFFER_MOST, DAYS, PART_NAME_MOST, PARTS_MOST, POOL_MOST, TIME, checked, exact

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

T = TypeVar("T")


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
