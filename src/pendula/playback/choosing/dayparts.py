"""Day parts, and the wall clock of a player. Pure.

Minutes count from Monday 00:00, local time in the player's zone. If parts overlap, the first in the list applies. The
wall clock is set by a command, then advanced with the player's own time; each UTC offset applies from its moment, the
first one also before.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from pendula.playback.model import invalid_parameter
from pendula.playback.settings import DAYS, DayPart, Mode, Settings

DAY = 24 * 60
WEEK = 7 * DAY


def part_at(parts: Sequence[DayPart], minute: int | None) -> str | None:
    """The name of the part that applies; None without one, or if the minute is unknown."""
    if minute is None:
        return None
    return next((part.name for part in parts if any(begin <= minute < end for begin, end in _spans(part))), None)


def next_change(parts: Sequence[DayPart], minute: int) -> int | None:
    """Minutes until another part applies, at most a week; None if that never happens."""
    present = part_at(parts, minute)
    bounds = {bound % WEEK for part in parts for span in _spans(part) for bound in span}
    ahead = sorted((bound - minute - 1) % WEEK + 1 for bound in bounds)
    return next((later for later in ahead if part_at(parts, (minute + later) % WEEK) != present), None)


def in_force(settings: Settings, part: str | None) -> Settings:
    """The settings with the weights of a part in place of the exposure."""
    found = next((one for one in settings.day_parts if one.name == part), None)
    if found is None:
        return settings
    exposure = msgspec.structs.replace(settings.exposure, mode=Mode.MAE, manual_weights=found.weights)
    return msgspec.structs.replace(settings, exposure=exposure)


def _spans(part: DayPart) -> Iterator[tuple[int, int]]:
    """Begin and end in the week, for each of its days; a span that passes the end of Sunday continues on Monday."""
    start, end = _minutes(part.start), _minutes(part.end)
    length = (end - start - 1) % DAY + 1
    for place, day in enumerate(DAYS):
        if not part.days or day in part.days:
            begin = place * DAY + start
            yield begin, min(WEEK, begin + length)
            if begin + length > WEEK:
                yield 0, begin + length - WEEK


def _minutes(time: str) -> int:
    hours, minutes = time.split(":")
    return 60 * int(hours) + int(minutes)


MINUTE_MS = 60_000
FIRST_DAY_MINUTES = 3 * 24 * 60  # the first of January 1970 was a Thursday
OFFSET_MOST = 86_400
OFFSETS_MOST = 64
UTC_MOST = 1 << 50

Offsets = tuple[tuple[int, int], ...]


class WallClock(Struct, frozen=True):
    """At the player's time `at` it was `utc_ms`; an offset is (start in UTC milliseconds, seconds east)."""

    at: int
    utc_ms: int
    offsets: Offsets

    def minute(self, now: int) -> int:
        """The local minute of the week at a time of the player."""
        return (self._local(self._utc(now)) // MINUTE_MS + FIRST_DAY_MINUTES) % WEEK

    def next_change(self, parts: Sequence[DayPart], now: int) -> int | None:
        """The player's time at which the day part may change, including changes of the UTC offset."""
        utc = self._utc(now)
        later = next_change(parts, self.minute(now))
        due = [] if later is None else [utc + later * MINUTE_MS - self._local(utc) % MINUTE_MS]
        due += [moment for moment, _ in self.offsets if moment > utc][:1] if parts else []
        return min(due) - self.utc_ms + self.at if due else None

    def _utc(self, now: int) -> int:
        return self.utc_ms + now - self.at

    def _local(self, utc: int) -> int:
        offset = self.offsets[0][1]
        for moment, seconds in self.offsets:
            if moment <= utc:
                offset = seconds
        return utc + 1000 * offset


def wall_clock(at: int, utc_ms: int, offsets: Offsets) -> WallClock:
    """A valid wall clock; raises `InvalidParameter`."""
    if not -UTC_MOST <= utc_ms <= UTC_MOST:
        raise invalid_parameter("utc_ms", utc_ms, "unix_ms")
    if not 1 <= len(offsets) <= OFFSETS_MOST or list(offsets) != sorted(offsets):
        raise invalid_parameter("offsets", offsets, "offsets")
    if any(not -OFFSET_MOST < seconds < OFFSET_MOST for _, seconds in offsets):
        raise invalid_parameter("offsets", offsets, "offsets_below_a_day")
    return WallClock(at, utc_ms, offsets)
