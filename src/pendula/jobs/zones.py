"""Local time of a time zone: the local minute at an instant, and the instant of a local minute.

Instants are microseconds since 1970, UTC; local time counts minutes since 1970 ignoring changes of the offset. A local
minute in a gap is the first instant after it; one that occurs twice is its first occurrence. Offsets come from the time
zone database of the system (or the package `tzdata`).
"""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from re import compile as regex
from typing import TYPE_CHECKING

from msgspec import Struct

from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import suggestion

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MINUTE_US = 60_000_000
SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN = "UTC"
# Beyond it, local times would overflow the calendar; 400 years earlier it has the same days and rules.
LAST_MINUTE = (datetime(9999, 12, 30) - EPOCH) // timedelta(minutes=1)  # noqa: DTZ001
CYCLE_MINUTES = 146_097 * 1440
_NAME = regex(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){0,2}")


class ZoneRefused(InputRefused):
    """An unknown time zone. Facts: `zone`."""

    code = "invalid_zone"


class Zone(Struct, frozen=True):
    """A time zone by its IANA name, such as `Europe/Berlin`; `UTC` needs no database."""

    name: str = PLAIN

    def wall(self, instant: int) -> int:
        """The local minute at an instant."""
        if self.name == PLAIN:
            return instant // MINUTE_US
        if instant // MINUTE_US > LAST_MINUTE:
            return self.wall(instant - CYCLE_MINUTES * MINUTE_US) + CYCLE_MINUTES
        local = (EPOCH_UTC + timedelta(microseconds=instant)).astimezone(_database(self.name))
        return (local.replace(tzinfo=None) - EPOCH) // timedelta(minutes=1)

    def instant(self, minute: int) -> int:
        """The first instant of a local minute, or of the end of a gap over it. Monotonic."""
        if self.name == PLAIN:
            return minute * MINUTE_US
        if minute > LAST_MINUTE:
            return self.instant(minute - CYCLE_MINUTES) + CYCLE_MINUTES * MINUTE_US
        zone = _database(self.name)
        shown = (EPOCH + timedelta(minutes=minute)).replace(tzinfo=zone)
        instant = shown.astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None) != shown.replace(tzinfo=None):
            instant = _after_gap(shown.replace(fold=1).astimezone(UTC), instant, zone)
        return (instant - EPOCH_UTC) // timedelta(microseconds=1)


PLAIN_ZONE = Zone()


def zone_of(name: str) -> Zone:
    """The zone of that name; raises `ZoneRefused`."""
    if name != PLAIN:
        _database(name)
    return Zone(name)


@lru_cache(maxsize=1024)
def _database(name: str) -> "ZoneInfo":
    from zoneinfo import ZoneInfo

    try:
        if _NAME.fullmatch(name) is None:
            raise ValueError(name)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ZoneRefused(_unknown(name[:64]), zone=name[:64]) from None


def _unknown(name: str) -> str:
    from zoneinfo import available_timezones

    known = sorted(available_timezones())
    if not known:
        return f"{name!r} cannot be looked up: there is no time zone database here; install the package tzdata"
    near = suggestion(name, known)
    return f"unknown time zone {name!r}; write UTC, Europe/Berlin, America/New_York{near}"


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
