"""New artwork over MQTT: messages on a player's topic are inserted into its pool, each event once.

`Inbox` is independent of MQTT: it parses a message, drops malformed and repeated ones, counts, and passes the rest to
`nae_insert`. `listen` receives messages from a broker, `MqttListener` does so in a thread; both need the extra `mqtt`.

The session at the broker is persistent, and a message is acknowledged after `nae_insert` has returned, so that no
message is lost while the player is offline. Redeliveries are dropped by `event_id`. How long a broker keeps a session,
and whether across its own restart, depends on the broker.
"""

import asyncio
import threading
from base64 import b64decode
from binascii import Error as Base64Error
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from ssl import SSLContext, create_default_context
from typing import TYPE_CHECKING, Annotated, NoReturn, Protocol, TypeAlias
from urllib.parse import unquote, urlsplit
from zlib import crc32

from msgspec import Meta, Struct

from pendula.documents import DocumentLimits, DocumentRefused, read_bytes
from pendula.documents.typed import NULL_IS_ABSENT, Parse, read
from pendula.kernel.errors import InputRefused, MissingExtra, WorldBroken, WrongUsage
from pendula.kernel.rng import stream
from pendula.playback.cache.merge import BackOff
from pendula.playback.model import KEY_BYTES, NAME_MOST, InsertResult, Record, wrong_value

if TYPE_CHECKING:
    from aiomqtt import Client

RECENT_EVENTS = 256
MESSAGE_BYTES = 16 * 1024
KEY_MOST = 128
QOS = 1
STEADY_MS = 10_000
PORTS = {"mqtt": 1883, "mqtts": 8883}
JITTER_STREAM = 0x4D515454

_LIMITS = DocumentLimits(size=MESSAGE_BYTES)


class Fate(StrEnum):
    """The result of a message: that of `nae_insert`, or why it was dropped."""

    INSERTED = "INSERTED"
    MERGED = "MERGED"
    DISABLED = "DISABLED"
    REJECTED = "REJECTED"
    DUPLICATE = "DUPLICATE"
    MALFORMED = "MALFORMED"
    FOREIGN = "FOREIGN"


class Message(Struct, frozen=True):
    """A new-artwork event. `channel` is where the artwork was published; the pool is common to all channels."""

    event_id: str
    channel: str
    record: Record


class Receipt(Struct, frozen=True):
    """The result of one message; `sentence` is the reason if it was malformed or of another topic."""

    fate: Fate
    event_id: str | None = None
    sentence: str | None = None


class Connected(Struct, frozen=True):
    """Subscribed. The broker should grant quality of service 1; with 0 messages may be lost."""

    qos: int


class Lost(Struct, frozen=True):
    """Not connected; the next attempt is in `wait_ms`."""

    sentence: str
    wait_ms: int


News: TypeAlias = Receipt | Connected | Lost
Tell: TypeAlias = Callable[[News], None]


class TakesNewArtwork(Protocol):
    """What a listener needs of a scheduler."""

    def nae_insert(self, record: Record | bytes) -> InsertResult: ...


def _base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise InputRefused("not base64") from None


EventName = Annotated[str, Meta(min_length=1, max_length=NAME_MOST)]
# Only types are checked here; `nae_insert` rejects values out of range.
Number = Annotated[int, NULL_IS_ABSENT]
Base64 = Annotated[bytes, Parse(_base64, b"")]


class MessageForm(Struct, frozen=True):
    """The members of a message; unknown ones are ignored."""

    event_id: EventName
    channel: EventName
    id: int
    ts: int
    payload: Base64
    kind: Number = 0
    format: Number = 0
    flags: Number = 0
    dwell_ms: Number = 0
    modified_ts: Number = 0
    storage_key: Annotated[Base64, NULL_IS_ABSENT] = bytes(KEY_BYTES)


def read_message(payload: bytes) -> Message:
    """The event in a message; raises `DocumentRefused` with every fault."""
    form = read(read_bytes(payload, source_name="new-artwork", limits=_LIMITS), MessageForm)
    record = Record(**{name: getattr(form, name) for name in Record.__struct_fields__})
    return Message(form.event_id, form.channel, record)


