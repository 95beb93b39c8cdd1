"""Cron expressions and time zones.

The next time of an expression: five fields, in UTC or a time zone, integers only, a pure function.

    minute 0-59   hour 0-23   day of month 1-31   month 1-12 or jan-dec   day of week 0-7 or sun-sat (0, 7: Sunday)

A field is `*`, a number, a range `a-b`, each with a step `/n`, or a list of these. Where both day fields are given, a
day counts when either says so; a field that begins with `*` is not given. `@hourly`, `@daily`, `@weekly`, `@monthly`
and `@yearly` are words for the usual ones.

Instants are microseconds since 1970, UTC; local time counts minutes since 1970 ignoring changes of the offset. A local
minute in a gap is the first instant after it; one that occurs twice is its first occurrence. Offsets come from the time
zone database of the system (or the package `tzdata`).
"""

from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from re import compile as regex
from typing import TYPE_CHECKING, Self

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


DAY_MINUTES = 1440
FIRST_DAY = date(1970, 1, 1)
LAST_DAY = (date(9999, 12, 31) - FIRST_DAY).days
LAST_INSTANT = (LAST_DAY + 1) * DAY_MINUTES * MINUTE_US - 1  # beyond it no time can be written
# The calendar repeats after 400 years: an expression without a time by then has none.
CYCLE_DAYS = 146_097
EXPRESSION_MOST = 200

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ITEM = regex(r"(?:(?P<all>\*)|(?P<first>[0-9a-z]{1,3})(?:-(?P<last>[0-9a-z]{1,3}))?)(?:/(?P<step>[0-9]{1,3}))?")


class CronRefused(InputRefused):
    """Not a cron expression, or one that never occurs. Facts: `expression`, `field`, `allowed`."""

    code = "invalid_cron"


class Field(Struct, frozen=True):
    """One of the five fields: its name, its bounds, and names of its numbers from `least` on."""

    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        named = f" or {self.words[0]}-{self.words[-1]}" if self.words else ""
        return f"{self.least}-{self.most}{named}, with lists, ranges and steps"


FIELDS = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of month", 1, 31),
    Field("month", 1, 12, MONTHS),
    Field("day of week", 0, 7, WEEKDAYS),
)


class Cron(Struct, frozen=True):
    """A parsed expression: the numbers of each field, and whether the two day fields were given."""

    expression: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    days_given: bool
    weekdays_given: bool

    @classmethod
    def parse(cls, expression: str) -> Self:
        """Raises `CronRefused` for what is not an expression, and for one that never occurs."""
        texts = WORDS.get(expression.strip().lower(), expression).lower().split()
        if len(texts) != len(FIELDS) or len(expression) > EXPRESSION_MOST:
            message = f"{expression[:EXPRESSION_MOST]!r} is not a cron expression: five fields are needed"
            raise CronRefused(message, expression=expression, field=None, allowed="five fields")
        minutes, hours, days, months, weekdays = (
            _numbers(text, field, expression) for text, field in zip(texts, FIELDS, strict=True)
        )
        cron = cls(
            expression=expression,
            minutes=tuple(sorted(minutes)),
            hours=tuple(sorted(hours)),
            days=days,
            months=months,
            weekdays=frozenset(day % 7 for day in weekdays),
            days_given=not texts[2].startswith("*"),
            weekdays_given=not texts[4].startswith("*"),
        )
        if cron.after(0) is None:
            raise CronRefused(
                f"{expression!r} never occurs", expression=expression, field=None, allowed="days that exist"
            )
        return cron

    def after(self, instant: int, zone: Zone = PLAIN_ZONE) -> int | None:
        """The first time after `instant`, in microseconds since 1970; None if there is none by year 9999."""
        minute = zone.wall(instant)
        while (found := self._minute_after(minute)) is not None:
            # A local time that occurs for the second time is skipped.
            if (at := zone.instant(found)) > instant:
                return at if at <= LAST_INSTANT else None
            minute = found
        return None

    def _minute_after(self, minute: int) -> int | None:
        """The first later local minute that matches."""
        day, of_day = divmod(minute + 1, DAY_MINUTES)
        if not self._has_days():
            return None
        for number in range(day, min(day + CYCLE_DAYS, LAST_DAY) + 1):
            if self._on(FIRST_DAY + timedelta(days=number)):
                found = self._within(of_day if number == day else 0)
                if found is not None:
                    return number * DAY_MINUTES + found
        return None

    def _has_days(self) -> bool:
        """Whether any day of the calendar matches; otherwise the search would check centuries of days."""
        if self.days_given and self.weekdays_given:
            return True
        return any(number <= _MONTH_DAYS[month - 1] for month in self.months for number in self.days)

    def _on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.days_given and self.weekdays_given:
            return by_day or by_weekday
        return by_day and by_weekday

    def _within(self, first: int) -> int | None:
        """The first matching minute of a day, from minute `first` on."""
        for hour in self.hours:
            if hour * 60 + 59 >= first:
                for minute in self.minutes:
                    if hour * 60 + minute >= first:
                        return hour * 60 + minute
        return None


def next_after(expression: str, instant: int, zone: Zone = PLAIN_ZONE) -> int | None:
    """The next time of the expression after `instant`, in microseconds since 1970."""
    return Cron.parse(expression).after(instant, zone)


def _numbers(text: str, field: Field, expression: str) -> frozenset[int]:
    found: set[int] = set()
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise _refused(item, field, expression)
        step = int(match["step"] or 1)
        if match["all"]:
            first, last = field.least, field.most
        else:
            first = _number(match["first"], field, expression)
            # A lone number with a step means: from there on.
            last = field.most if match["step"] else first
            if match["last"]:
                last = _number(match["last"], field, expression)
                # `sun` ends a week as well as it begins one.
                last = 7 if match["last"] == "sun" else last
        if not 1 <= step <= field.most or first > last:
            raise _refused(item, field, expression)
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, field: Field, expression: str) -> int:
    if text in field.words:
        return field.words.index(text) + field.least
    if not text.isdecimal() or not field.least <= int(text) <= field.most:
        raise _refused(text, field, expression)
    return int(text)


def _refused(item: str, field: Field, expression: str) -> CronRefused:
    message = f"{item!r} cannot be the {field.name} of a cron expression; allowed: {field.allowed}"
    return CronRefused(message, expression=expression, field=field.name, allowed=field.allowed)
