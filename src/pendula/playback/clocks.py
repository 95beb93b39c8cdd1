"""Time of day in a place, for those who keep a clock: players and schedulers themselves know none.

Which offsets a place has is in the time zone database of the system, or the package `tzdata`. A player is told of them
with the time, some years ahead, so that what a journal says does not change when the database does.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from pendula.documents.faults import suggestion
from pendula.kernel.errors import InputRefused
from pendula.playback.choosing.dayparts import WEEK
from pendula.playback.daytime import MINUTE_MS
from pendula.playback.events import Clock
from pendula.playback.model import said

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_DAY = 3  # the first of January 1970 was a Thursday
AHEAD_DAYS = 4 * 366
OFFSETS_MOST = 16
DAY_MS = 24 * 60 * MINUTE_MS


class UnknownZone(InputRefused):
    """No time zone of that name is known here. Facts: `zone`."""

    code = "unknown_zone"


class NoMoment(InputRefused):
    """A date and time without its zone is no moment. Facts: `moment`."""

    code = "no_moment"


def utc_ms(moment: datetime) -> int:
    """Milliseconds since 1970; raises `NoMoment` for one that does not say where."""
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        allowed = "a datetime with a zone, such as datetime.now(UTC)"
        raise NoMoment(f"{said(moment)} is not a moment; give {allowed}", moment=said(moment))
    return (moment - EPOCH) // timedelta(milliseconds=1)


def check_zone(zone: str) -> None:
    """Raise `UnknownZone` for a name that nobody knows."""
    _database(zone)


def minute_of_week(zone: str, moment_ms: int) -> int:
    """Which minute it is on the wall of a place, from Monday 00:00."""
    local = moment_ms + 1000 * _offset_s(moment_ms, _database(zone))
    return (local // MINUTE_MS + FIRST_DAY * 24 * 60) % WEEK


def clock_at(zone: str, moment: datetime | int) -> Clock:
    """What to tell a player that its clock is there now: the moment, and the offsets of its zone for four years.

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
            f"{said(zone)} is not a time zone that is known here; write UTC, Europe/Berlin, America/New_York{near}",
            zone=said(zone),
        ) from None
