"""Event streams: every event once and in order, resumed after the last one; missed events are counted in a gap."""

import asyncio
import json
import threading
import time
from typing import Any, cast

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from pendula.kernel import canonical
from pendula.kernel.cancellation import Cancelled, check
from pendula.kernel.stream import Published, Stream
from pendula.server.runtime import streams
from pendula.server.runtime.engine_host import EngineHost
from pendula.server.security.identity import TokenStore
from pendula.server.settings import Settings
from tests.server.living import BASE, TALLY, StreamReader, client_of, code_of, running, supervisor_of

pytestmark = pytest.mark.anyio
STREAM = f"{BASE}/stream"


async def add(app: FastAPI, *amounts: int) -> None:
    async with client_of(app) as client:
        for amount in amounts:
            assert (await client.post(f"{BASE}/commands", json={"type": "add", "amount": amount})).status_code == 200


def amounts(messages: list[dict[str, str]]) -> list[int]:
    assert all(message["event"] == "event" for message in messages), messages
    return [json.loads(message["data"])["by"] for message in messages]


async def test_events_arrive_in_order_with_their_ids(settings: Settings) -> None:
    async with running(settings) as app, StreamReader(app, STREAM) as reader:
        await add(app, 1, 2, 3)

        messages = await reader.messages(3)

    assert amounts(messages) == [1, 2, 3]
    assert [message["id"] for message in messages] == ["0.0", "2.0", "4.0"]


async def test_a_stream_without_a_cursor_starts_with_new_events(settings: Settings) -> None:
    async with running(settings) as app:
        await add(app, 1, 2)
        async with StreamReader(app, STREAM) as reader:
            await add(app, 3)

            assert amounts(await reader.messages(1)) == [3]


@pytest.mark.parametrize("buffer", [10_000, 2])
async def test_a_reader_resumes_after_its_last_event_without_loss_or_repeat(settings: Settings, buffer: int) -> None:
    """From the buffer, and from the journal for older events."""
    given = msgspec.structs.replace(settings, limits={"stream_buffer_events": buffer})
    async with running(given) as app:
        async with StreamReader(app, STREAM) as reader:
            await add(app, 1, 2)
            last = (await reader.messages(2))[-1]["id"]
        await add(app, 3, 4, 5, 6, 7)
        async with StreamReader(app, STREAM, headers={"last-event-id": last}) as reader:
            await add(app, 8)

            assert amounts(await reader.messages(6)) == [3, 4, 5, 6, 7, 8]


async def test_a_reader_resumes_after_a_restart(settings: Settings) -> None:
    async with running(settings) as app:
        await add(app, 1, 2, 3)
    async with running(settings) as app, StreamReader(app, STREAM, "after=0.0") as reader:
        await add(app, 4)

        assert amounts(await reader.messages(3)) == [2, 3, 4]