class Inbox:
    """Receives messages; each event reaches `nae_insert` once.

    Remembers the last 256 event ids, starting with `recent` (oldest first): a program that saves its scheduler should
    save `inbox.recent`, too.
    """

    def __init__(self, nae_insert: Callable[[Record], InsertResult], recent: Iterable[str] = ()) -> None:
        self._insert = nae_insert
        self._recent = OrderedDict.fromkeys(tuple(recent)[-RECENT_EVENTS:])
        self._counts = dict.fromkeys(Fate, 0)

    @property
    def counts(self) -> dict[Fate, int]:
        """The number of messages by result."""
        return dict(self._counts)

    @property
    def recent(self) -> tuple[str, ...]:
        """The remembered event ids, oldest first."""
        return tuple(self._recent)

    def receive(self, payload: bytes) -> Receipt:
        """Receive one message. Invalid messages do not raise; if `nae_insert` raises, the event is not remembered."""
        try:
            message = read_message(payload)
        except DocumentRefused as refused:
            return self._counted(Receipt(Fate.MALFORMED, sentence=refused.render()))
        if message.event_id in self._recent:
            # Keep the id of an event that the broker keeps redelivering.
            self._recent.move_to_end(message.event_id)
            return self._counted(Receipt(Fate.DUPLICATE, message.event_id))
        result = self._insert(message.record)
        self._remember(message.event_id)
        return self._counted(Receipt(Fate(result.value), message.event_id))

    def reject_topic(self, topic: str) -> Receipt:
        """Count a message of another topic, as a broker may send after the prefix has changed."""
        return self._counted(Receipt(Fate.FOREIGN, sentence=f"The topic {topic!r} is not that of this player"))

    def _remember(self, event_id: str) -> None:
        self._recent[event_id] = None
        if len(self._recent) > RECENT_EVENTS:
            self._recent.popitem(last=False)

    def _counted(self, receipt: Receipt) -> Receipt:
        self._counts[receipt.fate] += 1
        return receipt


class Retry(BackOff):
    """The delay between attempts to connect."""

    def __init__(self, seed: int, *, first_ms: int = 500, most_ms: int = 60_000) -> None:
        super().__init__(stream(seed, 0, JITTER_STREAM), first_ms=first_ms, most_ms=most_ms)


class Broker(Struct, frozen=True):
    """Address and credentials of a broker; `tls` as from `ssl.create_default_context()`. Its repr has no password."""

    host: str
    port: int = 1883
    username: str | None = None
    password: str | None = None
    tls: SSLContext | None = None
    keepalive_s: int = 60
    timeout_ms: int = 10_000

    def __post_init__(self) -> None:
        if not self.host or not 1 <= self.port <= 65535:
            raise wrong_value("broker", f"{self.host}:{self.port}", "a name or address and a port from 1 to 65535")

    def __repr__(self) -> str:
        return f"Broker(host={self.host!r}, port={self.port}, username={self.username!r}, tls={self.tls is not None})"


class Address(Struct, frozen=True):
    """A broker and the prefix of topics."""

    broker: Broker
    prefix: str


def read_address(url: str, password: str | None = None) -> Address:
    """The address in `mqtt://user:password@host:port/prefix`; with `mqtts` over TLS. Raises `InvalidParameter`.

    The URL is not repeated in messages, because it may hold a password; `password` replaces it.
    """
    allowed = "a URL such as mqtt://user@broker.example.org:1883/gallery, or mqtts:// for TLS, its path the prefix"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise wrong_value("mqtt", "no URL", allowed) from None
    prefix = unquote(parts.path).strip("/")
    if parts.scheme not in PORTS or not parts.hostname or not prefix or parts.query or parts.fragment:
        raise wrong_value("mqtt", f"{parts.scheme or 'something'}://…", allowed)
    if not _is_prefix(prefix):
        raise wrong_value("mqtt", "an address whose path cannot be the prefix of a topic", allowed)
    secret = password if password is not None else parts.password and unquote(parts.password)
    broker = Broker(
        parts.hostname,
        port or PORTS[parts.scheme],
        username=parts.username and unquote(parts.username),
        password=secret,
        tls=create_default_context() if parts.scheme == "mqtts" else None,
    )
    return Address(broker, prefix)


