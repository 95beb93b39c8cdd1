"""The place of a value: its path in the document, and its line and column in the text.

Lines and columns count from 1, columns in characters. Places are not stored while reading: a `Wanted` tree names the
few paths that are needed, and a second reading notes their offsets.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable
from re import compile as regex
from typing import TypeAlias

from msgspec import Struct

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]

_PLAIN_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LINE_END = regex(r"\r\n|\r|\n")


class Place(Struct, frozen=True, order=True):
    """A line and a column, both from 1; `NOWHERE` for values that do not come from text."""

    line: int
    column: int


NOWHERE = Place(0, 0)


class Spot(Struct, frozen=True):
    """The value at a path, or its member name with `at_key`."""

    path: Path
    at_key: bool = False


def path_text(path: Iterable[Step]) -> str:
    """The path as text: `$.actions[3].effort`, unusual names as `["odd name"]`."""
    return "$" + "".join(_step_text(step) for step in path)


def _step_text(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_NAME.match(step) else f"[{json.dumps(step)}]"


class Lines:
    """Converts offsets of one text to places; line starts are computed on first use."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] = []

    def place(self, offset: int) -> Place:
        if not self._starts:
            self._starts = [0, *(end.end() for end in _LINE_END.finditer(self._text))]
        # A parser may point past the end of the text.
        offset = min(offset, len(self._text))
        line = bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)


class Wanted:
    """The paths whose offsets a reading notes, as a tree that is walked along with the document."""

    __slots__ = ("children", "key_at", "value_at")

    def __init__(self) -> None:
        self.children: dict[Step, Wanted] = {}
        self.key_at: int | None = None
        self.value_at: int | None = None

    @classmethod
    def of(cls, spots: Iterable[Spot]) -> "Wanted":
        root = cls()
        for spot in spots:
            node = root
            for step in spot.path:
                node = node.children.setdefault(step, cls())
        return root

    def offset(self, spot: Spot) -> int:
        """Its offset; for a value without its own text (aliases) that of the nearest container."""
        node, found = self, self.value_at or 0
        for step in spot.path:
            node = node.children[step]
            if node.value_at is None:
                return found
            found = node.value_at
        return node.key_at if spot.at_key and node.key_at is not None else found
