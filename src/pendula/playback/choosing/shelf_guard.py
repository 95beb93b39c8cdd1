"""Guards user-written shelves: whatever one raises or yields, only its channel becomes unreadable.

Shelves of this package are trusted. Any other is guarded: its count is read once, every row is checked, and the first
problem is kept as text.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import getattr_static
from typing import TypeVar

from pendula.kernel.errors import WrongUsage
from pendula.playback.choosing.records import UNREADABLE, Row, Shelf, is_trusted, sound, trusted
from pendula.playback.model import MASK_64, RECORDS_MOST, Diagnostic, diagnostic, short_repr

T = TypeVar("T")

MEMBERS = ("count", "generation", "run", "record")
# The program is ended; that is not a fault of the shelf.
PASSED_ON = (KeyboardInterrupt, SystemExit)
END: Row = (-1, None, b"")


class NoShelf(WrongUsage):
    """The object does not implement `Shelf`. Facts: `channel`, `missing`."""

    code = "not_a_shelf"


def is_shelf(thing: object) -> bool:
    """Whether the object has all members of a shelf; none is called."""
    return not _missing(thing)


def guarded(channel: str, shelf: Shelf) -> Shelf:
    """The shelf itself if it is trusted, else a guard around it; raises `NoShelf`."""
    if missing := _missing(shelf):
        raise NoShelf(_sentence(channel, shelf, missing), channel=channel, missing=missing)
    return shelf if is_trusted(type(shelf)) else GuardedShelf(shelf)


def _missing(thing: object) -> list[str]:
    return [name for name in MEMBERS if getattr_static(thing, name, None) is None]


def _sentence(channel: str, thing: object, missing: list[str]) -> str:
    given = f"Channel {channel!r} is given {type(thing).__name__} {short_repr(thing)}, which is not a Shelf"
    if isinstance(thing, list | tuple | set | frozenset):
        return f"{given}; wrap the records: Channel({channel!r}, MemoryShelf(records))"
    return f"{given}: it lacks {', '.join(missing)}; use a MemoryShelf of records"


class GuardedShelf:
    """A guard around a user-written shelf. `trouble` is the first problem, `broken` that its count cannot be read."""

    __slots__ = ("_shelf", "broken", "count", "generation", "trouble")

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.trouble: str | None = None
        self.count, self.generation = self._said(self._sizes, (0, 0))
        self.broken = self.trouble is not None

    @trusted
    def run(self, at: int) -> Iterator[Row]:
        rows: Iterator[Row] = self._said(lambda: iter(self._shelf.run(at)), iter((UNREADABLE,)))
        first = at
        while at < self.count:
            row = self._said(partial(self._following, rows, at), UNREADABLE)
            if row is END and at > first:
                return
            if row is END:
                self._note(f"its run from place {at} is empty")
                row = UNREADABLE
            yield row
            if row[0] is None:
                return
            at += 1

    @trusted
    def record(self, at: int) -> Row:
        row = self._said(lambda: self._seen(self._shelf.record(at), at), UNREADABLE)
        return UNREADABLE if row is END else row

    @property
    def reads(self) -> int:
        """Blocks read from a file, if the shelf counts them."""
        return self._counted("reads")

    @property
    def hits(self) -> int:
        return self._counted("hits")

    def _counted(self, name: str) -> int:
        found = self._said(lambda: getattr(self._shelf, name, 0), 0)
        return found if isinstance(found, int) else 0

    def _sizes(self) -> tuple[int, int]:
        # Beyond the limit of a channel the oldest records are left out.
        return min(_whole("count", self._shelf.count), RECORDS_MOST), _whole("generation", self._shelf.generation)

    def _following(self, rows: Iterator[Row], at: int) -> Row:
        return self._seen(next(rows, END), at)

    def _seen(self, row: Row, at: int) -> Row:
        """The checked row; damaged if its bytes are not a valid record. Raises if it is not a row."""
        if row is END:
            return row
        place, id, raw = row
        if place is None:
            return UNREADABLE
        if type(place) is not int or place != at:
            raise ValueError(f"the row for place {at} has place {short_repr(place)}")
        if id is None or not isinstance(raw, bytes) or not sound(raw):
            return at, None, b""
        return at, int.from_bytes(raw[:8], "little"), bytes(raw)

    def _said(self, ask: Callable[[], T], otherwise: T) -> T:
        try:
            return ask()
        except PASSED_ON:
            raise
        except BaseException as trouble:
            # User code: even a BaseException must not end a player.
            self._note(_told(trouble))
            return otherwise

    def _note(self, trouble: str) -> None:
        if self.trouble is None:
            self.trouble = trouble


def _told(trouble: BaseException) -> str:
    try:
        return f"{type(trouble).__name__}: {short_repr(str(trouble))}"
    except Exception:
        # `str` of a user's exception is user code, too.
        return type(trouble).__name__


def _whole(name: str, value: object) -> int:
    if type(value) is not int or not 0 <= value <= MASK_64:
        raise ValueError(f"{name} is {short_repr(value)}; allowed is an integer from 0 to 2^64 - 1")
    return value


def unreadable(channel: str, shelf: Shelf, bad: Sequence[int] = ()) -> Diagnostic:
    """The diagnostic of a channel that became unreadable, with the problem of a guarded shelf."""
    facts: dict[str, object] = {"channel": channel, "damaged": list(bad)}
    if isinstance(shelf, GuardedShelf) and shelf.trouble is not None:
        facts["shelf"] = shelf.trouble
    return diagnostic("UnreadableChannel", **facts)
