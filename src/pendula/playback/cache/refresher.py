"""Refresh channels in the background: at most two at once, the oldest refresh first.

`Plan` decides, without clock or threads; `Refresher` runs it. A failure is counted, reported and retried, never raised.
"""

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from pendula.kernel.disk import RealDisk
from pendula.kernel.wallclock import steady_ns
from pendula.playback.cache.merge import BackOff, Page, Refreshed, Source, back_off_of, refresh_cache
from pendula.playback.cache.shelf import CacheShelf, CacheUnreachable, checked_k, checked_name, open_cache
from pendula.playback.choosing.records import BLOCK_BYTES, Shelf
from pendula.playback.model import (
    RECORDS_DEFAULT,
    ChannelTaken,
    Diagnostic,
    InvalidParameter,
    UnknownChannel,
    wrong_value,
)

AT_ONCE_MOST = 2
EVERY_MS = 15 * 60_000
DIAGNOSTICS_KEPT = 64

STOP_SECONDS = 10

OnRefreshed = Callable[[str, Shelf, Page], None]
OnFailed = Callable[[str, Diagnostic], None]
Wait = Callable[[threading.Condition, int | None], None]


class Feed(Struct, frozen=True):
    """The source of a channel and its cache file."""

    source: Source
    path: Path
    k: int = RECORDS_DEFAULT
    block_bytes: int = BLOCK_BYTES


class PlannedRefresh(Struct, eq=False):
    """A channel in the plan. Times are milliseconds of the caller's clock."""

    channel: str
    feed: Feed
    number: int
    back_off: BackOff
    due_ms: int
    refreshed_ms: int | None = None
    requested: bool = False  # requested while it ran: what it read may be older than the request


class Plan:
    """Which channel is refreshed when."""

    def __init__(self, *, seed: int, every_ms: int = EVERY_MS) -> None:
        if every_ms < 1:
            raise wrong_value("every_ms", every_ms, "an integer of 1 or more")
        self._seed = seed
        self._every_ms = every_ms
        self._turns: dict[str, PlannedRefresh] = {}
        self._running: list[PlannedRefresh] = []
        self._added = 0

    def add(self, channel: str, feed: Feed, now_ms: int) -> None:
        """Add a channel, due at once; raises `ChannelTaken`, `InvalidParameter`."""
        if channel in self._turns:
            raise ChannelTaken(f"Channel {channel!r} is refreshed already", channel=channel)
        checked_k(feed.k)
        checked_name(feed.path.name)
        for other in self._turns.values():
            if other.feed.path == feed.path:
                raise InvalidParameter(
                    f"{feed.path} is the cache of channel {other.channel!r}; each channel needs its own file",
                    parameter="path",
                    value=str(feed.path),
                    allowed="a file of no other channel",
                )
        self._turns[channel] = PlannedRefresh(channel, feed, self._added, back_off_of(self._seed, channel), now_ms)
        self._added += 1

    def remove(self, channel: str) -> None:
        """Remove a channel; raises `UnknownChannel`."""
        self._turn(channel)
        del self._turns[channel]

    def request(self, channel: str, now_ms: int) -> None:
        """Refresh a channel as soon as its back-off allows; raises `UnknownChannel`."""
        turn = self._turn(channel)
        turn.requested = turn in self._running
        if not turn.requested and not turn.back_off.failures:
            turn.due_ms = min(turn.due_ms, now_ms)

    def begin(self, now_ms: int) -> PlannedRefresh | None:
        """The next channel to refresh now, or None; at most two run at once."""
        if len(self._running) >= AT_ONCE_MOST:
            return None
        due = [turn for turn in self._waiting() if turn.due_ms <= now_ms]
        if not due:
            return None
        # On ties the channel that was added first.
        turn = min(due, key=lambda turn: (turn.refreshed_ms is not None, turn.refreshed_ms or 0, turn.number))
        self._running.append(turn)
        return turn

    def end(self, turn: PlannedRefresh, now_ms: int, *, succeeded: bool) -> None:
        """End a refresh and set when the channel is due again."""
        self._running.remove(turn)
        if succeeded:
            turn.back_off.succeeded()
            turn.refreshed_ms = now_ms
            turn.due_ms = now_ms if turn.requested else now_ms + self._every_ms
        else:
            turn.due_ms = now_ms + turn.back_off.failed()
        turn.requested = False

    def holds(self, turn: PlannedRefresh) -> bool:
        """Whether the refresh is still planned; its channel may have been removed, and added again."""
        return self._turns.get(turn.channel) is turn

    def wait_ms(self, now_ms: int) -> int | None:
        """Milliseconds until the next refresh is due; None if only a call can change that."""
        waiting = [turn.due_ms for turn in self._waiting()]
        if not waiting or len(self._running) >= AT_ONCE_MOST:
            return None
        return max(0, min(waiting) - now_ms)

    def _waiting(self) -> list[PlannedRefresh]:
        # A channel removed and added again while it runs must not have two writers.
        busy = [turn.feed.path for turn in self._running]
        return [turn for turn in self._turns.values() if turn.feed.path not in busy]

    def _turn(self, channel: str) -> PlannedRefresh:
        if channel not in self._turns:
            raise UnknownChannel(
                f"Channel {channel!r} is not refreshed; refreshed are {', '.join(self._turns) or 'none'}",
                channel=channel,
                followed=list(self._turns),
            )
        return self._turns[channel]


