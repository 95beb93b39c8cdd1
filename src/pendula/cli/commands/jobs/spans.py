"""Spans of time on the command line: seconds, or a number with a unit. Whole seconds come out."""

from re import compile as regex

import typer

FORM = "90, 15m, 2h or 7d"
UNIT_SEC = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_SPAN = regex(r"([0-9]{1,10}) ?([a-z]*)")


def seconds_of(text: str) -> int:
    """The seconds of `90`, `15m`, `2h`, `7d` or `1w`; what is none is a wrong command line."""
    found = _SPAN.fullmatch(text)
    if found is None or found[2] not in UNIT_SEC:
        raise typer.BadParameter(f"{text!r} is not a span of time; write {FORM}")
    return int(found[1]) * UNIT_SEC[found[2]]
