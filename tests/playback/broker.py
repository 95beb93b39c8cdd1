"""A real MQTT broker in the event loop of the test: authentication, acknowledgements, disconnects."""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import aiomqtt
from amqtt.broker import Broker as Amqtt  # type: ignore[import-untyped]
from amqtt.contexts import Action  # type: ignore[import-untyped]
from amqtt.mqtt.puback import PubackPacket  # type: ignore[import-untyped]
from amqtt.plugins.base import BaseAuthPlugin, BasePlugin, BaseTopicPlugin  # type: ignore[import-untyped]
from amqtt.session import Session  # type: ignore[import-untyped]

from pendula.playback.sources.mqtt import Broker

USERNAME, PASSWORD = "frame", "behind the canvas"
FORBIDDEN = "forbidden"

T = TypeVar("T")


class PasswordCheck(BaseAuthPlugin):  # type: ignore[misc]
    """Requires the password. Anonymous clients are refused, because this broker stores no messages for them."""

    async def authenticate(self, *, session: Session) -> bool:
        return (session.username, session.password) == (USERNAME, PASSWORD)


class TopicRules(BaseTopicPlugin):  # type: ignore[misc]
    """Refuses subscriptions under one prefix."""

    async def topic_filtering(self, *, session: Session, topic: str, action: Action) -> bool:
        return not (action == Action.SUBSCRIBE and topic.startswith(FORBIDDEN))


class PacketLog(BasePlugin):  # type: ignore[misc]
    """Records events in order."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.log: list[str] = []
        self.left: asyncio.Queue[str] = asyncio.Queue()

    async def on_mqtt_packet_received(self, *, packet: Any, session: Session | None = None) -> None:
        if isinstance(packet, PubackPacket):
            self.log.append("acknowledged")

    async def on_broker_client_disconnected(self, *, client_id: str, client_session: Session) -> None:
        self.left.put_nowait(client_id)


class ClosingBroker(Amqtt):  # type: ignore[misc]
    """Closes every connection; the broker itself misses clients that disconnect during the handshake."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self._serving: set[asyncio.Task[None]] = set()

    async def stream_connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listener_name: str
    ) -> None:
        serving = asyncio.ensure_future(super().stream_connected(reader, writer, listener_name))
        self._serving.add(serving)
        try:
            await asyncio.wait({serving})
        finally:
            self._serving.discard(serving)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def shutdown(self) -> None:
        serving = tuple(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await super().shutdown()


class BrokerHere:
    """The broker; `start` after `stop` opens the same port again, without sessions."""

    def __init__(self, tls: tuple[Path, Path] | None = None) -> None:
        self._tls = tls
        self._port = 0

    async def start(self) -> None:
        listener: dict[str, Any] = {"type": "tcp", "bind": f"127.0.0.1:{self._port}"}
        if self._tls is not None:
            listener |= {"ssl": True, "certfile": str(self._tls[0]), "keyfile": str(self._tls[1])}
        plugins: dict[str, Any] = {
            f"{kind.__module__}.{kind.__qualname__}": {} for kind in (PasswordCheck, TopicRules, PacketLog)
        }
        self._amqtt = ClosingBroker({"listeners": {"default": listener}, "plugins": plugins})
        await self._amqtt.start()
        self._port = self._amqtt._servers["default"].instance.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        await self._amqtt.shutdown()

    @property
    def address(self) -> Broker:
        return Broker("127.0.0.1", self._port, USERNAME, PASSWORD)

    @property
    def subscribed(self) -> set[str]:
        """The topics with a subscription."""
        return {topic for topic, found in self._amqtt._subscriptions.items() if found}

    @property
    def log(self) -> list[str]:
        log: list[str] = self._watch.log
        return log

    async def wait_until_gone(self, client_id: str) -> None:
        """Wait until the broker has noticed that this client disconnected."""
        while await self._watch.left.get() != client_id:
            pass

    def session(self, client_id: str) -> Any:
        return self._amqtt.sessions[client_id][0]

    def knows(self, client_id: str) -> bool:
        return client_id in self._amqtt.sessions

    async def disconnect(self, client_id: str) -> None:
        """Break the client's connection; its session stays."""
        await self._amqtt.sessions[client_id][1].writer.close()

    async def publish(self, topic: str, *payloads: bytes) -> None:
        """Publish as another client; the broker has the messages when this returns."""
        async with aiomqtt.Client("127.0.0.1", self._port, username=USERNAME, password=PASSWORD) as client:
            for payload in payloads:
                await client.publish(topic, payload, qos=1)

    @property
    def _watch(self) -> Any:
        return self._amqtt.plugins_manager.get_plugin(PacketLog.__name__)


@asynccontextmanager
async def broker_here(tls: tuple[Path, Path] | None = None) -> AsyncIterator[BrokerHere]:
    broker = BrokerHere(tls)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


class BrokerThread:
    """A broker in its own thread, for tests that run a whole program beside it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="broker")
        self.broker = BrokerHere()

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self.broker.start())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self.broker.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def url(self, prefix: str) -> str:
        """The URL for settings and the command line, without the password."""
        address = self.broker.address
        return f"mqtt://{USERNAME}@{address.host}:{address.port}/{prefix}"

    def publish(self, topic: str, *payloads: bytes) -> None:
        """Publish as soon as there is a subscription: a broker stores nothing without a session."""
        self._call(self._publish(topic, payloads))

    async def _publish(self, topic: str, payloads: tuple[bytes, ...]) -> None:
        async with asyncio.timeout(240):
            while topic not in self.broker.subscribed:
                await asyncio.sleep(0.01)
        await self.broker.publish(topic, *payloads)
