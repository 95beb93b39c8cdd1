"""New artwork over MQTT for every player of a server; the name of the player is the key in its topic.

A message is acknowledged when the insertion is durable. The listener retries a broker that is offline; if a player
cannot accept a message (full disk, long command), the same message is retried.
"""

import asyncio
from base64 import b64encode
from typing import Self

import structlog

from pendula.playback.engine import Player
from pendula.playback.messages import Insert, RecordCommand
from pendula.playback.model import InsertResult, Record
from pendula.playback.sources.mqtt import (
    Address,
    Connected,
    Lost,
    MqttListener,
    News,
    Tell,
    read_address,
    require_library,
)
from pendula.server.errors import EngineUnavailable
from pendula.server.runtime.engine_host import EngineHost
from pendula.server.settings import Settings
from pendula.server.views import State

BROKER = "mqtt"
LOOK_SECONDS = 0.5
AGAIN_SECONDS = 5.0

log = structlog.get_logger("pendula.server")


class Subscriptions:
    """The listeners to the broker of the settings."""

    def __init__(self, address: Address, loop: asyncio.AbstractEventLoop) -> None:
        self._address = address
        self._loop = loop
        self._kept: set[str] = set()

    @classmethod
    def of(cls, settings: Settings, loop: asyncio.AbstractEventLoop) -> Self | None:
        """None without a broker in the settings; raises `InvalidParameter` and `MissingExtra`."""
        if settings.playback.mqtt is None:
            return None
        require_library()
        return cls(read_address(settings.playback.mqtt, settings.playback.mqtt_password), loop)

    async def keep(self, host: EngineHost) -> None:
        """Listen for one player until it is closed; cancelled when the server stops."""
        if host.kind is not Player or host.name in self._kept:
            return
        self._kept.add(host.name)
        recent: tuple[str, ...] = ()
        try:
            while not host.closed:
                recent = await self._listen(host, recent)
                await asyncio.sleep(AGAIN_SECONDS)
        finally:
            self._kept.discard(host.name)

    async def _listen(self, host: EngineHost, recent: tuple[str, ...]) -> tuple[str, ...]:
        """Listen until the player is closed or cannot accept a message; returns the recent event ids."""
        inserting = Inserting(host, self._loop)
        address = self._address
        tell = _logged(host.name)
        listener = MqttListener(inserting, address.broker, address.prefix, host.name, recent=recent, tell=tell)
        listener.start()
        try:
            while listener.failure is None and not host.closed and host.state is not State.BROKEN:
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            failure = listener.failure
            inserting.stop()
            try:
                await asyncio.shield(asyncio.to_thread(listener.stop))
            except Exception as error:
                failure = error
        if failure is not None:
            log.warning("new_artwork_not_taken", engine=host.name, problem=str(failure))
        return listener.inbox.recent


class Inserting:
    """A player for a listener: each insertion is one command, durable when it returns."""

    def __init__(self, host: EngineHost, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._loop = loop
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def nae_insert(self, record: Record | bytes) -> InsertResult:
        """On the thread of the listener; raises errors of the player."""
        if self._stopped:
            raise EngineUnavailable(f"Player {self._host.name!r} is being closed")
        if isinstance(record, bytes):
            return InsertResult.REJECTED
        facts = {name: getattr(record, name) for name in RecordCommand.__struct_fields__}
        facts |= {name: b64encode(facts[name]).decode() for name in ("storage_key", "payload")}
        sent = asyncio.run_coroutine_threadsafe(self._host.submit(Insert(**facts), BROKER, None), self._loop)
        outcome = sent.result().outcome
        if outcome.refusal is not None or not isinstance(outcome.answer, dict):
            return InsertResult.REJECTED
        return InsertResult(outcome.answer["result"])


def _logged(player: str) -> Tell:
    def tell(news: News) -> None:
        if isinstance(news, Connected):
            log.info("mqtt_connected", engine=player, qos=news.qos)
        elif isinstance(news, Lost):
            log.warning("mqtt_lost", engine=player, problem=news.sentence, wait_ms=news.wait_ms)
        elif news.sentence is not None:
            log.warning("mqtt_message_dropped", engine=player, fate=news.fate, problem=news.sentence)

    return tell
