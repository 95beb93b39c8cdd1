"""With `--demo` every scheduler shows activity without a client."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from pendula.server.schedulers import SCHEDULERS, schedulers_for
from pendula.server.settings import Settings
from tests.server.living import client_of, running

pytestmark = pytest.mark.anyio

PATIENCE_SECONDS = 300


async def answer(client: httpx.AsyncClient, path: str) -> Any:
    response = await client.get(path)
    assert response.status_code == 200, response.text
    return response.json()


def commands_of(scheduler: str) -> Callable[[httpx.AsyncClient], Awaitable[Any]]:
    async def sign(client: httpx.AsyncClient) -> Any:
        schedulers = (await answer(client, "/api/v1/schedulers"))["schedulers"]
        return [engine["commands"] for one in schedulers if one["name"] == scheduler for engine in one["engines"]]

    return sign


async def ticks(client: httpx.AsyncClient) -> Any:
    active = (await answer(client, "/api/v1/simulator/runs/active"))["run_id"]
    return None if active is None else (await answer(client, f"/api/v1/simulator/runs/{active}"))["sim_time_ms"]


async def jobs(client: httpx.AsyncClient) -> Any:
    return [(job["job_id"], job["status"]) for job in (await answer(client, "/scheduler/jobs"))["jobs"]]


SIGNS = {
    "actions": commands_of("actions"),
    "credit": ticks,
    "fleet": commands_of("fleet"),
    "jobs": jobs,
    "playback": commands_of("playback"),
}


async def test_every_scheduler_of_the_demo_shows_activity(settings: Settings) -> None:
    demo = replace(settings, demo=True)
    assert set(SIGNS) == set(SCHEDULERS)

    async with running(demo, schedulers_for(demo)) as app, client_of(app) as client:
        before = {scheduler: await sign(client) for scheduler, sign in SIGNS.items()}
        still = set(SIGNS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while still:
                await asyncio.sleep(0.1)
                still = {
                    scheduler for scheduler in still if await SIGNS[scheduler](client) in (before[scheduler], None, [])
                }
