"""The library while it is served: whoever follows a channel is told of its new edition before the old one is let go.

Channels come by upload, or from the folders of the settings, which are looked through in the background.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import structlog

from pendula.kernel.engine import Outcome
from pendula.kernel.errors import PendulaError
from pendula.playback.cache.merge import Page, Refreshed
from pendula.playback.cache.refresher import Feed, Refresher
from pendula.playback.choosing.records import Shelf
from pendula.playback.engine import Player
from pendula.playback.events import Contents, Follow, Refresh, Update
from pendula.playback.model import Diagnostic
from pendula.playback.sources.folder import FolderSource
from pendula.server.errors import HttpRefused
from pendula.server.hosting.engine_host import AnyDriver, EngineHost
from pendula.server.hosting.scheduler_spec import Host
from pendula.server.schedulers.playback import demo
from pendula.server.schedulers.playback.library import Held, Library
from pendula.server.schedulers.playback.subscriptions import Subscriptions
from pendula.server.schedulers.playback.timekeeper import Timekeeper
from pendula.server.views import State

LIBRARY_ORIGIN = "library"
AGAIN_SECONDS = 5.0

log = structlog.get_logger("pendula.server")


class ChannelOfFolder(HttpRefused):
    """The channel is what its folder holds: change the files instead. Facts: `channel`."""

    code = "channel_of_folder"
    status = 409


class LibraryService:
    """The store of the scheduler `playback`."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.library = Library(folder, self._unreadable)
        self.folders = host.settings.playback_folders
        self._host = host
        self._changing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._missed: set[str] = set()  # channels of which a player could not be told yet
        self._failures: dict[str, Diagnostic] = {}
        self._requested: set[tuple[str, int]] = set()
        self._closed = False
        # How long to wait after a failure is drawn by lot, so that servers do not all come at once.
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
        """Tell a player of what changed while it was closed."""
        async with self._changing:
            if host.closed or host.state is not State.READY:
                return
            try:
                news = await host.ask(self._news)
                if news:
                    await host.submit(Update(tuple(news)), LIBRARY_ORIGIN, None)
            except PendulaError as error:
                _not_told(host, error)
                self._later(lambda: self.engine_opened(host))
            else:
                await self.timekeeper.tell(host)
        if self._broker is not None:
            self._begin(self._broker.keep(host))

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
        """Merge records into a channel; what became of it, and which players heard of it. Raises `ChannelOfFolder`.

        Without `k` it keeps as many as before. Unless it is `counted`, it has as many records as it holds afterwards.
        """
        self._refuse_folder(channel)
        async with self._changing:
            done = await asyncio.to_thread(self.library.put, channel, page, k, counted)
            return done, await self._tell(channel)

    async def remove(self, channel: str) -> list[str]:
        """Remove a channel; for those who follow it, it is empty. Raises `UnknownChannel`, `ChannelOfFolder`."""
        self._refuse_folder(channel)
        async with self._changing:
            await asyncio.to_thread(self.library.remove, channel)
            return await self._tell(channel)

    async def again(self, channel: str) -> list[str]:
        """Read a channel anew, for players that could not read it; a folder is looked through soon."""
        if channel in self.folders:
            self._refresher.request(channel)
        async with self._changing:
            await asyncio.to_thread(self.library.reopen, channel)
            return await self._tell(channel)

    async def follow(
        self, host: EngineHost, channels: Iterable[str], by: str, request_id: str | None
    ) -> tuple[int, Outcome[Any]]:
        """Let a player follow channels, in one change; raises `UnknownChannel`."""
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

    async def _tell(self, channel: str) -> list[str]:
        told: list[str] = []
        self._missed.discard(channel)
        for host in [host for host in self._host.hosts() if host.kind is Player and host.state is State.READY]:
            try:
                if await host.ask(lambda driver: _concerns(driver, self._refresh(channel))):
                    await host.submit(self._refresh(channel), LIBRARY_ORIGIN, None)
                    told.append(host.name)
            except PendulaError as error:
                _not_told(host, error)
                self._missed.add(channel)
        if channel in self._missed:
            self._later(lambda: self._tell_missed(channel))
        else:
            self.library.release(channel)
        return told

    def _news(self, driver: AnyDriver) -> list[Refresh]:
        """What a player has to hear of."""
        return [news for one in _followed(driver) if _concerns(driver, news := self._refresh(one.id))]

    def _refuse_folder(self, channel: str) -> None:
        if channel in self.folders:
            raise ChannelOfFolder(f"Channel {channel!r} is what its folder holds; change its files", channel=channel)

    def _refreshed(self, channel: str, shelf: Shelf, page: Page) -> None:
        """On a thread of the refresher: a folder was looked through."""
        if self._closed:
            return
        self._failures.pop(channel, None)
        self.library.adopt(channel, shelf, page)
        for told in page.diagnostics:
            log.warning("folder_read", channel=channel, code=told.code, problem=told.sentence, **told.facts)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, channel)

    def _failed(self, channel: str, failure: Diagnostic) -> None:
        """On a thread of the refresher: a folder could not be looked through. Paths are for the log alone."""
        log.warning("folder_not_read", channel=channel, code=failure.facts["error"], problem=failure.sentence)
        error, reason = failure.facts["error"], failure.facts["reason"]
        sentence = f"The folder could not be looked through and is tried again later: {reason or error}."
        self._failures[channel] = Diagnostic(failure.code, sentence, failure.facts)

    def _unreadable(self, channel: str, generation: int) -> None:
        """On the thread of a player: a record cannot be read. A folder is looked through at once, once an edition."""
        if channel in self.folders and (channel, generation) not in self._requested:
            self._requested.add((channel, generation))
            log.warning("channel_unreadable", channel=channel, generation=generation)
            self._refresher.request(channel)

    def _spread(self, channel: str) -> None:
        self._begin(self._tell_alone(channel))

    async def _tell_alone(self, channel: str) -> None:
        async with self._changing:
            await self._tell(channel)

    async def _tell_missed(self, channel: str) -> None:
        # Somebody else may have told them meanwhile.
        if channel in self._missed:
            await self._tell_alone(channel)

    def _later(self, again: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Try once more after a while: a player may be busy, or its disk full."""

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
        """What was wrong with a channel, without the places of files on this machine."""
        failure = self._failures.get(held.contents.id)
        return [
            Diagnostic(one.code, one.sentence, {name: fact for name, fact in one.facts.items() if name != "file"})
            for one in (*held.trouble, *([] if failure is None else [failure]))
        ]


def _not_told(host: EngineHost, error: PendulaError) -> None:
    log.warning("player_not_told", engine=host.name, code=error.code, problem=error.message)


def _followed(driver: AnyDriver) -> list[Contents]:
    player = driver.engine
    assert isinstance(player, Player)
    channels = player.programme.snapshot.channels
    return [Contents(one.id, one.shelf.count, one.shelf.generation) for one in channels]


def _concerns(driver: AnyDriver, news: Refresh) -> bool:
    """Whether a player has to hear of an edition: it follows the channel, and knows another, or could not read it."""
    player = driver.engine
    assert isinstance(player, Player)
    generator, exposure = player.programme.generator, player.programme.snapshot.settings.exposure
    for contents, unreadable in zip(_followed(driver), generator.unreadable, strict=True):
        if contents.id == news.channel.id:
            counts = (exposure.total_count.get(contents.id, 0), exposure.recent_count.get(contents.id, 0))
            others = news.total_count is not None and counts != (news.total_count, news.recent_count)
            return unreadable or contents != news.channel or others
    return False
