"""Published events: one bounded buffer for all readers, backed by the journal, with explicit gaps.

A reader holds a cursor, not a queue: a thousand slow readers cost no memory. A reader that falls out of the buffer gets
a `Gap` with the number of missed events; one that resumes after an event id is served from the buffer, or from the
journal for events that have left the buffer.
"""

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from pendula.kernel.canonical import Reader
from pendula.kernel.engine import shown_bytes
from pendula.kernel.errors import InputRefused
from pendula.kernel.frames import read_outcome
from pendula.kernel.journal import Journal, RecordsPruned

E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True)
T = TypeVar("T")

_ID = re.compile(r"(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})")
BEFORE_ALL = "-1.0"


class UnknownEventId(InputRefused):
    """An event id that does not exist in this journal."""

    code = "unknown_event_id"


class Published(Struct, Generic[E], frozen=True, dict=True):
    """A durable event; `data` is its canonical JSON."""

    n: int
    k: int
    event: E
    data: bytes

    @property
    def id(self) -> str:
        return f"{self.n}.{self.k}"

    @cached_property
    def shown(self) -> bytes:
        """The event with its sentence, rendered once for all readers."""
        return shown_bytes(self.event, self.data)


class Gap(Struct, frozen=True):
    """Missed events: how many (None if pruned uncounted), after which id, before which."""

    missed: int | None
    after: str | None
    next: str | None


Item: TypeAlias = Published[E] | Gap


class Ring(Generic[T]):
    """The newest items, at most `capacity`: item number i is at i modulo capacity, from `base` up to `end`.

    Not thread-safe: the owner of a ring also holds its lock.
    """

    __slots__ = ("_capacity", "_items", "end")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._items: list[T] = []
        self.end = 0

    @property
    def base(self) -> int:
        """The number of the oldest item; `end` if there is none."""
        return self.end - len(self._items)

    def append(self, item: T) -> None:
        if len(self._items) < self._capacity:
            self._items.append(item)
        else:
            self._items[self.end % self._capacity] = item
        self.end += 1

    def __getitem__(self, number: int) -> T:
        return self._items[number % self._capacity]

    def items(self, start: int, stop: int) -> list[T]:
        """The items from `start` up to `stop`, which must be in the ring."""
        if start >= stop:
            return []
        first, last = start % self._capacity, (stop - 1) % self._capacity + 1
        return self._items[first:last] if first < last else self._items[first:] + self._items[:last]

    def after(self, key: Callable[[T], Any], value: Any) -> int:
        """The number of the first item whose key is greater than `value`; keys must ascend."""
        return self.base + bisect_right(range(self.base, self.end), value, key=lambda number: key(self[number]))


class Log(Protocol[E_contra]):
    """Gets the events of every durable command of a driver, in order, on the flushing thread."""

    def publish(self, n: int, events: tuple[E_contra, ...], data: tuple[bytes, ...], /) -> None:
        """The events of input `n`, each with its canonical JSON."""
        ...


