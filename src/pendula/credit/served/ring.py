"""Ring buffer of the newest events of a served run, with any number of readers.

Every event gets its id (`evt_<run>_<number>`) when it becomes readable. A reader is a position in the ring, not a
queue. The stream of a reader that falls too far behind ends, so that there are no gaps; it reconnects after its last
event, or gets `EventGone`.
"""

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from pendula.credit.runs.artifacts import moment
from pendula.kernel.errors import InputRefused

_ID = re.compile(r"evt_(?P<run>.+)_(?P<seq>[0-9]{6,18})")
_DATA, _END = b"\ndata: ", b"\n\n"
# The ring holds up to a quarter more events than it keeps, and then drops half of the surplus: the rest is for readers
# that subscribed and have not read yet.
SPARE = 4


class EventGone(InputRefused):
    """The events after this one are not available. Facts: `event_id`."""

    code = "EVENT_ID_GONE"


class StreamEvent(Struct, frozen=True):
    """An event without its number; `equivalent` is None if it concerns every reader, `body` is its canonical JSON.

    A `terminal` event is the last one of a run.
    """

    type: str
    equivalent: str | None
    body: bytes
    terminal: bool = False


class Entry(Struct, frozen=True):
    """An event in the ring; `frame` is its form on the stream and contains its JSON, which is stored once."""

    id: str
    type: str
    seq: int
    at_us: int
    equivalent: str | None
    frame: bytes
    terminal: bool

    @property
    def data(self) -> bytes:
        """Its JSON."""
        return self.frame[self.frame.index(_DATA) + len(_DATA) : -len(_END)]


class Bounds(Struct, frozen=True):
    """How many events are kept, how long, and how many a reader may leave unread."""

    events: int = 2000
    ttl_us: int = 600_000_000
    unread: int = 2001  # all kept events and a status


DEFAULT_BOUNDS = Bounds()


