"""Servers with the simulator, and a client, for tests."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from pendula.server.runtime.supervisor import Supervisor
from pendula.server.schedulers.credit.scheduler import scheduler_for
from pendula.server.schedulers.credit.service import SimulatorService
from pendula.server.settings import Settings
from tests.server.living import client_of, running, supervisor_of

BASE = "/api/v1/simulator"
QUICK = {"SIMULATOR_HEARTBEAT_MS": "5", "SIMULATOR_ACTIONS_ENABLE": "1", "SIMULATOR_REAL_AMOUNT_CAP": "500"}
# So long that no heartbeat or tick happens during a test.
STILL = {**QUICK, "SIMULATOR_HEARTBEAT_MS": "3600000"}
RING = {"scenario_id": "ring-of-five", "mode": "real", "intensity_percent": 50, "seed": 7}
VILLAGE = {"scenario_id": "village-100", "mode": "real", "intensity_percent": 70, "seed": 42}


class Simulator:
    """A client of a simulator in the same event loop."""

    def __init__(self, client: httpx.AsyncClient, service: SimulatorService, supervisor: Supervisor) -> None:
        self.client = client
        self.service = service
        self.supervisor = supervisor

    async def get(self, path: str, **query: Any) -> httpx.Response:
        return await self.client.get(BASE + path, params=query)

    async def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return await self.client.post(BASE + path, json=body, **options)

    async def ok(self, path: str, body: Any = None) -> Any:
        """The body of a POST that must succeed."""
        response = await self.post(path, body)
        assert response.status_code == 200, response.text
        return response.json()

    async def look(self, path: str, **query: Any) -> Any:
        response = await self.get(path, **query)
        assert response.status_code == 200, response.text
        return response.json()

    async def start(self, **changes: Any) -> str:
        run_id: str = (await self.ok("/runs", {**RING, **changes}))["run_id"]
        return run_id

    async def status(self, run_id: str) -> dict[str, Any]:
        status: dict[str, Any] = await self.look(f"/runs/{run_id}")
        return status

    async def until(self, run_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Poll until the condition holds; fails after two minutes."""
        status: dict[str, Any] = {}
        with suppress(TimeoutError):
            async with asyncio.timeout(120):
                while not holds(status := await self.status(run_id)):
                    await asyncio.sleep(0.02)
                return status
        raise AssertionError(status)

    async def after_tick(self, run_id: str, tick: int) -> dict[str, Any]:
        return await self.until(run_id, lambda status: status["sim_time_ms"] >= tick * 1000)

    async def events(self, run_id: str, **query: Any) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = await self.look(f"/runs/{run_id}/events/poll", **query)
        return events


@asynccontextmanager
async def simulator(
    data: Path | str, environment: dict[str, str] | None = None, demo: bool = False, **options: Any
) -> AsyncIterator[Simulator]:
    settings = Settings(data=str(data), demo=demo, **options)
    scheduler = scheduler_for(settings, QUICK if environment is None else environment)
    async with running(settings, (scheduler,)) as app, client_of(app) as client:
        service = supervisor_of(app).service("credit")
        assert isinstance(service, SimulatorService)
        yield Simulator(client, service, supervisor_of(app))