class EventLog(Generic[E]):
    """The newest events in a ring, backed by the journal."""

    def __init__(self, journal: Journal, events: Any, capacity: int) -> None:
        self._journal = journal
        self._decode: Reader[E] = Reader(events)
        self._ring: Ring[Published[E]] = Ring(capacity)
        self._lock = threading.Lock()
        # Not the journal's last durable record: between a flush and its publication the two differ.
        self._published_n = journal.durable_n

    def publish(self, n: int, events: tuple[E, ...], data: tuple[bytes, ...]) -> None:
        with self._lock:
            for k, (event, encoded) in enumerate(zip(events, data, strict=True)):
                self._ring.append(Published(n, k, event, encoded))
            self._published_n = n

    def subscribe(self, after: str | None) -> "Stream[E]":
        with self._lock:
            ring = self._ring
            if after is None:
                return Stream(self, ring.end, None, self._newest())
            seen = _parse(after)
            if seen[0] > self._published_n:
                raise UnknownEventId(
                    f"Event {after} is unknown; the newest events belong to record {self._published_n}", id=after
                )
            if ring.base < ring.end and seen >= _key(ring[ring.base]):
                return Stream(self, ring.after(_key, seen), None, after)
            return Stream(self, ring.base, self._from_journal(seen, self._start_of_ring()), after)

    def reread(self, last: str | None) -> Iterator[Item[E]]:
        """Read the journal again, after the last event that the reader has seen."""
        with self._lock:
            return self._from_journal((-1, 0) if last is None else _parse(last), self._start_of_ring())

    def resume(self, last: str | None, cursor: int) -> tuple[Iterator[Item[E]] | None, int]:
        """Where a reader continues at the end of the journal: in the ring, or in the journal again."""
        with self._lock:
            if last is None or cursor >= self._ring.base:
                return None, cursor
            return self._from_journal(_parse(last), self._start_of_ring()), self._ring.base

    def take(self, cursor: int, most: int) -> tuple[Gap | None, list[Published[E]], int]:
        """Events from the ring: a gap if the cursor has fallen out, the events, the new cursor."""
        with self._lock:
            ring, gap = self._ring, None
            if cursor < ring.base:
                gap = Gap(ring.base - cursor, None, ring[ring.base].id)
                cursor = ring.base
            stop = min(ring.end, cursor + most)
            return gap, ring.items(cursor, stop), stop

    def _newest(self) -> str:
        """The id of the newest event; `-1.0` before the first."""
        ring = self._ring
        return ring[ring.end - 1].id if ring.base < ring.end else f"{self._published_n}.0"

    def _start_of_ring(self) -> tuple[int, int]:
        ring = self._ring
        return _key(ring[ring.base]) if ring.base < ring.end else (self._published_n + 1, 0)

    def _from_journal(self, seen: tuple[int, int], until: tuple[int, int]) -> Iterator[Item[E]]:
        """The events after `seen` and before `until`, from the outcome records."""
        first = self._journal.first_n
        # A journal that starts at record 0 has no missed events before it.
        if max(seen[0], 0) < first:
            yield Gap(None, f"{seen[0]}.{seen[1]}", f"{first}.0")
        for record in self._journal.read(max(seen[0], first)):
            if record.n > until[0] + 1:
                return
            if record.kind != "outcome":
                continue
            body = read_outcome(record.body)
            if not bytes(body.events):
                yield Gap(body.count, f"{body.of}.0", f"{body.of + 1}.0")
                continue
            for k, raw in enumerate(msgspec.json.decode(body.events, type=list[msgspec.Raw])):
                if seen < (body.of, k) < until:
                    yield Published(body.of, k, self._decode(raw), bytes(raw))


class Stream(Generic[E]):
    """A reader's position. `take` never waits; `driver.on_publish` signals new events."""

    over = False  # a journal's events never end

    def __init__(
        self, log: EventLog[E], cursor: int, backlog: Iterator[Item[E]] | None, last: str | None = None
    ) -> None:
        self._log = log
        self._cursor = cursor
        self._backlog = backlog
        self._last = last

    @property
    def last(self) -> str | None:
        """The id of the last event taken."""
        return self._last

    def take(self, most: int) -> list[Item[E]]:
        """Up to `most` more events, in order, with a `Gap` wherever events were missed."""
        while self._backlog is not None:
            try:
                items = list(islice(self._backlog, most))
            except RecordsPruned:
                # The records were pruned meanwhile: read again from the new beginning, which reports a gap.
                self._backlog = self._log.reread(self._last)
                continue
            if items:
                return self._remember(items)
            # The buffer may have advanced while the journal was read: then continue in the journal.
            self._backlog, self._cursor = self._log.resume(self._last, self._cursor)
        gap, published, self._cursor = self._log.take(self._cursor, most)
        missed = [] if gap is None else [msgspec.structs.replace(gap, after=self._last)]
        return self._remember([*missed, *published])

    def _remember(self, items: list[Item[E]]) -> list[Item[E]]:
        if items and isinstance(items[-1], Published):
            self._last = items[-1].id
        return items


def _key(published: Published[Any]) -> tuple[int, int]:
    return published.n, published.k


def _parse(text: str) -> tuple[int, int]:
    if text == BEFORE_ALL:
        return -1, 0
    match = _ID.fullmatch(text)
    if match is None:
        raise UnknownEventId(f"{text!r} is not an event id; event ids look like '17.0'", id=text)
    return int(match[1]), int(match[2])
