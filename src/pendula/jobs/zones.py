"""Local time of a place and back: what a clock on the wall shows at an instant, and when it shows a given minute.

Instants are microseconds since 1970, UTC; the wall counts minutes since 1970 as if it never changed its offset. A
minute that the wall skips is the first instant after the gap; one that it shows twice is its first occurrence.
Which offsets a place had and will have is in the time zone database of the system (or the package `tzdata`).
"""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from re import compile as regex
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

from pendula.documents.faults import suggestion
from pendula.kernel.errors import InputRefused

MINUTE_US = 60_000_000
SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN = "UTC"
# From here on the calendar ends before an offset does; 400 years earlier it has the same days and the same rules.
LAST_MINUTE = (datetime(9999, 12, 30) - EPOCH) // timedelta(minutes=1)  # noqa: DTZ001
CYCLE_MINUTES = 146_097 * 1440
_NAME = regex(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){0,2}")


class ZoneRefused(InputRefused):
    """Not a time zone that is known here. Facts: `zone`."""

    code = "invalid_zone"


class Zone(Struct, frozen=True):
    """A place by its name in the IANA database, such as `Europe/Berlin`; `UTC` needs no database."""

    name: str = PLAIN

    def wall(self, instant: int) -> int:
        """The minute that the wall shows at an instant."""
        if self.name == PLAIN:
            return instant // MINUTE_US
        if instant // MINUTE_US > LAST_MINUTE:
            return self.wall(instant - CYCLE_MINUTES * MINUTE_US) + CYCLE_MINUTES
        there = (EPOCH_UTC + timedelta(microseconds=instant)).astimezone(_database(self.name))
        return (there.replace(tzinfo=None) - EPOCH) // timedelta(minutes=1)

    def instant(self, minute: int) -> int:
        """When the wall shows that minute, for the first time, or has just skipped it. Never goes back as it grows."""
        if self.name == PLAIN:
            return minute * MINUTE_US
        if minute > LAST_MINUTE:
            return self.instant(minute - CYCLE_MINUTES) + CYCLE_MINUTES * MINUTE_US
        zone = _database(self.name)
        shown = (EPOCH + timedelta(minutes=minute)).replace(tzinfo=zone)
        found = shown.astimezone(UTC)
        if found.astimezone(zone).replace(tzinfo=None) != shown.replace(tzinfo=None):
            found = _after_gap(shown.replace(fold=1).astimezone(UTC), found, zone)
        return (found - EPOCH_UTC) // timedelta(microseconds=1)


PLAIN_ZONE = Zone()


def zone_of(name: str) -> Zone:
    """The zone of that name; raises `ZoneRefused`."""
    if name != PLAIN:
        _database(name)
    return Zone(name)


@lru_cache(maxsize=1024)
def _database(name: str) -> ZoneInfo:
    try:
        if _NAME.fullmatch(name) is None:
            raise ValueError(name)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ZoneRefused(_unknown(name[:64]), zone=name[:64]) from None


def _unknown(name: str) -> str:
    known = sorted(available_timezones())
    if not known:
        return f"{name!r} cannot be looked up: there is no time zone database here; install the package tzdata"
    near = suggestion(name, known)
    return f"{name!r} is not a time zone that is known here; write UTC, Europe/Berlin, America/New_York{near}"


def _after_gap(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The first second with the offset of `after`; the offset changes once between the two."""
    offset = after.astimezone(zone).utcoffset()
    low, high = 0, (after - before) // SECOND
    while low < high:
        middle = (low + high) // 2
        if (before + middle * SECOND).astimezone(zone).utcoffset() == offset:
            high = middle
        else:
            low = middle + 1
    return before + low * SECOND
