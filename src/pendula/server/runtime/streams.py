"""Server-sent events with ids, resume after the last event seen, and explicit gaps.

A reader has a slot and a cursor, not a queue: nothing is stored for a slow reader, and one that falls out of the buffer
gets a gap. A stream ends when its reader disconnects, when its token is no longer valid, or when the server stops.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar

from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from msgspec import Struct
from starlette.types import Receive, Scope, Send

from pendula.kernel import canonical
from pendula.kernel.cancellation import Cancellation, cancellable, check
from pendula.kernel.errors import WorldBroken
from pendula.kernel.limits import STREAMS, STREAMS_PER_TOKEN
from pendula.kernel.stream import Gap, Published
from pendula.server.errors import StreamsOfTokenUsedUp, StreamsUsedUp
from pendula.server.monitoring import Metrics
from pendula.server.runtime.engine_host import EngineHost
from pendula.server.security.identity import Principal
from pendula.server.settings import Settings
from pendula.server.views import GapView

AT_ONCE = 256
THREADS = 4  # for readers that catch up out of journals
# After this many filtered events an id is sent, so that a resuming reader need not skip them again.
MOST_LEFT_OUT = 1000
KEEP_ALIVE_SECONDS = 15
OPENING = b": open\n\n"
# An id without an event: a reader that disconnects before its first event resumes here.
OPENING_AFTER = OPENING + b"id: %b\n\n"

Item_co = TypeVar("Item_co", covariant=True)
Item = TypeVar("Item")
A = TypeVar("A")


class Place(Protocol[Item_co]):
    """The position of a reader; `over` once the source has ended."""

    @property
    def over(self) -> bool: ...

    @property
    def last(self) -> str | None:
        """The id of the last event taken; None if the first item has one."""
        ...

    def take(self, most: int, /) -> Sequence[Item_co]: ...


class Source(Protocol[Item_co]):
    """A source of events, such as an engine."""

    def listen(self, wake: asyncio.Event, /) -> Callable[[], None]: ...

    async def subscribe(self, after: str | None, /) -> Place[Item_co]: ...


class Framing(Struct, Generic[Item], frozen=True):
    """The wire format of a stream: opening, items, keep-alive."""

    write: Callable[[Iterable[Item]], bytes]
    opening: bytes = OPENING
    keep_alive: bytes = KEEPALIVE_COMMENT
    headers: tuple[tuple[str, str], ...] = (("cache-control", "no-store"),)


class StreamLedger:
    """Counts open streams by caller; a stream over a limit is refused."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._most = settings.allowed(STREAMS)
        self._most_each = settings.allowed(STREAMS_PER_TOKEN)
        self._open: Counter[str] = Counter()
        self._answers: dict[Principal, bool] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="streams")
        self.stopping = False
        metrics.streams.set_function(self._open.total)

    def admit(self, name: str) -> Callable[[], None]:
        """Take a slot; returns the function that releases it."""
        if self._open.total() >= self._most:
            raise StreamsUsedUp(
                f"{self._most} streams are open, which is the limit", limit=STREAMS.name, allowed=self._most
            )
        if self._open[name] >= self._most_each:
            raise StreamsOfTokenUsedUp(
                f"{name} has {self._most_each} streams open, which is the limit for one token",
                limit=STREAMS_PER_TOKEN.name,
                allowed=self._most_each,
            )
        self._open[name] += 1
        return lambda: self._open.subtract([name])

    async def read(self, take: Callable[[], A]) -> A:
        """Run `take`, which may read a journal, in a stream thread; cancelled when the reader disconnects."""
        cancellation = Cancellation()

        def work() -> A:
            with cancellable(cancellation):
                check()
                return take()

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            cancellation.cancel()
            raise

    def close(self) -> None:
        """Stop the threads after their current work."""
        self._threads.shutdown(cancel_futures=True)

    def check_once(self, principal: Principal, good: Callable[[Principal], bool]) -> bool:
        """The result of `good`, computed once per caller and turn of the event loop."""
        if principal not in self._answers:
            if not self._answers:
                asyncio.get_running_loop().call_soon(self._answers.clear)
            self._answers[principal] = good(principal)
        return self._answers[principal]


