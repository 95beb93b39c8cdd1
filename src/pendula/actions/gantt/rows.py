"""Layout of a lane: overlapping actions get rows of their own, texts are shortened to fit."""

from collections.abc import Hashable, Iterable, Sequence
from re import compile as regex
from typing import TypeVar

from pendula.actions.gantt.spans import Span

K = TypeVar("K", bound=Hashable)

_DIGITS = regex("([0-9]{1,18})")


def natural_order(name: str) -> tuple[tuple[str | int, ...], str]:
    """The order of lanes: `room 9` before `room 10`. Texts and numbers alternate, so they are never compared."""
    return tuple(int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(name))), name


def packed(intervals: Iterable[tuple[K, float, float]], most: int) -> tuple[dict[K, int], int]:
    """The first free row for each interval (key, since, until), sorted by `since`, and the number of rows. Intervals
    that do not fit into `most` rows are left out."""
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
    """A row for each action, from its first span to its last."""
    reach: dict[str, tuple[int, int]] = {}
    for span in spans:
        since, until = reach.get(span.action_id, (span.since, span.until))
        reach[span.action_id] = (min(since, span.since), max(until, span.until))
    ordered = sorted((since, until, action_id) for action_id, (since, until) in reach.items())
    return packed(((action_id, since, until) for since, until, action_id in ordered), most)


def text_width(text: str, size: float = 11) -> float:
    """Approximate width of a text in a sans-serif font; wide letters of other scripts count double."""
    return sum(1.0 if ord(char) > 0x2E7F else 0.58 for char in text) * size


def shortened(text: str, width: float, size: float = 11) -> str:
    """The text cut to a width; empty if fewer than three letters fit."""
    if text_width(text, size) <= width:
        return text
    while len(text) > 2:
        text = text[:-1]
        if text_width(text + "…", size) <= width:
            return text.rstrip() + "…"
    return ""
