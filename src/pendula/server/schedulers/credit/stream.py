"""The events of one served run, numbered and in the form of the protocol, for any number of readers.

An event gets its id (`evt_<run>_<number>`) when it becomes readable, and is rendered once, for readers and files. A
reader is a position in the ring, not a queue. The stream of a reader that falls too far behind ends, so that there are
no gaps; it reconnects after its last event, or gets `EventGone`.

Internal events (`clearing.decision`, `note`, and `tick` unless enabled for debugging) are not streamed. Display keys
are derived from the events and not journalled.
"""

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from pendula.credit.events import ClearingDecision, Event, Note, RunStatus, Ticked, TxFailed, TxUpdated
from pendula.credit.money import atoms
from pendula.credit.runs.artifacts import event_id, event_json, moment, tick_form
from pendula.credit.state.network import Network
from pendula.credit.views import DisplayKeys
from pendula.kernel.canonical import encode
from pendula.kernel.stream import Ring
from pendula.server.errors import HttpRefused

TTL_MS = 1200
EDGE_STYLE = {"viz_width_key": "highlight", "viz_alpha_key": "hi"}
OFF_THE_STREAM = (ClearingDecision, Note, RunStatus, Ticked)
# The ring holds a quarter more events than are readable: for readers that subscribed and have not read yet.
SPARE = 4

_ID = re.compile(r"evt_(?P<run>.+)_(?P<seq>[0-9]{6,18})")
_DATA, _END = b"\ndata: ", b"\n\n"


class EventGone(HttpRefused):
    """The events after this one are not available. Facts: `event_id`."""

    code = "EVENT_ID_GONE"
    status = 410


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

    def concerns(self, equivalent: str) -> bool:
        return self.equivalent is None or self.equivalent == equivalent


class Bounds(Struct, frozen=True):
    """How many events are kept, how long, and how many a reader may leave unread."""

    events: int = 2000
    ttl_us: int = 600_000_000
    unread: int = 2001  # all kept events and a status


DEFAULT_BOUNDS = Bounds()


