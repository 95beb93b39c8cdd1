"""Reads of the past: their threads, past states of an engine, and the index of a journal by time.

Slow reads never delay a command. A lane has a few threads and a short queue; a read that finds the queue full is
refused. One caller can use only a part of the queue, and never all threads. A read has a time limit and is cancelled
when its caller disconnects. Replays, reads of records and what-ifs have separate lanes: reading the newest records does
not wait for a replay of a year.

Restoring a past state takes the nearest earlier snapshot and replay, which can take seconds; a reader that plays or
steps through a journal reads one state after another and continues from the cached engine. One reader at a time uses
it.

The index behind a time slider is built on first use and updated on each use with the records added since. It has a
bounded number of times, thinned evenly, and the newest incidents.
"""

import asyncio
import re
import threading
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct
from starlette.requests import ClientDisconnect

from pendula.kernel.cancellation import Cancellation, Cancelled, cancellable
from pendula.kernel.canonical import Reader, decode, encode
from pendula.kernel.engine import UNKNOWN, Engine, shown_stored, stored_sentence
from pendula.kernel.frames import Record, read_input, read_outcome
from pendula.kernel.journal import Journal, RecordsPruned
from pendula.kernel.limits import PAST_READS, PAST_READS_PER_CALLER, READ_SECONDS
from pendula.kernel.replay import follow
from pendula.kernel.time import parse_utc
from pendula.server.errors import PastBusy, ReadTooLong
from pendula.server.security.identity import Asking, asking
from pendula.server.settings import Settings
from pendula.server.views import Incident, Moment, MomentView

THREADS = 2

A = TypeVar("A")
B = TypeVar("B")

MOST_TIMES = 4096
MOST_INCIDENTS = 10_000