def topic_of(prefix: str, player_key: str) -> str:
    """The topic of one player's events; raises `InvalidParameter` for what cannot be part of a topic's name."""
    if not _nameable(player_key, KEY_MOST) or "/" in player_key:
        raise wrong_value("player_key", player_key, f"1 to {KEY_MOST} characters, none of them / + # or unprintable")
    if not _is_prefix(prefix):
        raise wrong_value(
            "prefix", prefix, f"1 to {NAME_MOST} characters without + and #, no $ in front, no / at the end"
        )
    return f"{prefix}/player/{player_key}/new-artwork"


def _is_prefix(text: str) -> bool:
    return _nameable(text, NAME_MOST) and text[0] != "$" and text[-1] != "/"


def _nameable(text: str, most: int) -> bool:
    return 1 <= len(text) <= most and text.isprintable() and not {"+", "#"} & set(text)


def _ignore(_: News) -> None:
    """The default callback."""


async def listen(
    broker: Broker, prefix: str, player_key: str, inbox: Inbox, *, retry: Retry | None = None, tell: Tell = _ignore
) -> NoReturn:
    """Pass the player's messages to `inbox` until cancelled; reconnects when the connection is lost.

    `player_key` must be unique: it identifies the session at the broker, which disconnects an older client with the
    same key. Raises `MissingExtra`, `InvalidParameter` and any exception of `nae_insert`, whose message stays
    unacknowledged and is delivered in the next session. `tell` is called with every connection and receipt, in the
    thread of this loop.
    """
    topic = topic_of(prefix, player_key)
    require_library()
    from aiomqtt import MqttError

    retry = retry or Retry(crc32(player_key.encode()))
    while True:
        try:
            await _session(_client(broker, player_key), topic, inbox, retry, tell)
        except MqttError as error:
            wait_ms = retry.failed()
            tell(Lost(str(error) or type(error).__name__, wait_ms))
            await asyncio.sleep(wait_ms / 1000)


def require_library() -> None:
    """Raise `MissingExtra` where the extra `mqtt` is not installed."""
    if find_spec("aiomqtt") is None:
        raise MissingExtra.of("mqtt", "New artwork over MQTT", ["aiomqtt"])


def _client(broker: Broker, player_key: str) -> "Client":
    from aiomqtt import Client

    client = Client(
        broker.host,
        broker.port,
        username=broker.username,
        password=broker.password,
        tls_context=broker.tls,
        identifier=player_key,
        clean_session=False,
        keepalive=broker.keepalive_s,
        timeout=broker.timeout_ms / 1000,
    )
    # aiomqtt acknowledges messages when it queues them and has no option for that; its inner client has.
    client._client.manual_ack_set(True)
    return client


