"""Streams over real connections: resumed without loss, disconnected without gaps, with many readers."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message, Scope

from pendula.server.schedulers.credit.owners import LOCAL_OWNER
from pendula.server.schedulers.credit.scheduler import scheduler_for
from pendula.server.settings import Settings
from tests.server.living import LiveServer, client_of, running, supervisor_of, until
from tests.server.schedulers.credit import strict
from tests.server.schedulers.credit.simulators import BASE, QUICK, RING, STILL, VILLAGE

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def served(tmp_path: Path, **environment: str) -> AsyncIterator[tuple[httpx.AsyncClient, LiveServer]]:
    settings = Settings(port=0, data=str(tmp_path / "data"))
    with LiveServer(settings, (scheduler_for(settings, {**QUICK, **environment}),)) as server:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=120, limits=limits) as client:
            yield client, server


async def started(client: httpx.AsyncClient, request: dict[str, Any] = RING) -> str:
    response = await client.post(f"{BASE}/runs", json=request)
    assert response.status_code == 200, response.text
    run_id: str = response.json()["run_id"]
    return run_id


def frames(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The messages of a stream, each an id, a name and one line of JSON."""
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            name, kind, data = lines
            assert kind == "event: simulator.event"
            body = json.loads(data.removeprefix("data: "))
            assert name == f"id: {body['event_id']}"
            yield body["event_id"], body


