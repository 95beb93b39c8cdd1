"""The options that select jobs, shared by list, cancel and requeue; durations such as 90, 15m, 2h or 7d."""

from re import compile as regex
from typing import Annotated, Any

import typer

from pendula.cli.commands.jobs.message_options import options_of
from pendula.cli.commands.jobs.target import Options, members, wall_now
from pendula.jobs.messages import Chosen

FORM = "90, 15m, 2h or 7d"
UNIT_SEC = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_SPAN = regex(r"([0-9]{1,10}) ?([a-z]*)")


def seconds_of(text: str) -> int:
    """The seconds of `90`, `15m`, `2h`, `7d` or `1w`. Raises `typer.BadParameter`."""
    match = _SPAN.fullmatch(text)
    if match is None or match[2] not in UNIT_SEC:
        raise typer.BadParameter(f"{text!r} is not a duration; write {FORM}")
    return int(match[1]) * UNIT_SEC[match[2]]


OlderOption = Annotated[
    int | None,
    typer.Option(
        "--older-than",
        metavar="SPAN",
        parser=seconds_of,
        help=f"Enqueued longer ago than this: {FORM}.",
        show_default=False,
    ),
]
NewerOption = Annotated[
    int | None,
    typer.Option(
        "--newer-than",
        metavar="SPAN",
        parser=seconds_of,
        help=f"Enqueued within this time: {FORM}.",
        show_default=False,
    ),
]


_CHOSEN = options_of(Chosen, without=("created_after", "created_before"))


def _members(*, older_than: int | None, newer_than: int | None, **words: Any) -> dict[str, Any]:
    """The filters as members of a call."""
    return {**members(created_before=_ago(older_than), created_after=_ago(newer_than)), **_CHOSEN.make(**words)}


def _ago(seconds: int | None) -> str | None:
    from pendula.jobs.model import SECOND
    from pendula.kernel.time import format_utc

    return None if seconds is None else format_utc(max(0, wall_now() - seconds * SECOND))


FILTERS = Options(
    {**_CHOSEN.named, "older_than": (OlderOption, None), "newer_than": (NewerOption, None)},
    _members,
)
Filters = Annotated[dict[str, Any], FILTERS]