async def _session(client: "Client", topic: str, inbox: Inbox, retry: Retry, tell: Tell) -> None:
    """Run one connection until it is lost."""
    async with _connected(client):
        # After a delay: a broker that closes each connection must not be retried at the shortest interval.
        steady = asyncio.get_running_loop().call_later(STEADY_MS / 1000, retry.succeeded)
        # Concurrently: a broker may wait for acknowledgements of stored messages before it answers the subscription.
        tasks = [*map(asyncio.create_task, (_receive(client, topic, inbox, tell), _subscribe(client, topic, tell)))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in filter(asyncio.Task.done, tasks):
                task.result()
        finally:
            steady.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _receive(client: "Client", topic: str, inbox: Inbox, tell: Tell) -> None:
    async for message in client.messages:
        own = message.topic.value == topic
        tell(inbox.receive(message.payload) if own else inbox.reject_topic(message.topic.value))
        client._client.ack(message.mid, message.qos)


async def _subscribe(client: "Client", topic: str, tell: Tell) -> None:
    from aiomqtt import MqttError

    (granted,) = await client.subscribe(topic, qos=QOS)
    qos = granted if isinstance(granted, int) else granted.value
    if qos > QOS:
        raise MqttError(f"The broker refuses the subscription to {topic!r}")
    tell(Connected(qos))


@asynccontextmanager
async def _connected(client: "Client") -> AsyncIterator[None]:
    """The connection, always closed: a leaked one would keep receiving this player's messages."""
    from aiomqtt import MqttError

    entering = asyncio.ensure_future(client.__aenter__())
    try:
        await asyncio.shield(entering)
        yield
    finally:
        # A thread connects and cannot be cancelled, so wait for it.
        await asyncio.wait({entering})
        if entering.exception() is None:
            with suppress(MqttError):
                await client.__aexit__(None, None, None)
        # aiomqtt leaves the socket open if the broker does not answer in time; closing twice is harmless.
        client._client.disconnect()


class MqttListener:
    """`listen` in its own thread, for synchronous programs.

    `inbox` is kept when the listener is stopped and started again. `failure` is the exception of `nae_insert` or `tell`
    that ended the listener; both are called in its thread.
    """

    def __init__(
        self,
        scheduler: TakesNewArtwork,
        broker: Broker,
        prefix: str,
        player_key: str,
        *,
        recent: Iterable[str] = (),
        retry: Retry | None = None,
        tell: Tell = _ignore,
    ) -> None:
        self.topic = topic_of(prefix, player_key)
        self.inbox = Inbox(scheduler.nae_insert, recent)
        self.failure: Exception | None = None
        self._listen = partial(listen, broker, prefix, player_key, self.inbox, retry=retry, tell=tell)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; the broker may be offline. Raises `MissingExtra`, and `WrongUsage` if started already."""
        if self._thread is not None:
            raise WrongUsage("The listener is started already; stop it first")
        require_library()
        self.failure = None
        # aiomqtt watches sockets, which the default loop of Windows does not support.
        runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        loop = runner.get_loop()
        listening = loop.create_task(self._listen())
        self._cancel = partial(loop.call_soon_threadsafe, listening.cancel)
        self._thread = threading.Thread(target=self._run, args=(runner, listening), name="mqtt", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Disconnect and end the thread; raises `failure`. Unacknowledged messages come in the next session."""
        if self._thread is None:
            return
        # After a failure the loop is closed already.
        with suppress(RuntimeError):
            self._cancel()
        self._thread.join()
        self._thread = None
        if self.failure is not None:
            raise self.failure

    def _run(self, runner: asyncio.Runner, listening: "asyncio.Task[NoReturn]") -> None:
        with runner:
            try:
                runner.get_loop().run_until_complete(listening)
            except asyncio.CancelledError:
                return
            except Exception as error:
                self.failure = error


def receive(address: Address, player_key: str, count: int, timeout_s: float) -> list[Record]:
    """The first `count` new artworks for a player; raises `MqttTimeout` if fewer arrive within `timeout_s`."""
    collected = _Collected(count)
    listener = MqttListener(collected, address.broker, address.prefix, player_key)
    listener.start()
    complete = collected.complete.wait(timeout_s)
    listener.stop()
    if not complete:
        found = len(collected.records)
        message = f"{found} of {count} messages arrived within {timeout_s:g} s for {listener.topic}"
        raise MqttTimeout(message, topic=listener.topic, received=found, expected=count)
    return collected.records


class MqttTimeout(WorldBroken):
    """Fewer messages arrived than expected. Facts: `topic`, `received`, `expected`."""

    code = "mqtt_timeout"


class _Collected:
    """Collects records; those beyond the count are rejected."""

    def __init__(self, count: int) -> None:
        self.records: list[Record] = []
        self.complete = threading.Event()
        self._count = count

    def nae_insert(self, record: Record | bytes) -> InsertResult:
        if not isinstance(record, Record) or len(self.records) >= self._count:
            return InsertResult.REJECTED
        self.records.append(record)
        if len(self.records) == self._count:
            self.complete.set()
        return InsertResult.INSERTED
