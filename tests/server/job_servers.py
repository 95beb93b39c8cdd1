"""Job schedulers over HTTP for tests: one app for each test, and a clock that moves only on command."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI

from pendula.jobs.model import Durability, Policy
from pendula.kernel.time import format_utc, parse_utc
from pendula.server.schedulers.jobs.answering import service_in
from pendula.server.schedulers.jobs.routes import jobs_scheduler
from pendula.server.schedulers.jobs.service import JobService
from pendula.server.settings import Settings
from tests.server.living import client_of, running, supervisor_of

BEFORE = parse_utc("2026-02-20T09:12:44.120331Z")
DUE = "2026-02-21T00:00:00Z"
JOB = {"object_type": "cognition", "object_id": "cg_123", "action": "revalidate", "run_at": DUE}
# Durability is off: tests of flushes turn it on.
QUICK = Policy(max_clock_step_sec=86_400, durability=Durability.NORMAL)


class ManualClock:
    """A clock that moves only on command."""

    def __init__(self, now: int = BEFORE) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def turn_to(self, text: str) -> None:
        self.now = parse_utc(text)

    def pass_by(self, seconds: int) -> None:
        self.now += seconds * 1_000_000

    @property
    def text(self) -> str:
        return format_utc(self.now)


class Jobs:
    """A client of the scheduler, its clock, and the app behind it."""

    def __init__(self, app: FastAPI, client: httpx.AsyncClient, clock: ManualClock) -> None:
        self.app = app
        self.client = client
        self.clock = clock

    @property
    def service(self) -> JobService:
        return service_in(supervisor_of(self.app))

    async def post(self, path: str, body: Mapping[str, Any] | None = None, **options: Any) -> httpx.Response:
        return await self.client.post(f"/scheduler/{path}", json={} if body is None else body, **options)

    async def get(self, path: str, **query: Any) -> httpx.Response:
        return await self.client.get(f"/scheduler/{path}", params=query)

    async def until_waiting(self, pulls: int) -> None:
        """Wait until this many pulls are waiting; fail instead of hanging."""
        async with asyncio.timeout(120):
            while self.service.waiting != pulls:
                await asyncio.sleep(0)

    async def enqueued(self, **members: Any) -> dict[str, Any]:
        response = await self.post("jobs", {**JOB, **members})
        assert response.status_code == 201, response.text
        job: dict[str, Any] = response.json()["job"]
        return job

    async def pulled(self, worker: str = "worker-1", **members: Any) -> list[dict[str, Any]]:
        response = await self.post("jobs/pull", {"worker_id": worker, **members})
        assert response.status_code == 200, response.text
        jobs: list[dict[str, Any]] = response.json()["jobs"]
        return jobs


@asynccontextmanager
async def serving(settings: Settings, policy: Policy = QUICK, **options: Any) -> AsyncIterator[Jobs]:
    clock = ManualClock()
    async with running(settings, [jobs_scheduler(policy, clock=clock, **options)]) as app, client_of(app) as client:
        yield Jobs(app, client, clock)


def error_of(response: httpx.Response) -> dict[str, Any]:
    """Status, code and facts of a refusal."""
    error = response.json()["error"]
    assert set(response.json()) == {"error"}
    assert set(error) == {"code", "message", "details"}
    assert response.headers["x-request-id"]
    return {"status": response.status_code, **error}