class StreamResponse(EventSourceResponse):
    """Releases its slot however it ends, also if the reader disconnects during a write."""

    def __init__(
        self, content: AsyncIterator[bytes], at_end: Callable[[], None], headers: Iterable[tuple[str, str]]
    ) -> None:
        super().__init__(content, headers={**dict(headers), "x-accel-buffering": "no"})
        self._at_end = at_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._at_end()


class Alarm:
    """Sets an event after every period of silence; a timer per wait would cost more than most events."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, wake: asyncio.Event) -> None:
        self._loop = loop
        self._seconds = seconds
        self._wake = wake
        self._since = loop.time()
        self._handle = loop.call_at(self._since + seconds, self._ring)

    def put_off(self) -> None:
        """Restart the period, after something was sent."""
        self._since = self._loop.time()

    def rang(self) -> bool:
        """Whether the period has passed; if so it restarts."""
        if self._loop.time() - self._since < self._seconds:
            return False
        self.put_off()
        return True

    def cancel(self) -> None:
        self._handle.cancel()

    def _ring(self) -> None:
        due = self._since + self._seconds
        if due <= self._loop.time():
            self._wake.set()
            due = self._loop.time() + self._seconds
        self._handle = self._loop.call_at(due, self._ring)


class Reader(Generic[Item]):
    """One open stream of a source."""

    def __init__(
        self,
        source: Source[Item],
        ledger: StreamLedger,
        principal: Principal,
        good: Callable[[Principal], bool],
        framing: Framing[Item],
    ) -> None:
        self._source = source
        self._ledger = ledger
        self._principal = principal
        self._good = good
        self._framing = framing
        self._wake = asyncio.Event()

    async def open(self, after: str | None) -> StreamResponse:
        """Subscribe after the event `after`; later events are delivered or reported as a gap."""
        leave = self._ledger.admit(self._principal.name)
        try:
            unsubscribe = self._source.listen(self._wake)
        except BaseException:
            leave()
            raise

        def end() -> None:
            leave()
            unsubscribe()

        try:
            place = await self._source.subscribe(after)
        except BaseException:
            end()
            raise
        return StreamResponse(self._chunks(place), end, self._framing.headers)

    async def _chunks(self, place: Place[Item]) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        alarm = Alarm(loop, KEEP_ALIVE_SECONDS, self._wake)
        try:
            yield self._framing.opening if place.last is None else OPENING_AFTER % place.last.encode()
            behind = True
            while self._may_look():
                # Cleared before reading: an event published in between sets it again.
                self._wake.clear()
                # Older events may come from the journal; the event loop must not wait for a disk.
                items = await self._ledger.read(lambda: place.take(AT_ONCE)) if behind else place.take(AT_ONCE)
                behind = behind and len(items) == AT_ONCE
                frames = self._framing.write(items) if items else b""
                if frames:
                    yield frames
                    alarm.put_off()
                if place.over or (not items and self._ledger.stopping):
                    return
                if alarm.rang():
                    yield self._framing.keep_alive
                # A read that returned items may have stopped at the end of the journal, with more in the buffer.
                if not items:
                    await self._wake.wait()
        finally:
            alarm.cancel()

    def _may_look(self) -> bool:
        try:
            return self._good(self._principal)
        except WorldBroken:
            # Without readable tokens no caller is authenticated: the stream ends.
            return False


def engine_framing(host: EngineHost, types: Collection[str] = ()) -> Framing[Published[Any] | Gap]:
    """The stream of an engine: `event` with an id, `gap` for missed events. With `types` only these events; after many
    others only an id is sent, so that a resuming reader need not skip them again."""
    left_out = 0

    def one(item: Published[Any] | Gap) -> bytes:
        nonlocal left_out
        match item:
            case Published() if types and type_of(item.event) not in types:
                left_out = (left_out + 1) % MOST_LEFT_OUT
                return b"" if left_out else b"id: %b\n\n" % item.id.encode()
            case Published():
                left_out = 0
                return format_sse_event(data_str=item.shown.decode(), event="event", id=item.id)
            case Gap(missed, after, following):
                host.count_gap()
                # A gap has no id: a reader resumes after the last event it saw.
                view = GapView(missed, after, following)
                return format_sse_event(data_str=canonical.encode(view).decode(), event="gap")

    return Framing(lambda items: b"".join(map(one, items)))


def type_of(event: Struct | type[Struct]) -> str:
    """The `type` of an event in its canonical form."""
    return str(event.__struct_config__.tag)