class Follower:
    """A reader that reconnects after its last complete event, as the protocol advises."""

    def __init__(self, client: httpx.AsyncClient, run_id: str, equivalent: str) -> None:
        self.seen: list[dict[str, Any]] = []
        self.connections = 0
        self._client = client
        self._path = f"{BASE}/runs/{run_id}/events"
        self._equivalent = equivalent

    async def follow(self, most_bytes: int | None = None) -> bool:
        """Read until the stream ends or `most_bytes` have come; returns whether it ended by itself."""
        headers = {"last-event-id": self.seen[-1]["event_id"]} if self.seen else {}
        self.connections += 1
        query = {"equivalent": self._equivalent}
        async with self._client.stream("GET", self._path, params=query, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            text, size = "", 0
            async for chunk in response.aiter_text():
                text += chunk
                size += len(chunk)
                if most_bytes is not None and size >= most_bytes:
                    break
            # The event after the last blank line is incomplete.
            complete = text[: text.rfind("\n\n") + 2]
            self.seen += [body for _, body in frames(complete)]
            return most_bytes is None or size < most_bytes


@pytest.mark.req("SIM-API-12", "SIM-EVT-8", "SIM-EVT-12", "SIM-TEST-4")
async def test_a_stream_begins_with_a_status_and_ends_with_the_run(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        run_id = await started(client)
        follower = Follower(client, run_id, "HOUR")
        task = asyncio.create_task(follower.follow())
        while (await client.get(f"{BASE}/runs/{run_id}")).json()["sim_time_ms"] < 5000:
            await asyncio.sleep(0.01)
        await client.post(f"{BASE}/runs/{run_id}/stop")
        await task

    for event in follower.seen:
        strict.event(event)
    assert (follower.seen[0]["type"], follower.seen[0]["state"]) == ("run_status", "running")
    assert [one["state"] for one in follower.seen if one["type"] == "run_status"][-2:] == ["stopping", "stopped"]
    assert follower.seen[-1]["state"] == "stopped"


@pytest.mark.req("SIM-EVT-8")
async def test_a_stream_has_the_headers_of_the_protocol(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        run_id = await started(client)
        async with client.stream("GET", f"{BASE}/runs/{run_id}/events") as response:
            headers = response.headers

    assert headers["content-type"].startswith("text/event-stream")
    assert (headers["cache-control"], headers["connection"]) == ("no-cache", "keep-alive")


@pytest.mark.req("SIM-EVT-10", "SIM-EVT-11")
async def test_a_reader_with_random_disconnects_gets_every_event_once(tmp_path: Path) -> None:
    luck = random.Random(15)
    # The buffer keeps all events that come while the reader is away.
    async with served(tmp_path, SIMULATOR_EVENT_BUFFER_SIZE="1000000") as (client, _):
        run_id = await started(client, VILLAGE)
        unlucky = Follower(client, run_id, "UNIT")
        while len(unlucky.seen) < 300:
            await unlucky.follow(luck.choice((1, 300, 2000, 5000, 20_000)))
        stop = asyncio.create_task(client.post(f"{BASE}/runs/{run_id}/stop"))
        while not await unlucky.follow(luck.choice((5000, 50_000))):
            pass
        await stop
        kept = (await client.get(f"{BASE}/runs/{run_id}/events/poll", params={"equivalent": "UNIT"})).json()

    ids = [one["event_id"] for one in unlucky.seen]
    assert ids == [one["event_id"] for one in kept if ids[0] <= one["event_id"] <= ids[-1]]
    assert unlucky.seen[-1]["state"] == "stopped"
    assert unlucky.connections > 10


@pytest.mark.req("SIM-TEST-15", "SIM-EVT-13")
async def test_fifty_readers_of_one_run_all_see_the_same(tmp_path: Path) -> None:
    async with served(tmp_path, SIMULATOR_SSE_MAX_CONNECTIONS_PER_RUN="50", SIMULATOR_SSE_SUB_QUEUE_MAX="1000000") as (
        client,
        _,
    ):
        run_id = await started(client)
        followers = [Follower(client, run_id, "HOUR") for _ in range(50)]
        tasks = [asyncio.create_task(one.follow()) for one in followers]
        while (await client.get(f"{BASE}/runs/{run_id}/details")).json()["followers"] < 50:
            await asyncio.sleep(0.05)
        refused = await client.get(f"{BASE}/runs/{run_id}/events")
        begun = (await client.get(f"{BASE}/runs/{run_id}")).json()["sim_time_ms"]
        while (await client.get(f"{BASE}/runs/{run_id}")).json()["sim_time_ms"] < begun + 3000:
            await asyncio.sleep(0.05)
        await client.post(f"{BASE}/runs/{run_id}/stop")
        await asyncio.gather(*tasks)

    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "TOO_MANY_STREAMS")
    last = max(one.seen[0]["event_id"] for one in followers)
    tails = {tuple(event["event_id"] for event in one.seen if event["event_id"] >= last) for one in followers}
    assert len(tails) == 1


@pytest.mark.req("SIM-EVT-13", "SIM-TEST-12")
async def test_a_stream_above_the_limit_is_refused_until_another_ends(tmp_path: Path) -> None:
    async with served(tmp_path, SIMULATOR_SSE_MAX_CONNECTIONS="2") as (client, server):
        run_id = await started(client)
        path = f"{BASE}/runs/{run_id}/events"
        async with client.stream("GET", path):
            async with client.stream("GET", path):
                assert (await client.get(path)).status_code == 429
            with server.client() as watcher:
                until(lambda: watcher.get(f"{BASE}/runs/{run_id}/details").json()["followers"] == 1)
            async with client.stream("GET", path) as third:
                assert third.status_code == 200


@pytest.mark.req("SIM-EVT-10", "SIM-TEST-12")
@pytest.mark.parametrize("last", ["evt_run_x_000001", "nonsense", "ahead"])
async def test_an_id_that_cannot_be_resumed_is_410(tmp_path: Path, last: str) -> None:
    async with served(tmp_path) as (client, _):
        run_id = await started(client)
        name = f"evt_{run_id}_999999" if last == "ahead" else last
        path = f"{BASE}/runs/{run_id}/events"
        responses = [await client.get(path, headers={"last-event-id": name})]
        responses.append(await client.get(f"{path}/poll", params={"after": name}))

    for response in responses:
        strict.ERROR(response.json())
        assert (response.status_code, response.json()["error"]["code"]) == (410, "EVENT_ID_GONE")


@pytest.mark.req("SIM-EVT-10")
@pytest.mark.parametrize("named", ["address", "header", "both"])
async def test_a_stream_continues_after_polled_events(tmp_path: Path, named: str) -> None:
    """The header wins: a browser that reconnects repeats its first URL."""
    async with served(tmp_path, **STILL) as (client, _):
        run_id = await started(client)
        path = f"{BASE}/runs/{run_id}/events"
        first = (await client.get(f"{path}/poll")).json()[0]["event_id"]
        for verb in ("pause", "resume"):
            await client.post(f"{BASE}/runs/{run_id}/{verb}")
        polled = [one["event_id"] for one in (await client.get(f"{path}/poll")).json()]
        seen = polled[-1] if named == "both" else first
        query = {} if named == "header" else {"after": first}
        headers = {} if named == "address" else {"last-event-id": seen}
        await client.post(f"{BASE}/runs/{run_id}/stop")
        response = await client.get(path, params=query, headers=headers)
        kept = [one["event_id"] for one in (await client.get(f"{path}/poll", params={"after": seen})).json()]

    assert len(polled) > 1
    assert [name for name, _ in frames(response.text)] == kept


@pytest.mark.req("SIM-EVT-10", "SIM-EVT-11")
async def test_a_stream_continues_after_the_oldest_event_in_the_buffer(tmp_path: Path) -> None:
    settings = Settings(data=str(tmp_path / "data"))
    async with running(settings, (scheduler_for(settings, STILL),)) as app, client_of(app) as client:
        run_id = await started(client)
        service: Any = supervisor_of(app).service("credit")
        run = await service.find(LOCAL_OWNER, run_id)
        for _ in range(2100):
            run.publish_status()
        await client.post(f"{BASE}/runs/{run_id}/stop")
        path = f"{BASE}/runs/{run_id}/events"
        kept = [one["event_id"] for one in (await client.get(f"{path}/poll")).json()]
        response = await client.get(path, headers={"last-event-id": kept[0]})

    assert len(kept) == 2000
    assert [name for name, _ in frames(response.text)][:1999] == kept[1:]


@pytest.mark.req("SIM-EVT-10")
@pytest.mark.parametrize("place", ["header", "address", "poll"])
async def test_an_empty_id_is_ignored(tmp_path: Path, place: str) -> None:
    async with served(tmp_path, **STILL) as (client, _):
        run_id = await started(client)
        await client.post(f"{BASE}/runs/{run_id}/stop")
        path = f"{BASE}/runs/{run_id}/events"
        headers = {"last-event-id": ""} if place == "header" else {}
        query = {} if place == "header" else {"after": ""}
        response = await client.get(f"{path}/poll" if place == "poll" else path, params=query, headers=headers)

    assert response.status_code == 200, response.text
    assert "stopped" in response.text


@pytest.mark.req("SIM-EVT-11")
async def test_a_stalled_reader_is_disconnected_without_a_gap(tmp_path: Path) -> None:
    """The connection is blocked while a hundred events come, which is more than the limit."""
    settings = Settings(data=str(tmp_path / "data"))
    scheduler = scheduler_for(settings, {**STILL, "SIMULATOR_SSE_SUB_QUEUE_MAX": "20"})
    sent: list[Message] = []
    readable = asyncio.Event()

    async def send(message: Message) -> None:
        sent.append(message)
        if len(sent) > 1:
            await readable.wait()

    async def receive() -> Message:
        await asyncio.sleep(3600)
        raise AssertionError

    async with running(settings, (scheduler,)) as app, client_of(app) as client:
        run_id = await started(client)
        stream = asyncio.create_task(app(_scope(f"{BASE}/runs/{run_id}/events"), receive, send))
        service: Any = supervisor_of(app).service("credit")
        run = await service.find(LOCAL_OWNER, run_id)
        while not run.followers:
            await asyncio.sleep(0.005)
        for _ in range(100):
            run.publish_status()
        readable.set()
        await stream
        assert run.record.state == "running"

    body = b"".join(message.get("body", b"") for message in sent)
    ids = [int(name.rsplit("_", 1)[1]) for name, _ in frames(body.decode())]
    assert ids == list(range(ids[0], ids[0] + len(ids))) if ids else True
    assert len(ids) < 100
    assert sent[-1].get("more_body") is False


def _scope(path: str) -> Scope:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1:8765")],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8765),
    }


@pytest.mark.req("SIM-EVT-9")
async def test_an_unknown_equivalent_has_no_stream(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        run_id = await started(client)
        response = await client.get(f"{BASE}/runs/{run_id}/events", params={"equivalent": "EUR"})

    assert (response.status_code, response.json()["error"]["code"]) == (404, "EQUIVALENT_NOT_FOUND")


@pytest.mark.req("SIM-EVT-12")
async def test_the_stream_of_an_ended_run_sends_its_status_and_ends(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        run_id = await started(client)
        await client.post(f"{BASE}/runs/{run_id}/stop")
        response = await client.get(f"{BASE}/runs/{run_id}/events")

    assert [body["state"] for _, body in frames(response.text)] == ["stopped"]
