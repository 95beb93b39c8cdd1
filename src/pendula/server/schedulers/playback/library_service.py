"""The library of a server: players that follow a channel get its new edition before the old one is released.

Channels are uploaded, or mirror the folders of the settings, which are scanned in the background.

Players with day parts also get the wall clock: when they are opened or changed, and when clocks drift. A player
advances its wall clock itself. It is set again only if it is off by more than two seconds, because a clock was set or
the machine slept, or if the zone changed; so a journal has few of these commands.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import structlog

from pendula.demo import playback as demo
from pendula.kernel.driver import Ticket
from pendula.kernel.errors import PendulaError
from pendula.kernel.wallclock import WallClock
from pendula.playback.cache.merge import Page, Refreshed
from pendula.playback.cache.refresher import Feed, Refresher
from pendula.playback.choosing.dayparts import WallClock as WallClockOfPlayer
from pendula.playback.choosing.dayparts import wall_clock
from pendula.playback.choosing.records import Shelf
from pendula.playback.clocks import clock_at
from pendula.playback.engine import Player
from pendula.playback.messages import Clock, Contents, Follow, Refresh, Update
from pendula.playback.model import Diagnostic
from pendula.playback.sources.folder import FolderSource
from pendula.server.errors import HttpRefused
from pendula.server.runtime.engine_host import AnyDriver, EngineHost
from pendula.server.runtime.scheduler_spec import Host
from pendula.server.schedulers.playback.library import Held, Library
from pendula.server.schedulers.playback.subscriptions import Subscriptions
from pendula.server.views import State

TIMEKEEPER = "clock"
EVERY_SECONDS = 30.0
DRIFT_MS = 2000

log = structlog.get_logger("pendula.server")

LIBRARY_ORIGIN = "library"
AGAIN_SECONDS = 5.0


class Timekeeper:
    """Checks all players every 30 seconds."""

    def __init__(self, clock: WallClock, hosts: Callable[[], Iterable[EngineHost]]) -> None:
        self._clock = clock
        self._hosts = hosts

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            for host in [host for host in self._hosts() if host.kind is Player and host.state is State.READY]:
                await self.tell(host)

    async def tell(self, host: EngineHost) -> None:
        """Set the clock of a player if it is wrong; a failure is logged and retried later."""
        try:
            clock = await host.ask(lambda driver: self._correction(host, driver))
            if clock is not None:
                await host.submit(clock, TIMEKEEPER, None)
        except PendulaError as error:
            log.warning("player_clock_not_set", engine=host.name, code=error.code, problem=error.message)

    def _correction(self, host: EngineHost, driver: AnyDriver) -> Clock | None:
        player = driver.engine
        assert isinstance(player, Player)
        settings = player.programme.snapshot.settings
        if not settings.day_parts:
            return None
        present = clock_at(settings.zone, self._clock.now() // 1000)
        if player.clock is not None and host.pace is not None and agree(player.clock, present, host.pace.reading()):
            return None
        return present


def agree(known: WallClockOfPlayer, present: Clock, reading: int) -> bool:
    """Whether the player's clock agrees with the present time and the next change of the UTC offset."""
    there = wall_clock(reading, present.utc_ms, present.offsets)
    near = abs(known.utc_ms + reading - known.at - present.utc_ms) <= DRIFT_MS
    return near and known.minute(reading) == there.minute(reading) and _next(known, reading) == _next(there, reading)


def _next(clock: WallClockOfPlayer, reading: int) -> tuple[int, int] | None:
    utc = clock.utc_ms + reading - clock.at
    return next((offset for offset in clock.offsets if offset[0] > utc), None)


class ChannelOfFolder(HttpRefused):
    """The channel mirrors a folder; change the files instead. Facts: `channel`."""

    code = "channel_of_folder"
    status = 409


