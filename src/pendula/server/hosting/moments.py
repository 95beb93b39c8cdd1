"""The index behind a time slider: the times of a journal's records, and its incidents.

Built on first use and updated on each use with the records added since. It has a bounded number of times, thinned
evenly, and the newest incidents. Thread-safe.
"""

import re
import threading
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, cast

from pendula.kernel.bodies import read_input, read_outcome
from pendula.kernel.canonical import Reader, decode, encode
from pendula.kernel.engine import Engine
from pendula.kernel.frames import Record
from pendula.kernel.journal import Journal
from pendula.kernel.sentences import UNKNOWN, shown_stored, stored_sentence
from pendula.kernel.time import parse_utc
from pendula.server.views import Incident, Moment, MomentView

MOST_TIMES = 4096
MOST_INCIDENTS = 10_000

Facts = Mapping[str, Any]
# Maps event tags to functions that return a sentence for an incident, or None if the event is not one.
Incidents = Mapping[str, Callable[[Facts], str | None]]


class Moments:
    """The index of one journal."""

    def __init__(self, journal: Journal, incidents: Incidents, kind: type[Engine[Any, Any]] | None = None) -> None:
        self._journal = journal
        self._told = incidents
        self._kind = kind
        self._read_event: Reader[Any] | None = Reader(kind.events) if kind else None
        tags = "|".join(re.escape(tag) for tag in incidents)
        # Searched in the bytes: decoding every outcome of a long journal would take minutes.
        self._trouble = re.compile(rb'"refusal":\{' + (rb'|"type":"(' + tags.encode() + rb')"' if tags else b""))
        self._lock = threading.Lock()
        self._times: list[Moment] = []
        self._every = 1
        self._newest = -1
        self._incidents: deque[Incident] = deque(maxlen=MOST_INCIDENTS)
        self._next = 0

    def spread(self, points: int) -> list[Moment]:
        """The first and last moment and others evenly between them, at most `points`."""
        with self._lock:
            self._read_on()
            last = len(self._times) - 1
            places = sorted({round(last * place / max(1, points - 1)) for place in range(points)}) if last >= 0 else []
            return [self._times[place] for place in places]

    def at_record(self, n: int) -> MomentView:
        """The moment of record `n`, with the wall-clock time of its command."""
        return self._last(lambda moment: moment.n <= n)

    def at_time(self, t: int) -> MomentView:
        """The last moment not after engine time `t`, or the first one."""
        return self._last(lambda moment: moment.t <= t)

    def at_wall_time(self, micros: int) -> MomentView:
        """The last moment not after a wall-clock time, or the first one. Ambiguous if that clock was set back."""
        return self._last(lambda moment: moment.at is None or parse_utc(moment.at) <= micros)

    def next_incident(self, after: int) -> Incident | None:
        """The first incident after record `after`."""
        with self._lock:
            self._read_on()
            place = bisect_right(self._incidents, after, key=lambda incident: incident.n)
            return self._incidents[place] if place < len(self._incidents) else None

    def incident_before(self, before: int) -> Incident | None:
        """The last incident before record `before`."""
        with self._lock:
            self._read_on()
            place = bisect_left(self._incidents, before, key=lambda incident: incident.n)
            return self._incidents[place - 1] if place > 0 else None

    def _last(self, is_not_after: Callable[[Moment], bool]) -> MomentView:
        with self._lock:
            self._read_on()
            times = self._times
            if not times:
                return MomentView(None, None)
            found = times[max(0, bisect_left(times, True, key=lambda moment: not is_not_after(moment)) - 1)]
        for record in self._journal.read(found.n + 1):
            moment = Moment(record.n, record.t, _wall_time(record) or found.at)
            if not is_not_after(moment):
                return MomentView(found, moment)
            found = moment
        return MomentView(found, None)

    def _read_on(self) -> None:
        for record in self._journal.read(max(self._next, self._journal.first_n)):
            self._take(record)
            self._next = record.n + 1
        first = self._journal.first_n
        if self._times and self._times[0].n < first:
            self._times = [moment for moment in self._times if moment.n >= first]
        while self._incidents and self._incidents[0].n < first:
            self._incidents.popleft()

    def _take(self, record: Record) -> None:
        if record.kind == "input":
            self._keep(Moment(record.n, record.t, _wall_time(record)))
        elif record.kind == "outcome" and self._trouble.search(record.body) is not None:
            self._note(record)

    def _keep(self, moment: Moment) -> None:
        """Keep every k-th moment and always the newest, which the next one replaces."""
        if self._times and self._newest % self._every:
            self._times.pop()
        self._times.append(moment)
        self._newest += 1
        if len(self._times) > MOST_TIMES:
            # The limit is even, so the newest moment, at the index after it, is kept.
            self._times = self._times[::2]
            self._every *= 2

    def _note(self, record: Record) -> None:
        outcome = read_outcome(record.body)
        refusal: Any = decode(bytes(outcome.refusal))
        if refusal is not None:
            self._incidents.append(Incident(record.n, record.t, str(refusal["code"]), self._sentence(refusal)))
            return
        events: Any = decode(bytes(outcome.events)) if bytes(outcome.events) else []
        for event in events:
            tag = str(event.get("type"))
            sentence = self._incident_sentence(tag, self._shown(event))
            if sentence is not None:
                self._incidents.append(Incident(record.n, record.t, str(event.get("code", tag)), sentence))
                return

    def _incident_sentence(self, tag: str, event: Facts) -> str | None:
        try:
            return self._told[tag](event) if tag in self._told else None
        except UNKNOWN:
            return tag

    def _sentence(self, refusal: Any) -> str:
        kind, code = self._kind, str(refusal["code"])
        return code if kind is None else stored_sentence(lambda: kind.sentence(code, refusal["facts"]), code)

    def _shown(self, event: Facts) -> Facts:
        """An event with its sentence, which is not in the journal."""
        data = encode(event)
        if self._read_event is None:
            return event
        shown: Any = decode(shown_stored(self._read_event, data))
        return cast("Facts", shown)


def _wall_time(record: Record) -> str | None:
    return read_input(record.body).meta.at if record.kind == "input" else None


def event_sentence(event: Facts) -> str:
    """The sentence of an event."""
    return str(event.get("message") or event.get("sentence") or event.get("code") or event.get("type"))
