"""New artwork over MQTT: the inbox of messages, and a listener with a real broker in this process."""

import asyncio
import gc
import json
import queue
import ssl
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.kernel.errors import MissingExtra, WrongUsage
from pendula.playback.choosing.records import unpack
from pendula.playback.model import InsertResult, InvalidParameter, Record
from pendula.playback.scheduler import Scheduler
from pendula.playback.settings import Nae, Settings
from pendula.playback.sources import mqtt
from pendula.playback.sources.mqtt import (
    MESSAGE_BYTES,
    Broker,
    Connected,
    Fate,
    Inbox,
    Lost,
    MqttListener,
    News,
    Receipt,
    Retry,
    listen,
    read_message,
    topic_of,
)
from tests.playback.broker import FORBIDDEN, BrokerHere, broker_here
from tests.playback.shelves import ids
from tests.server.certificate import CERTIFICATE, KEY

PREFIX, PLAYER = "gallery", "frame-7"
TOPIC = topic_of(PREFIX, PLAYER)
PAYLOAD = bytes(range(32))
WHOLE: dict[str, Any] = {
    "event_id": "e1",
    "id": 900,
    "ts": 500,
    "channel": "a",
    "payload": b64encode(PAYLOAD).decode(),
}

pytestmark = pytest.mark.req("PLAY-NAE-11")


def event(event_id: str = "e1", id: object = 900, **others: object) -> bytes:
    return json.dumps({**WHOLE, "event_id": event_id, "id": id, **others}).encode()


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in WHOLE.items() if key != name}).encode()


def scheduler(**settings: Any) -> Scheduler:
    return Scheduler([ids("a", 1, 2, 3)], Settings(**settings), seed=1)


def quick() -> Retry:
    return Retry(1, first_ms=1, most_ms=20)


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run the test in its own loop; fail after a minute instead of hanging."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        async def limited() -> None:
            async with asyncio.timeout(240):
                await test(*arguments, **named)

        asyncio.run(limited())

    return run


