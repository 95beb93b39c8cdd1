"""Several independent streams in one response."""

import asyncio
import json
from urllib.parse import quote

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from pendula.server.api import combined_stream
from pendula.server.security.identity import TokenStore
from pendula.server.settings import Settings
from tests.server.living import TALLY, StreamReader, client_of, code_of, running, supervisor_of

pytestmark = pytest.mark.anyio
TWO = msgspec.structs.replace(TALLY, engines={"main": {"seed": 7}, "other": {"seed": 8}})
MAIN = "/api/v1/tally/main/stream"
OTHER = "/api/v1/tally/other/stream"


def of(*addresses: str) -> str:
    return "&".join(f"of={quote(address, safe='')}" for address in addresses)


async def add(app: FastAPI, engine: str, amount: int) -> None:
    async with client_of(app) as client:
        sent = await client.post(f"/api/v1/tally/{engine}/commands", json={"type": "add", "amount": amount})
        assert sent.status_code == 200


class Reading:
    """The messages of a combined response, grouped by stream."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self._text = b""

    async def next(self) -> tuple[str, int, list[str]]:
        """The next message about a stream: its name, the number of the stream, further lines."""
        while True:
            while b"\n\n" not in self._text:
                self._text += await asyncio.wait_for(self._reader.chunk(), 120)
            block, _, self._text = self._text.partition(b"\n\n")
            lines = block.decode().split("\n")
            if lines[0].startswith("event: ") and lines[0] != "event: beat":
                number, *others = (line.removeprefix("data: ") for line in lines[1:])
                return lines[0].removeprefix("event: "), int(number), others

    async def amounts(self, count: int) -> list[tuple[int, int]]:
        """The next `count` events, each with the number of its stream."""
        found: list[tuple[int, int]] = []
        while len(found) < count:
            name, number, lines = await self.next()
            data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
            if name == "data" and data:
                found.append((number, json.loads(data[0])["by"]))
        return found

    async def opened(self, count: int) -> None:
        seen = 0
        while seen < count:
            seen += (await self.next())[0] == "opened"


async def test_one_connection_carries_events_of_several_engines(settings: Settings) -> None:
    async with running(settings, [TWO]) as app, StreamReader(app, combined_stream.PATH, of(MAIN, OTHER)) as reader:
        reading = Reading(reader)
        await reading.opened(2)
        await add(app, "other", 2)
        await add(app, "main", 1)

        assert await reading.amounts(2) == [(1, 2), (0, 1)]


async def test_each_stream_resumes_after_its_own_last_event(settings: Settings) -> None:
    async with running(settings, [TWO]) as app:
        for amount in (1, 2, 3):
            await add(app, "main", amount)
            await add(app, "other", 10 * amount)
        async with StreamReader(app, combined_stream.PATH, of(f"0.0 {MAIN}", f"2.0 {OTHER}?after=0.0")) as reader:
            assert sorted(await Reading(reader).amounts(3)) == [(0, 2), (0, 3), (1, 30)]


async def test_a_stream_reports_its_start_so_that_no_event_is_missed(
    settings: Settings,
) -> None:
    async with running(settings, [TWO]) as app:
        async with StreamReader(app, combined_stream.PATH, of(MAIN)) as reader:
            reading = Reading(reader)
            await reading.opened(1)
            name, _, lines = await reading.next()
        await add(app, "main", 5)
        assert (name, lines) == ("data", ["id: -1.0"])
        async with StreamReader(app, combined_stream.PATH, of(f"-1.0 {MAIN}")) as reader:
            assert await Reading(reader).amounts(1) == [(0, 5)]


async def test_a_refused_stream_gives_its_reason_and_the_others_continue(settings: Settings) -> None:
    missing = "/api/v1/tally/nobody/stream"
    async with running(settings, [TWO]) as app, StreamReader(app, combined_stream.PATH, of(missing, MAIN)) as reader:
        reading = Reading(reader)
        messages = [await reading.next(), await reading.next()]
        refused = next(message for message in messages if message[0] == "refused")
        await add(app, "main", 1)

        assert refused[1] == 0
        assert json.loads(refused[2][0])["error"]["code"] == "not_found"
        assert await reading.amounts(1) == [(1, 1)]


async def test_a_path_without_a_stream_is_refused(settings: Settings) -> None:
    async with (
        running(settings, [TWO]) as app,
        StreamReader(app, combined_stream.PATH, of("/api/v1/schedulers")) as reader,
    ):
        name, number, lines = await Reading(reader).next()
        await reader.ended()

    assert (name, number, json.loads(lines[0])["error"]["code"]) == ("refused", 0, "not_a_stream")


async def test_the_response_ends_with_its_last_stream(settings: Settings) -> None:
    async with running(settings, [TWO]) as app, StreamReader(app, combined_stream.PATH, of(MAIN, OTHER)) as reader:
        await Reading(reader).opened(2)
        supervisor_of(app).stop_streams()

        assert (await reader.ended()).count(b"event: ended") == 2


async def test_a_disconnect_frees_all_places(settings: Settings) -> None:
    async with running(settings, [TWO]) as app:
        ledger = supervisor_of(app).streams
        async with StreamReader(app, combined_stream.PATH, of(MAIN, OTHER)) as reader:
            await Reading(reader).opened(2)
            during = ledger._open.total()
        async with asyncio.timeout(120):
            while ledger._open.total():
                await asyncio.sleep(0.001)

    assert during == 2


async def test_an_idle_connection_sends_heartbeats(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combined_stream, "BEAT_SECONDS", 0.01)
    async with running(settings, [TWO]) as app, StreamReader(app, combined_stream.PATH, of(MAIN)) as reader:
        messages = b""
        while messages.count(combined_stream.BEAT) < 3:
            messages += await asyncio.wait_for(reader.chunk(), 120)


@pytest.mark.parametrize(
    "query",
    [
        "",
        of(combined_stream.PATH),
        of("http://elsewhere/stream"),
        of("stream"),
        of("/" + "a" * 600),
        "&".join([of(MAIN)] * 65),
    ],
)
async def test_invalid_stream_paths_are_refused(client: httpx.AsyncClient, query: str) -> None:
    response = await client.get(f"{combined_stream.PATH}?{query}")

    assert (response.status_code, code_of(response)) == (422, "invalid_request")


async def test_the_combined_stream_needs_the_same_token_as_its_parts(settings: Settings) -> None:
    TokenStore(settings.data).new("ann", "viewer")
    async with running(settings, [TWO]) as app, client_of(app) as client:
        response = await client.get(f"{combined_stream.PATH}?{of(MAIN)}")

    assert (response.status_code, code_of(response)) == (401, "not_identified")


async def test_the_stream_limit_counts_every_part(settings: Settings) -> None:
    given = msgspec.structs.replace(settings, limits={"streams_per_token": 2})
    async with running(given, [TWO]) as app, StreamReader(app, combined_stream.PATH, of(MAIN, OTHER, MAIN)) as reader:
        reading = Reading(reader)
        # Two messages open the streams.
        messages = [await reading.next() for _ in range(5)]

    refused = [json.loads(lines[0])["error"]["code"] for name, _, lines in messages if name == "refused"]
    assert refused == ["too_many_streams"]
