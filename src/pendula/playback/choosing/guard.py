"""Shelves that anybody wrote: whatever one raises, yields or leaves out, its channel is unreadable and nothing more.

Shelves of this package keep what `Shelf` promises and are taken as they are. Any other is watched: how much it holds is
read once, every row is looked at, and the first thing that is wrong is kept in words.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import getattr_static
from typing import TypeVar

from pendula.kernel.errors import WrongUsage
from pendula.playback.choosing.records import UNREADABLE, Row, Shelf, is_kept, kept, sound
from pendula.playback.model import MASK_64, RECORDS_MOST, Diagnostic, said

T = TypeVar("T")

MEMBERS = ("count", "generation", "run", "record")
# Somebody ends the program; that is no trouble of a shelf.
PASSED_ON = (KeyboardInterrupt, SystemExit)
END: Row = (-1, None, b"")


class NoShelf(WrongUsage):
    """What was handed in cannot give records. Facts: `channel`, `missing`."""

    code = "no_shelf"


def is_shelf(thing: object) -> bool:
    """Whether it has what a shelf has; nothing of it is called."""
    return not _missing(thing)


def watched(channel: str, shelf: Shelf) -> Shelf:
    """The shelf itself where it keeps its promises, else one that watches it; raises `NoShelf`."""
    if missing := _missing(shelf):
        raise NoShelf(_sentence(channel, shelf, missing), channel=channel, missing=missing)
    return shelf if is_kept(type(shelf)) else WatchedShelf(shelf)


def _missing(thing: object) -> list[str]:
    return [name for name in MEMBERS if getattr_static(thing, name, None) is None]


def _sentence(channel: str, thing: object, missing: list[str]) -> str:
    given = f"Channel {channel!r} is given {type(thing).__name__} {said(thing)}, which is no shelf"
    if isinstance(thing, list | tuple | set | frozenset):
        return f"{given}; put the records into one: Channel({channel!r}, MemoryShelf(records))"
    return f"{given}: it lacks {', '.join(missing)}; a MemoryShelf of records is one"


class WatchedShelf:
    """A shelf behind which anything may happen. `trouble` is what went wrong first, `broken` that it cannot be used."""

    __slots__ = ("_shelf", "broken", "count", "generation", "trouble")

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.trouble: str | None = None
        self.count, self.generation = self._said(self._sizes, (0, 0))
        self.broken = self.trouble is not None

    @kept
    def run(self, at: int) -> Iterator[Row]:
        rows: Iterator[Row] = self._said(lambda: iter(self._shelf.run(at)), iter((UNREADABLE,)))
        first = at
        while at < self.count:
            row = self._said(partial(self._following, rows, at), UNREADABLE)
            if row is END and at > first:
                return
            if row is END:
                self._note(f"its run from place {at} on gave nothing")
                row = UNREADABLE
            yield row
            if row[0] is None:
                return
            at += 1

    @kept
    def record(self, at: int) -> Row:
        row = self._said(lambda: self._seen(self._shelf.record(at), at), UNREADABLE)
        return UNREADABLE if row is END else row

    @property
    def reads(self) -> int:
        """Blocks that were asked of a file, where the shelf counts them."""
        return self._counted("reads")

    @property
    def hits(self) -> int:
        return self._counted("hits")

    def _counted(self, name: str) -> int:
        found = self._said(lambda: getattr(self._shelf, name, 0), 0)
        return found if isinstance(found, int) else 0

    def _sizes(self) -> tuple[int, int]:
        # Of more than a channel may have the oldest are left out.
        return min(_whole("count", self._shelf.count), RECORDS_MOST), _whole("generation", self._shelf.generation)

    def _following(self, rows: Iterator[Row], at: int) -> Row:
        return self._seen(next(rows, END), at)

    def _seen(self, row: Row, at: int) -> Row:
        """The row as it should be; one whose bytes are no record is damaged. Raises for what is no row."""
        if row is END:
            return row
        place, id, raw = row
        if place is None:
            return UNREADABLE
        if type(place) is not int or place != at:
            raise ValueError(f"the row for place {at} says that it is {said(place)}")
        if id is None or not isinstance(raw, bytes) or not sound(raw):
            return at, None, b""
        return at, int.from_bytes(raw[:8], "little"), bytes(raw)

    def _said(self, ask: Callable[[], T], otherwise: T) -> T:
        try:
            return ask()
        except PASSED_ON:
            raise
        except BaseException as trouble:
            # Anybody's code: also what is no Exception must not end a player.
            self._note(_told(trouble))
            return otherwise

    def _note(self, trouble: str) -> None:
        if self.trouble is None:
            self.trouble = trouble


def _told(trouble: BaseException) -> str:
    try:
        return f"{type(trouble).__name__}: {said(str(trouble))}"
    except Exception:
        # Even the words of an exception are anybody's code.
        return type(trouble).__name__


def _whole(name: str, value: object) -> int:
    if type(value) is not int or not 0 <= value <= MASK_64:
        raise ValueError(f"{name} is {said(value)}; allowed is an integer from 0 to 2^64 - 1")
    return value


def unreadable(channel: str, shelf: Shelf, bad: Sequence[int] = ()) -> Diagnostic:
    """Why a channel gives nothing more; of a shelf that anybody wrote, what went wrong with it."""
    facts: dict[str, object] = {"channel": channel, "damaged": list(bad)}
    if isinstance(shelf, WatchedShelf) and shelf.trouble is not None:
        facts["shelf"] = shelf.trouble
    return Diagnostic.of("UnreadableChannel", **facts)