class Pool:
    """Accepts and stores every record."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def nae_insert(self, record: Record | bytes) -> InsertResult:
        assert isinstance(record, Record)
        self.records.append(record)
        return InsertResult.INSERTED


class NoticeQueue:
    """The notices of a listener, to wait for."""

    def __init__(self) -> None:
        self.news: asyncio.Queue[News] = asyncio.Queue()
        self.tell = self.news.put_nowait

    async def next_notice(self, kind: type[News] | Fate) -> News:
        """The next notice of this type or this fate; others are skipped."""
        while True:
            one = await self.news.get()
            if (isinstance(one, Receipt) and one.fate is kind) if isinstance(kind, Fate) else isinstance(one, kind):
                return one

    async def all_notices(self, *wanted: News) -> None:
        """All of these, in any order: stored messages of a broker can precede or follow its reply."""
        left = list(wanted)
        while left:
            one = await self.news.get()
            if one in left:
                left.remove(one)


@asynccontextmanager
async def listening(
    broker: Broker, inbox: Inbox, notices: NoticeQueue, prefix: str = PREFIX, retry: Retry | None = None
) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.ensure_future(listen(broker, prefix, PLAYER, inbox, retry=retry or quick(), tell=notices.tell))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


# Inbox


def test_a_message_becomes_a_record_with_all_its_fields() -> None:
    key = bytes(range(16))
    payload = event(kind=1, format=2, flags=3, dwell_ms=4000, modified_ts=5, storage_key=b64encode(key).decode())

    message = read_message(payload)

    assert message.event_id == "e1"
    assert message.channel == "a"
    assert message.record == Record(900, 500, 1, 2, 3, 4000, 5, key, PAYLOAD)


def test_null_members_count_as_absent_and_unknown_ones_are_ignored() -> None:
    message = read_message(event(kind=None, storage_key=None, artist="nobody", sizes={"w": [1.5]}))

    assert message.record == Record(900, 500, payload=PAYLOAD)


def test_an_event_reaches_the_pool() -> None:
    player = scheduler(lookahead=1)
    inbox = Inbox(player.nae_insert)

    receipts = [inbox.receive(event("e1")), inbox.receive(event("e2", ts=501))]

    assert [receipt.fate for receipt in receipts] == [Fate.INSERTED, Fate.MERGED]
    assert [receipt.event_id for receipt in receipts] == ["e1", "e2"]
    shown = next(item for item in player.take(50) if item.id == 900)
    assert unpack(shown.raw) == Record(900, 501, payload=PAYLOAD)


def test_a_redelivery_does_not_refresh_a_priority_but_a_new_event_does() -> None:
    player = scheduler(lookahead=1)
    inbox = Inbox(player.nae_insert)
    inbox.receive(event("e1"))
    player.take(10)
    decayed = player.state_dict()

    again = inbox.receive(event("e1"))

    assert again.fate is Fate.DUPLICATE
    assert player.state_dict() == decayed
    inbox.receive(event("e2"))
    assert player.state_dict() != decayed


def test_an_event_is_forgotten_after_256_others() -> None:
    inbox = Inbox(Pool().nae_insert)
    for number in range(256):
        inbox.receive(event(f"e{number}"))

    oldest = inbox.receive(event("e0"))
    newest = [inbox.receive(event(f"f{number}")) for number in range(255)]
    kept = inbox.receive(event("e0"))
    [*_, last] = [inbox.receive(event(f"g{number}")) for number in range(256)]
    forgotten = inbox.receive(event("e0"))

    assert oldest.fate is Fate.DUPLICATE
    assert {receipt.fate for receipt in newest} == {Fate.INSERTED}
    assert kept.fate is Fate.DUPLICATE
    assert last.fate is Fate.INSERTED
    assert forgotten.fate is Fate.INSERTED
    assert len(inbox.recent) == 256


def test_an_inbox_continues_with_the_known_events_of_another() -> None:
    first = Inbox(Pool().nae_insert)
    for number in range(300):
        first.receive(event(f"e{number}"))

    second = Inbox(Pool().nae_insert, first.recent)

    assert second.recent == first.recent == tuple(f"e{number}" for number in range(44, 300))
    assert second.receive(event("e299")).fate is Fate.DUPLICATE
    assert second.receive(event("e43")).fate is Fate.INSERTED


@pytest.mark.parametrize(
    ("payload", "word"),
    [
        (b"", "empty"),
        (b"{", "not closed"),
        (b"\xff\xfe", "UTF-8"),
        (b"[]", "object"),
        (b"null", "object"),
        (event()[:-1] + b', "id": 1}', "id"),
        (event(payload="not base64!"), "base64"),
        (event(payload=7), "text"),
        (event(storage_key=7), "text"),
        (event(id="900"), "integer"),
        (event(id=900.5), "integer"),
        (event(id=True), "integer"),
        (event(ts=None), "integer"),
        (event(flags="x"), "integer"),
        (event(channel=1), "text"),
        (event(event_id=""), "characters"),
        (json.dumps({**WHOLE, "event_id": 1}).encode(), "text"),
        (event("e" * 257), "characters"),
        (event(note="x" * MESSAGE_BYTES), "too large"),
        (b"[" * MESSAGE_BYTES, "deep"),
        *((without(name), name) for name in WHOLE),
    ],
)
def test_malformed_messages_are_counted_and_dropped_with_a_diagnostic(payload: bytes, word: str) -> None:
    pool = Pool()
    inbox = Inbox(pool.nae_insert)

    receipt = inbox.receive(payload)

    assert receipt.fate is Fate.MALFORMED
    assert receipt.sentence is not None
    assert word in receipt.sentence
    assert inbox.counts[Fate.MALFORMED] == 1
    assert pool.records == []


@pytest.mark.parametrize(
    "payload",
    [
        event(id=-1),
        event(id=1 << 64),
        event(ts=1 << 63),
        event(payload="AAAA"),
        event(kind=256),
        event(storage_key="AA=="),
    ],
)
def test_an_invalid_record_is_rejected_by_the_scheduler(payload: bytes) -> None:
    inbox = Inbox(scheduler().nae_insert)

    assert inbox.receive(payload).fate is Fate.REJECTED


def test_a_player_without_new_artwork_reports_it() -> None:
    inbox = Inbox(scheduler(nae=Nae(enabled=False)).nae_insert)

    assert inbox.receive(event()).fate is Fate.DISABLED


def test_an_event_whose_insertion_failed_is_not_remembered() -> None:
    def fail(record: Record | bytes) -> InsertResult:
        raise RuntimeError("out of order")

    inbox = Inbox(fail)

    with pytest.raises(RuntimeError, match="out of order"):
        inbox.receive(event())

    assert inbox.recent == ()
    assert sum(inbox.counts.values()) == 0


@given(st.lists(st.integers(0, 5), max_size=60))
def test_each_event_is_inserted_once_however_often_it_arrives(order: list[int]) -> None:
    pool = Pool()
    inbox = Inbox(pool.nae_insert)

    for number in order:
        inbox.receive(event(f"e{number}", number))

    assert [record.id for record in pool.records] == list(dict.fromkeys(order))
    assert inbox.counts[Fate.DUPLICATE] == len(order) - len(pool.records)


@given(st.binary(max_size=200) | st.tuples(st.integers(0, 120), st.binary(max_size=3)))
def test_arbitrary_bytes_never_raise(damage: bytes | tuple[int, bytes]) -> None:
    inbox = Inbox(scheduler().nae_insert)
    if isinstance(damage, tuple):
        at, put = damage
        damage = event()[:at] + put + event()[at + 1 :]

    inbox.receive(damage)

    assert sum(inbox.counts.values()) == 1


def test_a_burst_of_ten_thousand_messages_is_processed_completely() -> None:
    player = scheduler()
    inbox = Inbox(player.nae_insert)

    for number in range(5_000):
        inbox.receive(event(f"e{number}", number))
        inbox.receive(event(f"e{number // 2 * 2}", number))

    assert inbox.counts == {
        **dict.fromkeys(Fate, 0),
        Fate.INSERTED: 5_000,
        Fate.DUPLICATE: 5_000,
    }
    stats: Any = player.stats()
    assert stats["nae"]["pool"] == 32


# Topics, delays, parameters


def test_the_topic_has_prefix_and_player() -> None:
    assert topic_of("art/eu", "frame-7") == "art/eu/player/frame-7/new-artwork"


@pytest.mark.parametrize(
    ("prefix", "key", "parameter"),
    [
        ("", "k", "prefix"),
        ("a/+", "k", "prefix"),
        ("#", "k", "prefix"),
        ("$SYS", "k", "prefix"),
        ("a/", "k", "prefix"),
        ("a", "", "player_key"),
        ("a", "k/l", "player_key"),
        ("a", "+", "player_key"),
        ("a", "k\0", "player_key"),
        ("a", "k" * 129, "player_key"),
    ],
)
def test_an_invalid_part_of_a_topic_is_refused(prefix: str, key: str, parameter: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        topic_of(prefix, key)

    assert refused.value.parameter == parameter


def test_delays_double_up_to_the_maximum_and_restart_after_success() -> None:
    retry = Retry(7, first_ms=100, most_ms=1000)

    waits = [retry.failed() for _ in range(100)]
    retry.succeeded()

    for wait, plain in zip(waits, [100, 200, 400, 800, *[1000] * 96], strict=True):
        assert plain * 4 // 5 <= wait <= plain * 6 // 5
    assert len(set(waits[4:])) > 20
    assert 80 <= retry.failed() <= 120


def test_equal_seeds_give_equal_delays() -> None:
    first, second, other = Retry(1), Retry(1), Retry(2)

    waits = [[retry.failed() for _ in range(20)] for retry in (first, second, other)]

    assert waits[0] == waits[1] != waits[2]


def test_the_text_of_a_broker_hides_its_password() -> None:
    assert "secret" not in repr(Broker("h", password="secret"))


@pytest.mark.parametrize(("host", "port"), [("", 1883), ("h", 0), ("h", 65536)])
def test_an_invalid_url_is_refused(host: str, port: int) -> None:
    with pytest.raises(InvalidParameter):
        Broker(host, port)


def test_without_the_library_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt, "find_spec", lambda name: None)
    listener = MqttListener(scheduler(), Broker("127.0.0.1"), PREFIX, PLAYER)

    with pytest.raises(MissingExtra, match=r'pip install "pendula\[mqtt\]"'):
        listener.start()


# A real broker


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """The files of a certificate and its key."""
    (tmp_path / "cert.pem").write_text(CERTIFICATE)
    (tmp_path / "key.pem").write_text(KEY)
    return tmp_path / "cert.pem", tmp_path / "key.pem"


@in_a_loop
async def test_a_published_event_is_in_the_pool_and_in_the_programme() -> None:
    player, notices = scheduler(lookahead=1), NoticeQueue()
    async with broker_here() as broker, listening(broker.address, Inbox(player.nae_insert), notices):
        assert await notices.next_notice(Connected) == Connected(1)

        await broker.publish(TOPIC, event())
        receipt = await notices.next_notice(Fate.INSERTED)

    assert receipt == Receipt(Fate.INSERTED, "e1")
    assert 900 in {item.id for item in player.take(50)}


@in_a_loop
async def test_a_redelivery_by_the_broker_does_not_change_the_priority() -> None:
    player, notices = scheduler(lookahead=1), NoticeQueue()
    async with broker_here() as broker, listening(broker.address, Inbox(player.nae_insert), notices):
        await notices.next_notice(Connected)
        await broker.publish(TOPIC, event())
        await notices.next_notice(Fate.INSERTED)
        player.take(10)
        decayed = player.state_dict()

        await broker.publish(TOPIC, event())
        await notices.next_notice(Fate.DUPLICATE)

    assert player.state_dict() == decayed


@in_a_loop
async def test_malformed_and_huge_messages_do_not_interrupt_reception() -> None:
    inbox, notices = Inbox(scheduler().nae_insert), NoticeQueue()
    async with broker_here() as broker, listening(broker.address, inbox, notices):
        await notices.next_notice(Connected)

        await broker.publish(TOPIC, b"{", b"\x00" * (1 << 20), event())
        await notices.next_notice(Fate.INSERTED)

    assert inbox.counts[Fate.MALFORMED] == 2
    assert inbox.counts[Fate.INSERTED] == 1


@in_a_loop
async def test_messages_of_another_player_or_an_old_prefix_are_not_inserted() -> None:
    inbox, notices = Inbox(scheduler().nae_insert), NoticeQueue()
    async with broker_here() as broker:
        async with listening(broker.address, inbox, notices, prefix="old"):
            await notices.next_notice(Connected)
        await broker.wait_until_gone(PLAYER)
        async with listening(broker.address, inbox, notices):
            await notices.next_notice(Connected)

            await broker.publish(topic_of(PREFIX, "frame-8"), event("for another"))
            await broker.publish(topic_of("old", PLAYER), event("of the old prefix"))
            foreign = await notices.next_notice(Fate.FOREIGN)

    assert isinstance(foreign, Receipt)
    assert "old/player" in str(foreign.sentence)
    assert inbox.counts == {**dict.fromkeys(Fate, 0), Fate.FOREIGN: 1}


@in_a_loop
async def test_messages_published_while_the_player_is_offline_arrive_later() -> None:
    inbox, notices = Inbox(scheduler().nae_insert), NoticeQueue()
    async with broker_here() as broker:
        async with listening(broker.address, inbox, notices):
            await notices.next_notice(Connected)
            session = broker.session(PLAYER)
        await broker.wait_until_gone(PLAYER)
        await broker.publish(TOPIC, event("e1", 1), event("e2", 2))
        nothing_yet = dict(inbox.counts)
        async with listening(broker.address, inbox, notices):
            await notices.all_notices(Connected(1), Receipt(Fate.INSERTED, "e1"), Receipt(Fate.INSERTED, "e2"))

    assert not session.clean_session
    assert sum(nothing_yet.values()) == 0
    assert set(inbox.recent) == {"e1", "e2"}


@in_a_loop
async def test_after_a_reconnect_no_published_message_is_lost() -> None:
    inbox, notices = Inbox(scheduler().nae_insert), NoticeQueue()
    async with broker_here() as broker, listening(broker.address, inbox, notices):
        await notices.next_notice(Connected)

        await broker.disconnect(PLAYER)
        await broker.wait_until_gone(PLAYER)
        await broker.publish(TOPIC, event())
        await notices.all_notices(Connected(1), Receipt(Fate.INSERTED, "e1"))

    assert inbox.counts[Fate.INSERTED] == 1


@in_a_loop
async def test_the_listener_reconnects_to_a_restarted_broker() -> None:
    """This broker forgets its sessions when it stops; the listener subscribes again, so that later events arrive."""
    inbox, notices = Inbox(scheduler().nae_insert), NoticeQueue()
    async with broker_here() as broker, listening(broker.address, inbox, notices):
        await notices.next_notice(Connected)

        await broker.stop()
        lost = await notices.next_notice(Lost)
        await notices.next_notice(Lost)
        await broker.start()
        await notices.next_notice(Connected)
        await broker.publish(TOPIC, event())
        await notices.next_notice(Fate.INSERTED)

    assert isinstance(lost, Lost)
    assert lost.sentence


@in_a_loop
async def test_delays_restart_only_after_a_stable_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    notices, retry, held = NoticeQueue(), quick(), asyncio.Event()
    monkeypatch.setattr(retry, "succeeded", held.set)
    async with broker_here() as broker, listening(broker.address, Inbox(Pool().nae_insert), notices, retry=retry):
        await notices.next_notice(Connected)
        await broker.publish(TOPIC, event())
        await notices.next_notice(Fate.INSERTED)
        held_at_once = held.is_set()

        monkeypatch.setattr(mqtt, "STEADY_MS", 0)
        await broker.disconnect(PLAYER)
        await held.wait()

    assert not held_at_once


@in_a_loop
async def test_a_message_is_acknowledged_after_it_was_inserted() -> None:
    notices = NoticeQueue()
    async with broker_here() as broker:

        def insert(record: Record | bytes) -> InsertResult:
            broker.log.append("inserted")
            return InsertResult.INSERTED

        async with listening(broker.address, Inbox(insert), notices):
            await notices.next_notice(Connected)
            await broker.publish(TOPIC, event("e1"), event("e2"), event("e2"), b"malformed")
            await notices.next_notice(Fate.MALFORMED)
        await broker.wait_until_gone(PLAYER)
        log = list(broker.log)

    assert log[0] == "inserted"
    assert sorted(log) == ["acknowledged"] * 4 + ["inserted"] * 2


@in_a_loop
async def test_a_message_whose_insertion_fails_is_not_acknowledged_and_the_failure_is_raised() -> None:
    def fail(record: Record | bytes) -> InsertResult:
        raise RuntimeError("out of order")

    notices = NoticeQueue()
    async with broker_here() as broker:
        with pytest.raises(RuntimeError, match="out of order"):
            async with listening(broker.address, Inbox(fail), notices) as task:
                await notices.next_notice(Connected)
                await broker.publish(TOPIC, event())
                await asyncio.wait({task})
        await broker.wait_until_gone(PLAYER)

        assert "acknowledged" not in broker.log


@in_a_loop
async def test_a_wrong_password_is_reported_and_retried() -> None:
    notices = NoticeQueue()
    async with broker_here() as broker:
        wrong = msgspec.structs.replace(broker.address, password="wrong")
        async with listening(wrong, Inbox(scheduler().nae_insert), notices):
            first, second = await notices.next_notice(Lost), await notices.next_notice(Lost)

    assert isinstance(first, Lost)
    assert first == msgspec.structs.replace(second, wait_ms=first.wait_ms)
    assert "authori" in first.sentence.lower()


@in_a_loop
async def test_a_refused_subscription_is_reported_and_retried() -> None:
    notices = NoticeQueue()
    async with broker_here() as broker, listening(broker.address, Inbox(scheduler().nae_insert), notices, FORBIDDEN):
        first = await notices.next_notice(Lost)
        await notices.next_notice(Lost)

    assert isinstance(first, Lost)
    assert "refuses the subscription" in first.sentence


@in_a_loop
async def test_events_come_over_tls_from_a_broker_whose_certificate_is_trusted(certificate: tuple[Path, Path]) -> None:
    notices = NoticeQueue()
    async with broker_here(certificate) as broker:
        trusting = msgspec.structs.replace(broker.address, tls=ssl.create_default_context(cafile=str(certificate[0])))
        async with listening(trusting, Inbox(scheduler().nae_insert), notices):
            connected = await notices.next_notice(Connected)

    assert connected == Connected(1)


@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_a_broker_with_an_unknown_certificate_gets_neither_password_nor_player(
    certificate: tuple[Path, Path],
) -> None:
    @in_a_loop
    async def connect_to_untrusted_broker() -> None:
        notices = NoticeQueue()
        async with broker_here(certificate) as broker:
            stranger = msgspec.structs.replace(broker.address, tls=ssl.create_default_context())
            async with listening(stranger, Inbox(scheduler().nae_insert), notices):
                lost = await notices.next_notice(Lost)

            assert isinstance(lost, Lost)
            assert "certificate" in lost.sentence.lower()
            assert not broker.knows(PLAYER)

    connect_to_untrusted_broker()
    # paho leaves the socket of a failed handshake to the garbage collector; its warning belongs to this test.
    gc.collect()


@in_a_loop
async def test_a_connection_to_a_silent_broker_is_closed() -> None:
    closed: asyncio.Queue[None] = asyncio.Queue()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        closed.put_nowait(None)
        writer.close()

    notices = NoticeQueue()
    async with await asyncio.start_server(stay_silent, "127.0.0.1", 0) as server:
        silent = Broker("127.0.0.1", server.sockets[0].getsockname()[1], timeout_ms=20)
        async with listening(silent, Inbox(scheduler().nae_insert), notices):
            lost = await notices.next_notice(Lost)
            await closed.get()

    assert isinstance(lost, Lost)
    assert "timed out" in lost.sentence


@in_a_loop
async def test_a_listener_cancelled_while_it_connects_leaves_no_connection_behind() -> None:
    inbox = Inbox(scheduler().nae_insert)
    async with broker_here() as broker:
        task = asyncio.ensure_future(listen(broker.address, PREFIX, PLAYER, inbox))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await broker.wait_until_gone(PLAYER)

        assert broker.session(PLAYER).transitions.state == "disconnected"


# In a thread


class ThreadNoticeQueue:
    """The notices of a listener in another thread."""

    def __init__(self) -> None:
        self.news: queue.Queue[News] = queue.Queue()
        self.tell = self.news.put

    async def next(self) -> News:
        return await asyncio.to_thread(self.news.get, timeout=300)

    async def next_notice(self, kind: type[News]) -> None:
        while not isinstance(await self.next(), kind):
            pass


@in_a_loop
async def test_a_listener_in_a_thread_feeds_a_scheduler_until_it_is_stopped() -> None:
    player, notices = scheduler(lookahead=1), ThreadNoticeQueue()
    async with broker_here() as broker:
        listener = MqttListener(player, broker.address, PREFIX, PLAYER, tell=notices.tell)
        listener.start()
        await notices.next_notice(Connected)
        await broker.publish(listener.topic, event())
        await notices.next_notice(Receipt)
        with pytest.raises(WrongUsage):
            listener.start()
        await asyncio.to_thread(listener.stop)
        await broker.wait_until_gone(PLAYER)

        await broker.publish(listener.topic, event(), event("e2", 901))
        listener.start()
        back = {await notices.next() for _ in range(3)}
        await asyncio.to_thread(listener.stop)

    assert back == {Connected(1), Receipt(Fate.DUPLICATE, "e1"), Receipt(Fate.INSERTED, "e2")}
    assert "mqtt" not in {thread.name for thread in threading.enumerate()}
    stats: Any = player.stats()
    assert stats["nae"]["inserts"] == 2


@in_a_loop
async def test_stopping_a_listener_raises_the_error_that_ended_it() -> None:
    ended = threading.Event()

    def tell(news: News) -> None:
        ended.set()
        raise RuntimeError("nobody wants to know")

    async with broker_here() as broker:
        listener = MqttListener(scheduler(), broker.address, PREFIX, PLAYER, tell=tell)
        listener.start()
        await asyncio.to_thread(ended.wait, 60)
        assert listener._thread is not None
        await asyncio.to_thread(listener._thread.join, 60)
        with pytest.raises(RuntimeError, match="nobody wants to know"):
            await asyncio.to_thread(listener.stop)

    listener.stop()


@in_a_loop
async def test_a_listener_waits_for_a_broker_that_starts_later() -> None:
    notices, broker = ThreadNoticeQueue(), BrokerHere()
    await broker.start()
    await broker.stop()
    listener = MqttListener(scheduler(), broker.address, PREFIX, PLAYER, retry=quick(), tell=notices.tell)
    listener.start()
    await notices.next_notice(Lost)

    await broker.start()
    await notices.next_notice(Connected)
    await asyncio.to_thread(listener.stop)
    await broker.stop()

    assert listener.failure is None