class Lane:
    """A bounded thread pool for one kind of long read. Used on the event loop."""

    def __init__(
        self,
        name: str,
        most_waiting: int = PAST_READS.default,
        threads: int = THREADS,
        most_of_one: int = PAST_READS_PER_CALLER.default,
        seconds: float = READ_SECONDS.default,
    ) -> None:
        self._most = most_waiting
        self._capacity = threads + most_waiting
        self._most_of_one = most_of_one
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._free = asyncio.Semaphore(threads)
        self._share = max(1, threads - 1)
        self._callers: dict[str, _Caller] = {}
        self.inside = 0

    @classmethod
    def of(cls, name: str, settings: Settings, threads: int = THREADS, times: int = 1) -> "Lane":
        """A lane with the limits of the server settings; `times` multiplies the queue for short reads."""
        allowed = settings.allowed
        waiting, of_one = times * allowed(PAST_READS), times * allowed(PAST_READS_PER_CALLER)
        return cls(name, waiting, threads, of_one, allowed(READ_SECONDS))

    async def look(self, read: Callable[[], A]) -> A:
        """The result of `read`, repeated once if a segment was pruned meanwhile.

        Raises `PastBusy`, `ReadTooLong`, and `ClientDisconnect` if the caller has left.
        """
        try:
            return await self._run(_nothing, lambda _: read())
        except (FileNotFoundError, RecordsPruned):
            return await self._run(_nothing, lambda _: read())

    async def look_at(self, fetch: Callable[[], Awaitable[B]], read: Callable[[B], A]) -> A:
        """The result of `read` for the result of `fetch`, which is large and therefore fetched once a thread is free.

        Raises as `look` does.
        """
        return await self._run(fetch, read)

    def close(self) -> None:
        """Stop the threads after their current reads and cancel queued ones."""
        self._threads.shutdown(cancel_futures=True)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place in the queue; raises `PastBusy`."""
        if self.inside >= self._capacity:
            raise PastBusy(
                f"{self._most} reads are already waiting; try again in a moment",
                limit=PAST_READS.name,
                allowed=self._most,
            )
        name = _name_of(asking.get())
        caller = self._callers.get(name) or _Caller(self._share)
        if name and caller.inside >= self._most_of_one:
            raise PastBusy(
                f"{name} has {caller.inside} reads running or waiting; the limit is {self._most_of_one}",
                limit=PAST_READS_PER_CALLER.name,
                allowed=self._most_of_one,
            )
        self._callers[name] = caller
        self.inside += 1
        caller.inside += 1
        try:
            yield
        finally:
            self.inside -= 1
            caller.inside -= 1
            if not caller.inside:
                del self._callers[name]

    async def _run(self, fetch: Callable[[], Awaitable[B]], read: Callable[[B], A]) -> A:
        with self.place():
            who = asking.get()
            work = _Work(fetch, read, Cancellation())
            if who is None:
                return await self._work(work)
            working = asyncio.ensure_future(self._in_turn(self._callers[who.caller], work))
            leaving = asyncio.ensure_future(who.left())
            try:
                await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
                if not working.done():
                    work.cancellation.cancel()
                    if not work.begun:
                        working.cancel()
                    # The place is freed together with the thread.
                    await asyncio.wait((working,))
                    raise ClientDisconnect
                return working.result()
            finally:
                for task in (working, leaving):
                    task.cancel()
                await asyncio.gather(working, leaving, return_exceptions=True)

    async def _in_turn(self, caller: "_Caller", work: "_Work[B, A]") -> A:
        async with caller.turn:
            return await self._work(work)

    async def _work(self, work: "_Work[B, A]") -> A:
        loop = asyncio.get_running_loop()
        cancellation = work.cancellation
        clock: asyncio.TimerHandle | None = None

        def begin() -> None:
            nonlocal clock
            clock = loop.call_later(self._seconds, cancellation.cancel)

        # A queued read holds nothing large and uses no engine time.
        async with self._free:
            fetched = await work.fetch()

            def read() -> A:
                # The limit starts here; time in the queue does not count.
                loop.call_soon_threadsafe(begin)
                with cancellable(cancellation):
                    return work.read(fetched)

            try:
                work.begun = True
                return await loop.run_in_executor(self._threads, read)
            except Cancelled as given_up:
                raise ReadTooLong(
                    f"This takes more than {self._seconds} s; ask for less, or for a moment nearer to a checkpoint",
                    limit=READ_SECONDS.name,
                    allowed=self._seconds,
                ) from given_up
            except asyncio.CancelledError:
                cancellation.cancel()
                raise
            finally:
                if clock is not None:
                    clock.cancel()


class _Work(Generic[B, A]):
    """A read: `fetch` and `read`; `begun` is set once a thread has started it."""

    def __init__(self, fetch: Callable[[], Awaitable[B]], read: Callable[[B], A], cancellation: Cancellation) -> None:
        self.fetch = fetch
        self.read = read
        self.cancellation = cancellation
        self.begun = False


async def _nothing() -> None: ...


class _Caller:
    """The reads of one caller in a lane."""

    def __init__(self, share: int) -> None:
        self.inside = 0
        self.turn = asyncio.Semaphore(share)


def _name_of(who: Asking | None) -> str:
    return "" if who is None else who.caller


class Past:
    """The lanes of one server."""

    def __init__(self, settings: Settings) -> None:
        self.replays = Lane.of("replays", settings)
        self.records = Lane.of("records", settings)
        self.what_ifs = Lane.of("what-ifs", settings, threads=1)

    def close(self) -> None:
        for lane in (self.replays, self.records, self.what_ifs):
            lane.close()


AnyEngine = Engine[Any, Any]


class CachedEngine(Struct, frozen=True):
    """An engine as of record `n`."""

    engine: AnyEngine
    n: int


class PastEngines:
    """Past states of the engine of one journal, restored by `engine_at`. Thread-safe."""

    def __init__(self, journal: Journal, engine_at: Callable[[int], AnyEngine]) -> None:
        self._journal = journal
        self._make = engine_at
        self._lock = threading.Lock()
        self._kept: CachedEngine | None = None

    @contextmanager
    def at(self, n: int) -> Iterator[AnyEngine]:
        """The engine as of record `n`, for reading only; raises `UnknownRecord`."""
        with self._lock:
            kept, self._kept = self._kept, None
        lent = self._engine_at(kept, n)
        yield lent.engine
        with self._lock:
            # Not reached if the reader raised: its engine may have changed and is discarded.
            self._kept = lent

    def _engine_at(self, kept: CachedEngine | None, n: int) -> CachedEngine:
        journal = self._journal
        nearest = max((at for at, _ in journal.snapshots() if at <= n), default=-1)
        if kept is None or not max(nearest, journal.first_n - 1) <= kept.n <= n <= journal.durable_n:
            # At a snapshot no record is applied; without one, start at the first.
            start = nearest if nearest >= 0 else journal.first_n
            if not start <= n <= journal.durable_n:
                return CachedEngine(self._make(n), n)
            kept = CachedEngine(self._make(start), start)
        at = kept.n
        try:
            for record, _ in islice(follow(kept.engine, journal, kept.n + 1), n - kept.n):
                at = record.n
        except Cancelled:
            # The engine is between two records: the next read continues from here.
            with self._lock:
                self._kept = CachedEngine(kept.engine, at)
            raise
        return CachedEngine(kept.engine, n)


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
