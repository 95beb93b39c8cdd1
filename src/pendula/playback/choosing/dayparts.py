"""Parts of the day: which one holds at a minute of the week, and when another one does.

Minutes are counted from Monday, 00:00, on the wall of the player's zone; which minute it is comes from a clock, which
is not here. Of parts that overlap the first in the list holds.
"""

from collections.abc import Iterator, Sequence

import msgspec

from pendula.playback.model import DayPart, Mode, Settings
from pendula.playback.settings import DAYS

DAY = 24 * 60
WEEK = 7 * DAY


def part_at(parts: Sequence[DayPart], minute: int | None) -> str | None:
    """The name of the part that holds at a minute of the week; None where none does, or nobody knows the time."""
    if minute is None:
        return None
    return next((part.name for part in parts if any(begin <= minute < end for begin, end in _spans(part))), None)


def next_change(parts: Sequence[DayPart], minute: int) -> int | None:
    """How many minutes later another part holds, at most a week; None where that never happens."""
    present = part_at(parts, minute)
    bounds = {bound % WEEK for part in parts for span in _spans(part) for bound in span}
    ahead = sorted((bound - minute - 1) % WEEK + 1 for bound in bounds)
    return next((later for later in ahead if part_at(parts, (minute + later) % WEEK) != present), None)


def in_force(settings: Settings, part: str | None) -> Settings:
    """The settings with the weights of a part in the place of how channels are weighted otherwise."""
    found = next((one for one in settings.day_parts if one.name == part), None)
    if found is None:
        return settings
    exposure = msgspec.structs.replace(settings.exposure, mode=Mode.MAE, manual_weights=found.weights)
    return msgspec.structs.replace(settings, exposure=exposure)


def _spans(part: DayPart) -> Iterator[tuple[int, int]]:
    """From when to when in the week, once for each of its days; what passes the end of Sunday goes on on Monday."""
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