class Ring:
    """The events of one run; safe for threads. `clock` gives microseconds since 1970, `last_seq` is used up already."""

    def __init__(
        self, run_id: str, clock: Callable[[], int], bounds: Bounds = DEFAULT_BOUNDS, last_seq: int = 0
    ) -> None:
        self.run_id = run_id
        self.last_seq = last_seq
        self._clock = clock
        self._bounds = bounds
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._base = 0  # position of the first stored entry
        self._newest = 0  # position of the first entry of the last `put`
        # Readers that are up to date make the same request: cache the last one.
        self._request: tuple[str, int, int, int] = ("", -1, -1, -1)
        self._response: tuple[list[Entry], int, bool] = ([], -1, False)

    def __len__(self) -> int:
        """The number of readable events."""
        with self._lock:
            return self._end - self._oldest()

    def put(self, events: Iterable[StreamEvent]) -> list[Entry]:
        """Number events and make them readable."""
        events, now = list(events), self._clock()
        ts = moment(now)
        with self._lock:
            self._newest = self._end
            return [self._add(event, now, ts) for event in events]

    def number(self, body: bytes) -> bytes:
        """Number an event that is not streamed; returns its JSON."""
        ts = moment(self._clock())
        with self._lock:
            self.last_seq += 1
            return event_json(event_id(self.run_id, self.last_seq), ts, body)

    def subscribe(self, equivalent: str, after: str | None, status: StreamEvent) -> "Cursor":
        """A cursor after the event `after`, or at the end; adds `status` first. Raises `EventGone`."""
        now = self._clock()
        with self._lock:
            start = self._end if after is None else self._place_after(after)
            replay = sum(_concerns(entry, equivalent) for entry in self._entries[start - self._base :])
            if replay + 1 > self._bounds.unread:
                raise _gone(after or "", f"{replay} events came after it, more than a reader may leave unread")
            self._newest = self._end
            self._add(status, now, moment(now))
            return Cursor(self, equivalent, start)

    def after(self, equivalent: str, after: str | None) -> list[bytes]:
        """The JSON of the events after one, or of all stored ones; raises `EventGone`."""
        with self._lock:
            start = self._oldest() if after is None else self._place_after(after)
            return [entry.data for entry in self._entries[start - self._base :] if _concerns(entry, equivalent)]

    def read(self, equivalent: str, start: int, most: int) -> tuple[list[Entry], int, bool]:
        """Up to `most` events from a position on, the position after them, and whether the stream ends."""
        with self._lock:
            # A subscribed reader may read stored events that are too old for new subscribers.
            if start < self._base or self._is_too_far_behind(equivalent, start):
                return [], start, True
            request = (equivalent, start, most, self._end)
            if request != self._request:
                self._request, self._response = request, self._read(equivalent, start, most)
            return self._response

    def _read(self, equivalent: str, start: int, most: int) -> tuple[list[Entry], int, bool]:
        entries: list[Entry] = []
        for place in range(start, self._end):
            entry = self._entries[place - self._base]
            if _concerns(entry, equivalent):
                entries.append(entry)
            # A terminal event with successors is not the end: the run was restarted.
            if entry.terminal and place + 1 == self._end:
                return entries, place + 1, True
            if len(entries) == most:
                return entries, place + 1, False
        return entries, self._end, False

    def _is_too_far_behind(self, equivalent: str, start: int) -> bool:
        # Events of the last `put` do not count: no reader can have read them yet.
        if self._newest - start <= self._bounds.unread:
            return False
        unread = self._entries[start - self._base : self._newest - self._base]
        return sum(_concerns(entry, equivalent) for entry in unread) > self._bounds.unread

    @property
    def _end(self) -> int:
        return self._base + len(self._entries)

    def _oldest(self) -> int:
        """The position of the oldest readable event."""
        cutoff = self._clock() - self._bounds.ttl_us
        young = bisect_right(self._entries, cutoff, key=lambda entry: entry.at_us)
        return max(self._base + young, self._end - self._bounds.events)

    def _add(self, event: StreamEvent, now: int, ts: str) -> Entry:
        self.last_seq += 1
        name = event_id(self.run_id, self.last_seq)
        data = event_json(name, ts, event.body)
        frame = b"id: %b\nevent: simulator.event%b%b%b" % (name.encode(), _DATA, data, _END)
        entry = Entry(name, event.type, self.last_seq, now, event.equivalent, frame=frame, terminal=event.terminal)
        self._entries.append(entry)
        # A surplus, so that most additions move no entries.
        spare = max(2, self._bounds.events // SPARE)
        if len(self._entries) > self._bounds.events + spare:
            gone = len(self._entries) - self._bounds.events - spare // 2
            del self._entries[:gone]
            self._base += gone
        return entry

    def _place_after(self, name: str) -> int:
        match = _ID.fullmatch(name)
        if match is None or match["run"] != self.run_id:
            raise _gone(name, "it is not an event of this run")
        seq = int(match["seq"])
        if seq > self.last_seq:
            raise _gone(name, "there is no such event yet")
        place = self._base + bisect_right(self._entries, seq, key=lambda entry: entry.seq)
        oldest = self._oldest()
        if place < oldest or (place == oldest and seq < self._first_seq(oldest) - 1):
            raise _gone(name, "later events were dropped")
        return place

    def _first_seq(self, place: int) -> int:
        """The first readable number; numbers that were never streamed do not count as missing."""
        if place > self._base:
            return self._entries[place - self._base - 1].seq + 1
        return self._entries[0].seq if self._entries else self.last_seq + 1


class Cursor:
    """The position of one reader; `take` never blocks. `over` is set when the stream has ended."""

    last = None  # the status that comes first has an id

    def __init__(self, ring: Ring, equivalent: str, place: int) -> None:
        self._ring = ring
        self._equivalent = equivalent
        self._place = place
        self.over = False

    def take(self, most: int) -> Sequence[Entry]:
        entries, self._place, self.over = self._ring.read(self._equivalent, self._place, most)
        return entries


def event_id(run_id: str, seq: int) -> str:
    return f"evt_{run_id}_{seq:06}"


def event_json(name: str, ts: str, body: bytes) -> bytes:
    """The JSON of an event with its id and its time."""
    return b'{"event_id":"%b","ts":"%b",%b' % (name.encode(), ts.encode(), body[1:])


def _concerns(entry: Entry, equivalent: str) -> bool:
    return entry.equivalent is None or entry.equivalent == equivalent


def _gone(name: str, why: str) -> EventGone:
    return EventGone(
        f"The events after {name[:100]!r} are not available: {why}; fetch the run again", event_id=name[:100]
    )