class RunStream:
    """The events of one run; safe for threads. `clock` gives microseconds since 1970, `last_seq` is used up already."""

    def __init__(
        self, run_id: str, clock: Callable[[], int], bounds: Bounds = DEFAULT_BOUNDS, last_seq: int = 0
    ) -> None:
        self.run_id = run_id
        self.last_seq = last_seq
        self._clock = clock
        self._bounds = bounds
        self._lock = threading.Lock()
        self._ring: Ring[Entry] = Ring(bounds.events + max(2, bounds.events // SPARE))
        self._newest = 0  # position of the first entry of the last `put`
        # Readers that are up to date make the same request: cache the last one.
        self._request: tuple[str, int, int, int] = ("", -1, -1, -1)
        self._response: tuple[list[Entry], int, bool] = ([], -1, False)

    def __len__(self) -> int:
        """The number of readable events."""
        with self._lock:
            return self._ring.end - self._oldest()

    def put(self, events: Iterable[StreamEvent]) -> list[Entry]:
        """Number events and make them readable."""
        events, now = list(events), self._clock()
        ts = moment(now)
        with self._lock:
            self._newest = self._ring.end
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
            start = self._ring.end if after is None else self._place_after(after)
            replay = self._count(equivalent, start, self._ring.end)
            if replay + 1 > self._bounds.unread:
                raise _gone(after or "", f"{replay} events came after it, more than a reader may leave unread")
            self._newest = self._ring.end
            self._add(status, now, moment(now))
            return Cursor(self, equivalent, start)

    def after(self, equivalent: str, after: str | None) -> list[bytes]:
        """The JSON of the events after one, or of all stored ones; raises `EventGone`."""
        with self._lock:
            start = self._oldest() if after is None else self._place_after(after)
            return [entry.data for entry in self._ring.items(start, self._ring.end) if entry.concerns(equivalent)]

    def read(self, equivalent: str, start: int, most: int) -> tuple[list[Entry], int, bool]:
        """Up to `most` events from a position on, the position after them, and whether the stream ends."""
        with self._lock:
            # A subscribed reader may read stored events that are too old for new subscribers.
            if start < self._ring.base or self._is_too_far_behind(equivalent, start):
                return [], start, True
            request = (equivalent, start, most, self._ring.end)
            if request != self._request:
                self._request, self._response = request, self._read(equivalent, start, most)
            return self._response

    def _read(self, equivalent: str, start: int, most: int) -> tuple[list[Entry], int, bool]:
        end = self._ring.end
        entries: list[Entry] = []
        for place, entry in enumerate(self._ring.items(start, end), start + 1):
            if entry.concerns(equivalent):
                entries.append(entry)
            # A terminal event with successors is not the end: the run was restarted.
            if entry.terminal and place == end:
                return entries, place, True
            if len(entries) == most:
                return entries, place, False
        return entries, end, False

    def _is_too_far_behind(self, equivalent: str, start: int) -> bool:
        # Events of the last `put` do not count: no reader can have read them yet.
        if self._newest - start <= self._bounds.unread:
            return False
        return self._count(equivalent, start, self._newest) > self._bounds.unread

    def _count(self, equivalent: str, start: int, stop: int) -> int:
        return sum(entry.concerns(equivalent) for entry in self._ring.items(start, stop))

    def _oldest(self) -> int:
        """The position of the oldest readable event."""
        young = self._ring.after(lambda entry: entry.at_us, self._clock() - self._bounds.ttl_us)
        return max(young, self._ring.end - self._bounds.events)

    def _add(self, event: StreamEvent, now: int, ts: str) -> Entry:
        self.last_seq += 1
        name = event_id(self.run_id, self.last_seq)
        data = event_json(name, ts, event.body)
        frame = b"id: %b\nevent: simulator.event%b%b%b" % (name.encode(), _DATA, data, _END)
        entry = Entry(name, event.type, self.last_seq, now, event.equivalent, frame=frame, terminal=event.terminal)
        self._ring.append(entry)
        return entry

    def _place_after(self, name: str) -> int:
        match = _ID.fullmatch(name)
        if match is None or match["run"] != self.run_id:
            raise _gone(name, "it is not an event of this run")
        seq = int(match["seq"])
        if seq > self.last_seq:
            raise _gone(name, "there is no such event yet")
        place, oldest = self._ring.after(lambda entry: entry.seq, seq), self._oldest()
        if place < oldest or (place == oldest and seq < self._first_seq(oldest) - 1):
            raise _gone(name, "later events were dropped")
        return place

    def _first_seq(self, place: int) -> int:
        """The first readable number; numbers that were never streamed do not count as missing."""
        ring = self._ring
        if place > ring.base:
            return ring[place - 1].seq + 1
        return ring[ring.base].seq if ring.base < ring.end else self.last_seq + 1


class Cursor:
    """The position of one reader; `take` never blocks. `over` is set when the stream has ended."""

    last = None  # the status that comes first has an id

    def __init__(self, stream: RunStream, equivalent: str, place: int) -> None:
        self._stream = stream
        self._equivalent = equivalent
        self._place = place
        self.over = False

    def take(self, most: int) -> Sequence[Entry]:
        entries, self._place, self.over = self._stream.read(self._equivalent, self._place, most)
        return entries


class Renderer:
    """Renders events for the current network, in the forms of the protocol; create one per batch of events."""

    def __init__(self, network: Network, ts: str, ticks: bool = False) -> None:
        """`ticks` adds a debug event for each tick."""
        self._ticks = ticks
        self._network = network
        self._ts = ts
        self._keys: dict[str, DisplayKeys] = {}

    def render(self, event: Event, data: bytes) -> StreamEvent | None:
        """The event as it is streamed, None if it is not; `data` is its canonical JSON, often all of it."""
        if isinstance(event, Ticked) and self._ticks:
            return StreamEvent("tick", None, tick_form(event))
        if isinstance(event, OFF_THE_STREAM):
            return None
        kind = str(event.__struct_config__.tag)
        patched = getattr(event, "payload", event)
        if not isinstance(event, TxUpdated | TxFailed) and not (
            _members(patched, "node_patch") or _members(patched, "edge_patch")
        ):
            return StreamEvent(kind, event.equivalent, data)
        form: dict[str, Any] = msgspec.to_builtins(event, builtin_types=(Decimal,))
        match event:
            case TxUpdated():
                form |= {"amount_flyout": True, "ttl_ms": TTL_MS, "intensity_key": "active"}
                form["edges"] = [edge | {"style": EDGE_STYLE} for edge in form["edges"]]
            case TxFailed():
                form["error"] |= {"message": event.message, "at": self._ts}
            case _:
                pass
        self._add_style(event.equivalent, form.get("payload", form))
        return StreamEvent(kind, event.equivalent, encode(form))

    def _add_style(self, equivalent: str, form: Mapping[str, Any]) -> None:
        """Add display keys to the patches."""
        if not (form.get("node_patch") or form.get("edge_patch")) or equivalent not in self._network.ledgers:
            return
        if equivalent not in self._keys:
            self._keys[equivalent] = DisplayKeys(self._network.ledgers[equivalent].book)
        keys, index = self._keys[equivalent], self._network.people.index
        for patch in form.get("node_patch", ()):
            patch.update(keys.node(index[patch["id"]]))
        for patch in form.get("edge_patch", ()):
            patch.update(keys.link(atoms(patch["used"]), atoms(patch["trust_limit"])))


def _members(part: object, name: str) -> bool:
    """Whether a part of an event has members of this name."""
    return getattr(part, name, UNSET) not in (UNSET, ())


def _gone(name: str, why: str) -> EventGone:
    return EventGone(
        f"The events after {name[:100]!r} are not available: {why}; fetch the run again", event_id=name[:100]
    )
