"""The event queue, in the total order (time, rank, sequence); cancelling costs one set operation.

It is fastest if many events share few instants, such as the minutes of an epoch.
"""

from bisect import insort
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Generic, TypeAlias, TypeVar

from pendula.kernel.errors import WrongUsage

T = TypeVar("T")

# (time, rank, sequence, item): sequences are unique, so comparing two entries never compares items.
Entry: TypeAlias = tuple[int, int, int, T]

# Up to this many cancelled entries stay in the queue: removing them costs more than skipping them.
_FEW = 64


class EventQueue(Generic[T]):
    """Events in the order (time, rank, sequence); `len` and iteration exclude cancelled ones.

    Rank orders events within an instant; sequence is the order of pushing and also the handle of an event. A queue
    made of `list(queue)` and `queue.next_seq` continues exactly like the original, and handles stay valid.

    There is a bucket for each instant and a heap of the instants. A bucket is a list in the order of pushing, sorted
    once when its instant is opened. Entries of the opened instant before `_at` were already popped.
    """

    __slots__ = ("_at", "_buckets", "_dead", "_living", "_next", "_now", "_opened", "_times")

    def __init__(self, entries: Iterable[Entry[T]] = (), next_seq: int = 0) -> None:
        given = list(entries)
        self._living = _sequences(given, next_seq)
        self._next = next_seq
        self._buckets: dict[int, list[Entry[T]]] = {}
        self._times: list[int] = []
        self._now = 0
        self._opened: list[Entry[T]] = []
        self._at = 0
        self._dead = 0
        self._fill(given)

    @property
    def next_seq(self) -> int:
        """The sequence number of the next push."""
        return self._next

    def push(self, time: int, rank: int, item: T) -> int:
        """Add an event and return its handle."""
        seq = self._next
        self._next = seq + 1
        self._living.add(seq)
        if time > self._now:
            bucket = self._buckets.get(time)
            if bucket is not None:
                bucket.append((time, rank, seq, item))
            else:
                self._buckets[time] = [(time, rank, seq, item)]
                heappush(self._times, time)
        else:
            self._push_at_once((time, rank, seq, item))
        return seq

    def pop(self) -> Entry[T]:
        """Remove and return the first event; raises `IndexError` if empty."""
        while True:
            at = self._at
            try:
                entry = self._opened[at]
            except IndexError:
                self._open()
                continue
            self._at = at + 1
            try:
                self._living.remove(entry[2])
            except KeyError:
                self._dead -= 1
            else:
                return entry

    def pop_instant(self) -> list[Entry[T]]:
        """Remove and return all events of the earliest instant, in order; an empty list if there are none."""
        if self._dead:
            self.peek()  # skips cancelled entries, so that the opened instant has an event
        if self._at < len(self._opened):
            rest = self._opened[self._at :]
            self._opened, self._at = [], 0
        else:
            if not self._times:
                return []
            self._now = now = heappop(self._times)
            rest = self._buckets.pop(now)
            if len(rest) > 1:
                rest.sort()
        if self._dead:
            taken = [entry for entry in rest if entry[2] in self._living]
            self._dead -= len(rest) - len(taken)
            rest = taken
        if len(rest) == 1:
            self._living.remove(rest[0][2])
        else:
            self._living.difference_update([entry[2] for entry in rest])
        return rest

    def first_time(self) -> int | None:
        """The time of the first event."""
        if self._dead:
            entry = self.peek()
            return None if entry is None else entry[0]
        if self._at < len(self._opened):
            return self._now
        return self._times[0] if self._times else None

    def peek(self) -> Entry[T] | None:
        """The event that `pop` would return."""
        while self._living:
            if self._at == len(self._opened):
                self._open()
            entry = self._opened[self._at]
            if entry[2] in self._living:
                return entry
            self._at += 1
            self._dead -= 1
        return None

    def cancel(self, handle: int) -> bool:
        """Remove an event; False if it is not in the queue."""
        if handle not in self._living:
            return False
        self._living.remove(handle)
        self._dead += 1
        if self._dead > max(_FEW, len(self._living)):
            self._fill(self)
        return True

    def __len__(self) -> int:
        return len(self._living)

    def __iter__(self) -> Iterator[Entry[T]]:
        """All events, in order."""
        entries = self._opened[self._at :]
        for bucket in self._buckets.values():
            entries += bucket
        return iter(sorted(entry for entry in entries if entry[2] in self._living))

    def _fill(self, entries: Iterable[Entry[T]]) -> None:
        buckets: dict[int, list[Entry[T]]] = {}
        for entry in entries:
            buckets.setdefault(entry[0], []).append(entry)
        self._buckets = buckets
        self._times = sorted(buckets)
        self._now = self._times[0] - 1 if self._times else 0
        self._opened, self._at, self._dead = [], 0, 0

    def _open(self) -> None:
        if not self._times:
            raise IndexError("pop from an empty queue") from None
        self._now = heappop(self._times)
        self._opened = self._buckets.pop(self._now)
        self._opened.sort()
        self._at = 0

    def _push_at_once(self, entry: Entry[T]) -> None:
        """Insert an event into the opened instant, or open an earlier instant for it."""
        if entry[0] < self._now:
            rest = self._opened[self._at :]
            if rest:
                self._buckets[self._now] = rest
                heappush(self._times, self._now)
            self._now, self._opened, self._at = entry[0], [entry], 0
            return
        if self._at > max(_FEW, len(self._opened) // 2):
            # Otherwise an instant that keeps pushing to itself would retain every popped entry.
            del self._opened[: self._at]
            self._at = 0
        insort(self._opened, entry, self._at)


def _sequences(entries: list[Entry[T]], next_seq: int) -> set[int]:
    sequences = {entry[2] for entry in entries}
    if len(sequences) != len(entries):
        raise WrongUsage("Two entries have the same sequence number")
    if any(not 0 <= seq < next_seq for seq in sequences):
        raise WrongUsage(f"A sequence number is not below the next one, {next_seq}", next_seq=next_seq)
    return sequences
