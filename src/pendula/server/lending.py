"""The library while it is served: whoever follows a channel is told of its new edition before the old one is let go.

Channels come by upload, or from the folders of the settings, which are looked through in the background.
"""

import asyncio
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import structlog

from pendula.kernel.engine import Outcome
from pendula.kernel.errors import PendulaError
from pendula.playback.engine import Player
from pendula.playback.events import Contents, Follow, Refresh, Update
from pendula.playback.folder import FolderSource
from pendula.playback.model import Diagnostic
from pendula.playback.records import Shelf
from pendula.playback.refresh import Page, Refreshed
from pendula.playback.refresher import Feed, Refresher
from pendula.server import frame
from pendula.server.errors import HttpRefused
from pendula.server.hosting import AnyDriver, EngineHost
from pendula.server.house import House
from pendula.server.library import Held, Library
from pendula.server.views import State

LIBRARIAN = "library"

log = structlog.get_logger("pendula.server")


class ChannelOfFolder(HttpRefused):
    """The channel is what its folder holds: change the files instead. Facts: `channel`."""

    code = "channel_of_folder"
    status = 409


class Lending:
    """The store of the room `playback`."""

    def __init__(self, house: House, folder: Path) -> None:
        self.library = Library(folder)
        self.folders = house.settings.playback_folders
        self._house = house
        self._changing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[list[str]]] = set()
        self._closed = False
        # How long to wait after a failure is drawn by lot, so that servers do not all come at once.
        self._refresher = Refresher(self._refreshed, seed=secrets.randbits(64))
        if house.settings.demo:
            frame.stock(self.library)
        for channel, place in self.folders.items():
            self._refresher.add(channel, Feed(FolderSource(place), self.library.path(channel)))
        if self.folders:
            self._refresher.start()

    @property
    def outside(self) -> Library:
        return self.library

    async def engine_opened(self, host: EngineHost) -> None:
        """Tell a player of what changed while it was closed."""
        async with self._changing:
            try:
                followed = await host.ask(_followed)
                changed = [one.id for one in followed if one != self.library.contents(one.id)]
                if changed:
                    await host.submit(Update(tuple(map(self._refresh, changed))), LIBRARIAN, None)
            except PendulaError as error:
                log.warning("player_not_told", engine=host.name, code=error.code, problem=error.message)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._refresher.stop)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.library.close()

    async def put(self, channel: str, page: Page, k: int, *, counted: bool = True) -> tuple[Refreshed, list[str]]:
        """Merge records into a channel; what became of it, and which players heard of it. Raises `ChannelOfFolder`.

        Unless it is `counted`, the channel has as many records as it holds afterwards.
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
        missed = False
        for host in [host for host in self._house.hosts() if host.kind is Player and host.state is State.READY]:
            try:
                if await host.ask(lambda driver: _concerns(driver, self._refresh(channel))):
                    await host.submit(self._refresh(channel), LIBRARIAN, None)
                    told.append(host.name)
            except PendulaError as error:
                missed = True
                log.warning("player_not_told", engine=host.name, code=error.code, problem=error.message)
        if not missed:
            self.library.release(channel)
        return told

    def _refuse_folder(self, channel: str) -> None:
        if channel in self.folders:
            raise ChannelOfFolder(f"Channel {channel!r} is what its folder holds; change its files", channel=channel)

    def _refreshed(self, channel: str, shelf: Shelf, page: Page) -> None:
        """On a thread of the refresher: a folder was looked through."""
        self.library.adopt(channel, shelf, page)
        for told in page.diagnostics:
            log.warning("folder_read", channel=channel, code=told.code, problem=told.sentence, **told.facts)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, channel)

    def _spread(self, channel: str) -> None:
        if self._closed:
            return
        task = asyncio.create_task(self._tell_alone(channel))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell_alone(self, channel: str) -> list[str]:
        async with self._changing:
            return await self._tell(channel)

    def troubles(self, held: Held) -> list[Diagnostic]:
        """What was wrong with a channel, without the places of files on this machine."""
        return [
            Diagnostic(one.code, one.sentence, {name: fact for name, fact in one.facts.items() if name != "file"})
            for one in (*held.trouble, *self._failures(held.contents.id))
        ]

    def _failures(self, channel: str) -> Iterable[Diagnostic]:
        return [one for one in self._refresher.diagnostics()[-1:] if one.facts.get("channel") == channel]


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
            counts = (exposure.total_count.get(contents.id), exposure.recent_count.get(contents.id))
            others = news.total_count is not None and counts != (news.total_count, news.recent_count)
            return unreadable or contents != news.channel or others
    return False
