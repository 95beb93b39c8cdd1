"""Day parts: the one that applies at a minute of the week, and when the next one begins.

Minutes count from Monday 00:00, local time in the player's zone. If parts overlap, the first in the list applies.
"""

from collections.abc import Iterator, Sequence

import msgspec

from pendula.playback.model import DayPart, Mode, Settings
from pendula.playback.settings import DAYS

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