def steady_ms() -> int:
    """Milliseconds of the monotonic clock."""
    return steady_ns() // 1_000_000


def wait_for(wakeup: threading.Condition, milliseconds: int | None) -> None:
    """Wait for a notification or the timeout."""
    wakeup.wait(None if milliseconds is None else milliseconds / 1000)


class Refresher:
    """Runs a plan on its own threads. Thread-safe.

    `on_refreshed(channel, shelf, page)` is called after every refresh, also without new records, since the counts of
    the page may have changed; `on_failed(channel, diagnostic)` after every failure. Neither is called for a channel
    that was removed meanwhile. Both run on a thread of the refresher, without a lock.
    """

    def __init__(
        self,
        on_refreshed: OnRefreshed,
        *,
        seed: int,
        every_ms: int = EVERY_MS,
        clock: Callable[[], int] = steady_ms,
        wait: Wait = wait_for,
        on_failed: OnFailed | None = None,
    ) -> None:
        self._on_refreshed = on_refreshed
        self._on_failed = on_failed
        self._plan = Plan(seed=seed, every_ms=every_ms)
        self._clock = clock
        self._wait = wait
        # Entered directly: an interrupt in the Python code of `Condition.__enter__` would leave it held.
        self._lock = threading.RLock()
        self._wakeup = threading.Condition(self._lock)
        self._threads: list[threading.Thread] = []
        self._stopping = False
        self._diagnostics: deque[Diagnostic] = deque(maxlen=DIAGNOSTICS_KEPT)
        self._counts = {"refreshes": 0, "writes": 0, "failures": 0}

    def add(self, channel: str, feed: Feed) -> None:
        """Add a channel; raises `ChannelTaken` and `InvalidParameter`."""
        with self._lock:
            self._plan.add(channel, feed, self._clock())
            self._wakeup.notify_all()

    def remove(self, channel: str) -> None:
        """Remove a channel; a running refresh is not reported. Raises `UnknownChannel`."""
        with self._lock:
            self._plan.remove(channel)

    def request(self, channel: str) -> None:
        """Refresh a channel soon. Raises `UnknownChannel`."""
        with self._lock:
            self._plan.request(channel, self._clock())
            self._wakeup.notify_all()

    def wake(self) -> None:
        """Check the clock again."""
        with self._lock:
            self._wakeup.notify_all()

    def start(self) -> None:
        """Start the threads; a second start does nothing."""
        with self._lock:
            if self._threads:
                return
            self._stopping = False
            self._threads = [
                threading.Thread(target=self._work, name=f"refresh-{number}", daemon=True)
                for number in range(AT_ONCE_MOST)
            ]
            for thread in self._threads:
                thread.start()

    def stop(self) -> None:
        """Stop the threads; waits at most ten seconds for running refreshes, which may read a slow network folder."""
        with self._lock:
            self._stopping = True
            self._wakeup.notify_all()
            threads, self._threads = self._threads, []
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(STOP_SECONDS)

    def run_due(self) -> int:
        """Run all due refreshes in this thread; returns their number."""
        done = 0
        while (turn := self._begin()) is not None:
            self._run_refresh(turn)
            done += 1
        return done

    def diagnostics(self) -> list[Diagnostic]:
        """The last 64 failures."""
        with self._lock:
            return list(self._diagnostics)

    def stats(self) -> dict[str, int]:
        """The number of refreshes, of those that wrote a file, and of failures."""
        with self._lock:
            return dict(self._counts)

    def _work(self) -> None:
        while (turn := self._next()) is not None:
            self._run_refresh(turn)

    def _next(self) -> PlannedRefresh | None:
        with self._lock:
            while not self._stopping:
                now_ms = self._clock()
                turn = self._plan.begin(now_ms)
                if turn is not None:
                    return turn
                self._wait(self._wakeup, self._plan.wait_ms(now_ms))
            return None

    def _begin(self) -> PlannedRefresh | None:
        with self._lock:
            return self._plan.begin(self._clock())

    def _run_refresh(self, turn: PlannedRefresh) -> None:
        try:
            done, now_ms = self._refresh(turn)
        except Exception as trouble:
            # Sources and callbacks are user code: an exception fails only this refresh.
            self._failed(turn, _failure(turn.channel, trouble))
        else:
            self._end(turn, now_ms, done, done.diagnostics)

    def _refresh(self, turn: PlannedRefresh) -> tuple[Refreshed, int]:
        """The result, and the time before the callback, which may be slow."""
        feed = turn.feed
        page = feed.source.fetch()
        disk = RealDisk(feed.path.parent)
        try:
            done = refresh_cache(disk, feed.path.name, turn.channel, page, k=feed.k, block_bytes=feed.block_bytes)
        finally:
            disk.close()
        shelf = open_cache(feed.path, turn.channel)
        if not isinstance(shelf, CacheShelf):
            raise CacheUnreachable(shelf.sentence, file=feed.path.name)
        with self._lock:
            planned, now_ms = self._plan.holds(turn), self._clock()
        if planned:
            self._on_refreshed(turn.channel, shelf, page)
        return done, now_ms

    def _failed(self, turn: PlannedRefresh, failure: Diagnostic) -> None:
        diagnostics = [failure]
        with self._lock:
            planned = self._plan.holds(turn)
        try:
            if self._on_failed is not None and planned:
                self._on_failed(turn.channel, failure)
        except Exception as trouble:
            # User code, too.
            diagnostics.append(_failure(turn.channel, trouble))
        self._end(turn, self._clock(), None, tuple(diagnostics))

    def _end(
        self, turn: PlannedRefresh, now_ms: int, done: Refreshed | None, diagnostics: tuple[Diagnostic, ...]
    ) -> None:
        with self._lock:
            self._diagnostics.extend(diagnostics)
            self._counts["refreshes"] += done is not None
            self._counts["writes"] += done is not None and done.written
            self._counts["failures"] += done is None
            self._plan.end(turn, now_ms, succeeded=done is not None)
            self._wakeup.notify_all()


def _failure(channel: str, trouble: Exception) -> Diagnostic:
    """`reason` is that of the system, without a path; None for other errors."""
    error = getattr(trouble, "code", type(trouble).__name__)
    system = trouble if isinstance(trouble, OSError) else trouble.__cause__
    reason = system.strerror if isinstance(system, OSError) else None
    return Diagnostic(
        "RefreshFailed",
        f"The refresh failed and is retried later: {trouble}",
        {"channel": channel, "error": error, "reason": reason},
    )
