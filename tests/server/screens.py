"""Players for the server tests: fill channels, create a player, send commands, read its state."""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import msgspec

from pendula.server.schedulers.playback.routes import SCHEDULER

BASE = "/api/v1/playback"
HALL = f"{BASE}/hall"
HOUR_MS = 3_600_000
PAYLOAD = b64encode(bytes(range(32))).decode()
# The scheduler without its demo.
STILL = msgspec.structs.replace(SCHEDULER, demo=None)


def records(*ids: int) -> list[dict[str, Any]]:
    """Records in this order, newest first."""
    return [{"id": id, "ts": 10_000 - place} for place, id in enumerate(ids)]


async def fill(client: httpx.AsyncClient, channel: str, *ids: int, **more: Any) -> Any:
    response = await client.put(f"{BASE}/channels/{channel}", json={"records": records(*ids), **more})
    assert response.status_code == 200, response.text
    return response.json()


async def make(client: httpx.AsyncClient, name: str = "hall", **changes: Any) -> httpx.Response:
    """A player with a dwell of an hour, so that only the test advances it."""
    body = {"name": name, "seed": 1, "channels": ["a", "b"], "dwell_ms": HOUR_MS, **changes}
    return await client.post(BASE, json=body)


async def hang(client: httpx.AsyncClient, **changes: Any) -> None:
    """Fill two channels and create a player that follows them."""
    await fill(client, "a", 1, 2, 3, 4)
    await fill(client, "b", 11, 12, 13)
    made = await make(client, **changes)
    assert made.status_code == 201, made.text


async def ask(client: httpx.AsyncClient, what: str, player: str = "hall", **body: Any) -> Any:
    response = await client.post(f"{BASE}/{player}/{what}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def view(client: httpx.AsyncClient, what: str, player: str = "hall", **query: Any) -> Any:
    response = await client.get(f"{BASE}/{player}/{what}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def shown(client: httpx.AsyncClient, count: int, player: str = "hall") -> list[int]:
    """The ids that this many calls of `next` return."""
    return [(await ask(client, "next", player))["answer"]["id"] for _ in range(count)]


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Repeat until the condition holds; fail instead of hanging."""
    async with asyncio.timeout(120):
        while not await holds():
            await asyncio.sleep(0.005)


async def channel(client: httpx.AsyncClient, name: str) -> Any:
    return (await client.get(f"{BASE}/channels/{name}")).json()


async def is_on(client: httpx.AsyncClient, player: str) -> bool:
    return (await view(client, "now", player))["item"] is not None
