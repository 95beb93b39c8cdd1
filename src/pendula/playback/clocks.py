"""Time of day in a zone, for callers with a clock; players and schedulers have none.

UTC offsets come from the time zone database of the system or the package `tzdata`. A `Clock` command contains those of
the next four years, so that a replay does not depend on the database.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import suggestion
from pendula.playback.choosing.dayparts import MINUTE_MS, WEEK
from pendula.playback.messages import Clock
from pendula.playback.model import short_repr

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_DAY = 3  # the first of January 1970 was a Thursday
AHEAD_DAYS = 4 * 366
OFFSETS_MOST = 16
DAY_MS = 24 * 60 * MINUTE_MS


class UnknownZone(InputRefused):
    """The time zone database has no such zone. Facts: `zone`."""

    code = "unknown_zone"


class NoMoment(InputRefused):
    """A date and time without a UTC offset. Facts: `moment`."""

    code = "time_without_offset"


def utc_ms(moment: datetime) -> int:
    """Milliseconds since 1970; raises `NoMoment` for a datetime without a zone."""
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        allowed = "a datetime with a zone, such as datetime.now(UTC)"
        raise NoMoment(f"{short_repr(moment)} has no UTC offset; give {allowed}", moment=short_repr(moment))
    return (moment - EPOCH) // timedelta(milliseconds=1)


def check_zone(zone: str) -> None:
    """Raise `UnknownZone` if the database lacks the zone."""
    _database(zone)


def minute_of_week(zone: str, moment_ms: int) -> int:
    """The local minute of the week, from Monday 00:00."""
    local = moment_ms + 1000 * _offset_s(moment_ms, _database(zone))
    return (local // MINUTE_MS + FIRST_DAY * 24 * 60) % WEEK


def clock_at(zone: str, moment: datetime | int) -> Clock:
    """The clock command for a zone and a moment, with the UTC offsets of the next four years.

    `moment` is a datetime with a zone, or milliseconds since 1970. Raises `UnknownZone` and `NoMoment`.
    """
    now = moment if isinstance(moment, int) else utc_ms(moment)
    database = _database(zone)
    offsets = [(now, _offset_s(now, database))]
    for day in range(AHEAD_DAYS):
        before, after = now + day * DAY_MS, now + (day + 1) * DAY_MS
        offset = _offset_s(after, database)
        if offset != offsets[-1][1] and len(offsets) < OFFSETS_MOST:
            offsets.append((_change(before, after, database), offset))
    return Clock(now, tuple(offsets))


def _change(before: int, after: int, database: tzinfo) -> int:
    """The first second with the offset of `after`; the offset changes once between the two."""
    offset = _offset_s(after, database)
    low, high = before // 1000, after // 1000
    while low < high:
        middle = (low + high) // 2
        if _offset_s(1000 * middle, database) == offset:
            high = middle
        else:
            low = middle + 1
    return 1000 * low


def _offset_s(moment_ms: int, database: tzinfo) -> int:
    offset = (EPOCH + timedelta(milliseconds=moment_ms)).astimezone(database).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


def _database(zone: str) -> tzinfo:
    if zone == "UTC":
        return UTC
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError, TypeError):
        known = sorted(available_timezones())
        near = suggestion(zone, known) if isinstance(zone, str) else ""
        raise UnknownZone(
            f"{short_repr(zone)} is an unknown time zone; write UTC, Europe/Berlin, America/New_York{near}",
            zone=short_repr(zone),
        ) from None