async def test_the_journal_is_not_read_further_once_its_reader_has_left(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, given_up = threading.Event(), threading.Event()

    def long(*_: object) -> list[object]:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            begun.set()
            try:
                check()
            except Cancelled:
                given_up.set()
                raise
        return []

    async with running(settings) as app:
        await add(app, 1)
        monkeypatch.setattr(Stream, "take", long)
        async with StreamReader(app, STREAM, "after=-1.0"), asyncio.timeout(120):
            while not begun.is_set():
                await asyncio.sleep(0.001)

    assert given_up.is_set()


async def test_the_last_event_id_header_wins_over_the_query(settings: Settings) -> None:
    async with running(settings) as app:
        await add(app, 1, 2, 3)
        async with StreamReader(app, STREAM, "after=0.0", {"last-event-id": "2.0"}) as reader:
            assert amounts(await reader.messages(1)) == [3]


async def test_unknown_event_types_are_refused_with_a_suggestion(client: httpx.AsyncClient) -> None:
    response = await asyncio.wait_for(client.get(STREAM, params={"types": "changd"}), 120)

    assert (response.status_code, code_of(response)) == (422, "invalid_request")
    assert "(did you mean changed?)" in response.json()["error"]["message"]


def test_ids_of_filtered_events_are_sent_from_time_to_time() -> None:
    class Wanted(msgspec.Struct, tag="wanted"): ...

    class Other(msgspec.Struct, tag="other"): ...

    def published(n: int, event: object) -> Published[Any]:
        return Published(n, 0, event, canonical.encode(event))

    framing = streams.engine_framing(cast(EngineHost, None), {"wanted"})
    some = [framing.write([published(n, Other()) for n in range(10)]), framing.write([published(10, Wanted())])]
    many = framing.write([published(n, Other()) for n in range(11, 11 + streams.MOST_LEFT_OUT)])

    assert some == [b"", b'event: event\ndata: {"type":"wanted"}\nid: 10.0\n\n']
    assert many == b"id: %d.0\n\n" % (10 + streams.MOST_LEFT_OUT)


@pytest.mark.parametrize("after", ["x", "1", "1.", "-2.0", "999999.0", "1.0.0", "9" * 60])
async def test_an_unknown_cursor_is_refused(client: httpx.AsyncClient, after: str) -> None:
    response = await asyncio.wait_for(client.get(STREAM, params={"after": after}), 120)

    assert (response.status_code, code_of(response)) == (422, "unknown_event_id")


async def test_a_slow_reader_gets_a_gap_with_the_number_of_missed_events(settings: Settings) -> None:
    given = msgspec.structs.replace(settings, limits={"stream_buffer_events": 10})
    async with running(given) as app, StreamReader(app, STREAM) as reader:
        await add(app, 1)
        await reader.messages(1)
        reader.pause_reading()
        await add(app, *range(100, 150))
        reader.resume_reading()

        seen = await reader.messages(1)
        while seen[-1]["event"] == "event":
            seen += await reader.messages(1)
        gap = json.loads(seen[-1]["data"])
        rest = await reader.messages(10)

    before = amounts(seen[:-1])
    assert before == list(range(100, 100 + len(before)))
    assert gap["missed"] == 50 - len(before) - 10
    assert gap["next"] == rest[0]["id"]
    assert gap["after"] == (seen[-2]["id"] if len(seen) > 1 else "0.0")
    assert amounts(rest) == list(range(140, 150))
    assert "id" not in seen[-1]


async def test_a_stream_above_the_limit_is_refused_and_the_others_continue(settings: Settings) -> None:
    given = msgspec.structs.replace(settings, limits={"streams": 3})
    async with running(given) as app, client_of(app) as client:
        async with (
            StreamReader(app, STREAM) as one,
            StreamReader(app, STREAM) as two,
            StreamReader(app, STREAM) as three,
        ):
            refused = await asyncio.wait_for(client.get(STREAM), 120)
            await add(app, 1)

            assert (refused.status_code, code_of(refused)) == (503, "too_many_streams")
            assert refused.headers["retry-after"]
            for reader in (one, two, three):
                assert amounts(await reader.messages(1)) == [1]
        async with StreamReader(app, STREAM) as again:
            assert again.status == 200


async def test_one_token_cannot_take_all_streams(settings: Settings) -> None:
    store = TokenStore(settings.data)
    greedy, other = ({"authorization": f"Bearer {store.new(name, 'viewer')[1]}"} for name in ("greedy", "other"))
    given = msgspec.structs.replace(settings, limits={"streams_per_token": 1})
    async with running(given) as app, client_of(app) as client, StreamReader(app, STREAM, headers=greedy):
        refused = await asyncio.wait_for(client.get(STREAM, headers=greedy), 120)
        async with StreamReader(app, STREAM, headers=other) as reader:
            assert reader.status == 200

    assert (refused.status_code, code_of(refused)) == (429, "too_many_streams")


async def test_a_refused_stream_takes_no_place(settings: Settings) -> None:
    given = msgspec.structs.replace(settings, limits={"streams": 1})
    async with running(given) as app, client_of(app) as client:
        for _ in range(3):
            assert (await asyncio.wait_for(client.get(STREAM, params={"after": "x"}), 120)).status_code == 422
        async with StreamReader(app, STREAM) as reader:
            assert reader.status == 200


async def test_streams_do_not_count_as_requests(settings: Settings) -> None:
    given = msgspec.structs.replace(settings, limits={"requests": 1})
    async with running(given) as app, StreamReader(app, STREAM), client_of(app) as client:
        assert (await client.get("/api/v1/schedulers")).status_code == 200


async def test_a_stream_ends_when_its_token_is_revoked(settings: Settings) -> None:
    store = TokenStore(settings.data)
    _, secret = store.new("guest", "viewer")
    _, shift = store.new("shift", "operator")
    guest = {"authorization": f"Bearer {secret}"}
    async with running(settings) as app, client_of(app) as client, StreamReader(app, STREAM, headers=guest) as reader:
        store.revoke("guest")
        body = {"type": "add", "amount": 1}
        await client.post(f"{BASE}/commands", json=body, headers={"authorization": f"Bearer {shift}"})

        assert b"changed" not in await reader.ended()


async def test_streams_deliver_published_events_before_the_server_stops(settings: Settings) -> None:
    async with running(settings) as app, StreamReader(app, STREAM) as reader:
        await add(app, 1)
        supervisor_of(app).stop_streams()

        assert b'"by":1' in await reader.ended()


async def test_comments_keep_an_idle_stream_alive(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.01)
    async with running(settings) as app, StreamReader(app, STREAM) as reader:
        text = b""
        while text.count(b": ping\n\n") < 2:
            text += await asyncio.wait_for(reader.chunk(), 120)


async def test_the_response_is_an_event_stream_that_is_not_cached(settings: Settings) -> None:
    async with running(settings, [TALLY]) as app, StreamReader(app, STREAM) as reader:
        assert reader.headers["content-type"].startswith("text/event-stream")
        assert reader.headers["cache-control"] == "no-store"
        assert reader.headers["x-content-type-options"] == "nosniff"


async def test_many_readers_get_the_same_events(settings: Settings) -> None:
    async with running(settings) as app:
        readers = [StreamReader(app, STREAM) for _ in range(20)]
        for reader in readers:
            await reader.__aenter__()
        async with client_of(app) as client:
            bodies = [{"type": "add", "amount": amount} for amount in range(50)]
            await asyncio.gather(*(client.post(f"{BASE}/commands", json=body) for body in bodies))

        seen = [amounts(await reader.messages(50)) for reader in readers]
        for reader in readers:
            await reader.__aexit__()

    assert sorted(seen[0]) == list(range(50))
    assert all(one == seen[0] for one in seen)
