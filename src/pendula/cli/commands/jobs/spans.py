"""Durations on the command line: seconds, or a number with a unit."""

from re import compile as regex

import typer

FORM = "90, 15m, 2h or 7d"
UNIT_SEC = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_SPAN = regex(r"([0-9]{1,10}) ?([a-z]*)")


def seconds_of(text: str) -> int:
    """The seconds of `90`, `15m`, `2h`, `7d` or `1w`. Raises `typer.BadParameter`."""
    match = _SPAN.fullmatch(text)
    if match is None or match[2] not in UNIT_SEC:
        raise typer.BadParameter(f"{text!r} is not a duration; write {FORM}")
    return int(match[1]) * UNIT_SEC[match[2]]
