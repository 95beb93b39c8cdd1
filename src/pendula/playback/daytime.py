"""The wall clock of a player: set by a command, then advanced with the player's own time. Pure.

Each UTC offset applies from its moment; the first one also before.
"""

from collections.abc import Sequence

from msgspec import Struct

from pendula.playback.choosing.dayparts import WEEK, next_change
from pendula.playback.model import DayPart, invalid_parameter

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
