"""Small fleets to post in tests, and conditions to wait for."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx

BASE = "/api/v1/fleet"
# Short operations, so that something happens soon.
STREAMS = [
    {"streamId": name, "pickNodeIds": [pick], "dropNodeIds": [drop], "pickDurationMs": 500, "dropDurationMs": 500}
    for name, pick, drop in (("S-OUT", "WEST", "EAST"), ("S-BACK", "EAST", "WEST"))
]
# Three trucks with endless streams in the hall of the requirements.
HALL: dict[str, Any] = {
    "contractVersion": "1.0.0",
    "name": "hall",
    "durationMs": 3_600_000,
    "sample": {"name": "reference-hall", "trucks": 3},
    "streams": STREAMS,
}


async def made(client: httpx.AsyncClient, name: str = "hall", **query: Any) -> None:
    real = query.get("live") in (True, "true")
    response = await client.post(BASE, params={"name": name, "speed": 1 if real else 20, **query}, json=HALL)
    assert response.status_code == 201, response.text


async def now(client: httpx.AsyncClient, name: str = "hall", **query: Any) -> dict[str, Any]:
    response = await client.get(f"{BASE}/{name}/now", params=query)
    assert response.status_code == 200, response.text
    reply: dict[str, Any] = response.json()
    return reply


async def until(
    client: httpx.AsyncClient, holds: Callable[[dict[str, Any]], bool], seconds: float = 300, name: str = "hall"
) -> dict[str, Any]:
    """The first moment at which it holds."""
    async with asyncio.timeout(seconds):
        while True:
            reply = await now(client, name)
            if holds(reply):
                return reply
            await asyncio.sleep(0.02)
