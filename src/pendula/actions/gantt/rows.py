"""Where things stand in a lane: actions that overlap go into rows below each other, names go where there is room."""

from collections.abc import Hashable, Iterable, Sequence
from re import compile as regex
from typing import TypeVar

from pendula.actions.gantt.spans import Span

K = TypeVar("K", bound=Hashable)

_DIGITS = regex("([0-9]{1,18})")


def natural_order(name: str) -> tuple[tuple[str | int, ...], str]:
    """The order of lanes: `room 9` stands before `room 10`; texts and numbers take turns, so they never meet."""
    return tuple(int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(name))), name


def packed(intervals: Iterable[tuple[K, float, float]], most: int) -> tuple[dict[K, int], int]:
    """A row for each interval (key, since, until), given in order of `since`: the first that is free; and how many rows
    there are. What finds none among `most` rows has no row."""
    ends: list[float] = []
    rows: dict[K, int] = {}
    for key, since, until in intervals:
        row = next((place for place, end in enumerate(ends) if end <= since), len(ends))
        if row == most:
            continue
        if row == len(ends):
            ends.append(until)
        ends[row] = until
        rows[key] = row
    return rows, max(len(ends), 1)


def rows_of_actions(spans: Sequence[Span], most: int) -> tuple[dict[str, int], int]:
    """A row for each action, from its first stretch to its last, so that one action stays on one line."""
    reach: dict[str, tuple[int, int]] = {}
    for span in spans:
        since, until = reach.get(span.action_id, (span.since, span.until))
        reach[span.action_id] = (min(since, span.since), max(until, span.until))
    ordered = sorted((since, until, action_id) for action_id, (since, until) in reach.items())
    return packed(((action_id, since, until) for since, until, action_id in ordered), most)


def text_width(text: str, size: float = 11) -> float:
    """About how wide a text is in a common sans-serif; wide letters of other scripts count double."""
    return sum(1.0 if ord(char) > 0x2E7F else 0.58 for char in text) * size


def shortened(text: str, width: float, size: float = 11) -> str:
    """As much of a text as fits; nothing rather than less than three letters."""
    if text_width(text, size) <= width:
        return text
    while len(text) > 2:
        text = text[:-1]
        if text_width(text + "…", size) <= width:
            return text.rstrip() + "…"
    return ""