class LibraryService:
    """The store of the scheduler `playback`."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.library = Library(folder, self._unreadable)
        self.folders = host.settings.playback.folders
        self._host = host
        self._changing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._missed: set[str] = set()  # channels that some player has not been updated to
        self._failures: dict[str, Diagnostic] = {}
        self._requested: set[tuple[str, int]] = set()
        self._closed = False
        # The delay after a failure has random jitter, so that servers do not retry at the same time.
        self._refresher = Refresher(self._refreshed, seed=secrets.randbits(64), on_failed=self._failed)
        if host.settings.demo:
            demo.stock(self.library)
        for channel, place in self.folders.items():
            self.library.expect(channel)
            self._refresher.add(channel, Feed(FolderSource(place), self.library.path(channel)))
        if self.folders:
            self._refresher.start()
        self._broker = Subscriptions.of(host.settings, self._loop)
        self.timekeeper = Timekeeper(host.clock, host.hosts)
        self._begin(self.timekeeper.run())

    @property
    def outside(self) -> Library:
        return self.library

    async def engine_opened(self, host: EngineHost) -> None:
        """Update a player to what changed while it was closed."""
        async with self._changing:
            if host.closed or host.state is not State.READY:
                return
            try:
                refreshes = await host.ask(self._refreshes)
                if refreshes:
                    await host.submit(Update(tuple(refreshes)), LIBRARY_ORIGIN, None)
            except PendulaError as error:
                _log_failed_update(host, error)
                self._retry_later(lambda: self.engine_opened(host))
            else:
                await self.timekeeper.tell(host)
        if self._broker is not None:
            self._begin(self._broker.keep(host))

    async def engine_closed(self, _: EngineHost) -> None:
        """Nothing is kept for a player but its listener, which ends by itself."""

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._refresher.stop)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.library.close()

    async def put(
        self, channel: str, page: Page, k: int | None = None, *, counted: bool = True
    ) -> tuple[Refreshed, list[str]]:
        """Merge records into a channel; returns the result and the updated players. Raises `ChannelOfFolder`.

        `k` is by default that of the present file. Without `counted` the total count is the number of records.
        """
        self._refuse_folder(channel)
        async with self._changing:
            done = await asyncio.to_thread(self.library.put, channel, page, k, counted)
            return done, await self._update_players(channel)

    async def remove(self, channel: str) -> list[str]:
        """Remove a channel; its players see it empty. Raises `UnknownChannel`, `ChannelOfFolder`."""
        self._refuse_folder(channel)
        async with self._changing:
            await asyncio.to_thread(self.library.remove, channel)
            return await self._update_players(channel)

    async def again(self, channel: str) -> list[str]:
        """Read a channel again, for players that could not read it; a folder is scanned soon."""
        if channel in self.folders:
            self._refresher.request(channel)
        async with self._changing:
            await asyncio.to_thread(self.library.reopen, channel)
            return await self._update_players(channel)

    async def follow(self, host: EngineHost, channels: Iterable[str], by: str, request_id: str | None) -> Ticket[Any]:
        """Make a player follow channels, in one change; raises `UnknownChannel`."""
        async with self._changing:
            held = [self.library.held(channel) for channel in channels]
            changes = [change for one in held for change in (Follow(one.contents), self._refresh(one.contents.id))]
            return await host.submit(Update(tuple(changes)), by, request_id)

    def _refresh(self, channel: str) -> Refresh:
        contents = self.library.contents(channel)
        if channel not in self.library.names():
            return Refresh(contents)
        held = self.library.held(channel)
        return Refresh(contents, held.total_count, held.recent_count)

    async def _update_players(self, channel: str) -> list[str]:
        updated: list[str] = []
        self._missed.discard(channel)
        for host in [host for host in self._host.hosts() if host.kind is Player and host.state is State.READY]:
            try:
                if await host.ask(lambda driver: _needs(driver, self._refresh(channel))):
                    await host.submit(self._refresh(channel), LIBRARY_ORIGIN, None)
                    updated.append(host.name)
            except PendulaError as error:
                _log_failed_update(host, error)
                self._missed.add(channel)
        if channel in self._missed:
            self._retry_later(lambda: self._update_missed(channel))
        else:
            self.library.release(channel)
        return updated

    def _refreshes(self, driver: AnyDriver) -> list[Refresh]:
        """The refreshes that a player needs."""
        return [refresh for one in _followed(driver) if _needs(driver, refresh := self._refresh(one.id))]

    def _refuse_folder(self, channel: str) -> None:
        if channel in self.folders:
            raise ChannelOfFolder(f"Channel {channel!r} mirrors a folder; change the files", channel=channel)

    def _refreshed(self, channel: str, shelf: Shelf, page: Page) -> None:
        """On a thread of the refresher: a folder was scanned."""
        if self._closed:
            return
        self._failures.pop(channel, None)
        self.library.adopt(channel, shelf, page)
        for diagnostic in page.diagnostics:
            problem = diagnostic.sentence
            log.warning("folder_read", channel=channel, code=diagnostic.code, problem=problem, **diagnostic.facts)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._schedule_update, channel)

    def _failed(self, channel: str, failure: Diagnostic) -> None:
        """On a thread of the refresher: a scan failed. Paths appear only in the log."""
        log.warning("folder_not_read", channel=channel, code=failure.facts["error"], problem=failure.sentence)
        error, reason = failure.facts["error"], failure.facts["reason"]
        sentence = f"The scan of the folder failed and is retried later: {reason or error}."
        self._failures[channel] = Diagnostic(failure.code, sentence, failure.facts)

    def _unreadable(self, channel: str, generation: int) -> None:
        """On the thread of a player: a record cannot be read. A folder is scanned at once, one time per edition."""
        if channel in self.folders and (channel, generation) not in self._requested:
            self._requested.add((channel, generation))
            log.warning("channel_unreadable", channel=channel, generation=generation)
            self._refresher.request(channel)

    def _schedule_update(self, channel: str) -> None:
        self._begin(self._update_locked(channel))

    async def _update_locked(self, channel: str) -> None:
        async with self._changing:
            await self._update_players(channel)

    async def _update_missed(self, channel: str) -> None:
        # Another task may have updated them meanwhile.
        if channel in self._missed:
            await self._update_locked(channel)

    def _retry_later(self, again: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Retry after a delay: a player may be busy, or its disk full."""

        async def wait() -> None:
            await asyncio.sleep(AGAIN_SECONDS)
            await again()

        self._begin(wait())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        if self._closed:
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def troubles(self, held: Held) -> list[Diagnostic]:
        """The diagnostics of a channel, without paths of this machine."""
        failure = self._failures.get(held.contents.id)
        return [
            Diagnostic(one.code, one.sentence, {name: fact for name, fact in one.facts.items() if name != "file"})
            for one in (*held.trouble, *([] if failure is None else [failure]))
        ]


def _log_failed_update(host: EngineHost, error: PendulaError) -> None:
    log.warning("player_not_updated", engine=host.name, code=error.code, problem=error.message)


def _followed(driver: AnyDriver) -> list[Contents]:
    player = driver.engine
    assert isinstance(player, Player)
    channels = player.programme.snapshot.channels
    return [Contents(one.id, one.shelf.count, one.shelf.generation) for one in channels]


def _needs(driver: AnyDriver, refresh: Refresh) -> bool:
    """Whether a player needs a refresh: it follows the channel, and has another edition or could not read it."""
    player = driver.engine
    assert isinstance(player, Player)
    generator, exposure = player.programme.generator, player.programme.snapshot.settings.exposure
    for contents, unreadable in zip(_followed(driver), generator.unreadable, strict=True):
        if contents.id == refresh.channel.id:
            counts = (exposure.total_count.get(contents.id, 0), exposure.recent_count.get(contents.id, 0))
            others = refresh.total_count is not None and counts != (refresh.total_count, refresh.recent_count)
            return unreadable or contents != refresh.channel or others
    return False
