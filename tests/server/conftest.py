"""Fixtures of the server tests: settings with a temporary data directory, a client of an app without a network."""

import io
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from pendula.server import monitoring
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.settings import LogFormat, LogLevel, Settings
from tests.server.living import TALLY, LiveServer, client_of, running


@pytest.fixture(scope="session", autouse=True)
def quiet_logs() -> Iterator[io.StringIO]:
    """Write the log as JSON to a place that a test can read."""
    handlers = list(logging.getLogger().handlers)
    lines = io.StringIO()
    monitoring.configure(LogFormat.JSON, LogLevel.INFO, lines)
    # The tests' own client writes whole addresses into the log; only the server's lines are of interest.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    yield lines
    logging.getLogger().handlers[:] = handlers


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=str(tmp_path / "data"))


@pytest.fixture
def schedulers() -> Sequence[SchedulerSpec]:
    """The schedulers served in a test; a folder or a module can override them."""
    return (TALLY,)


@pytest.fixture
async def app(settings: Settings, schedulers: Sequence[SchedulerSpec]) -> AsyncIterator[FastAPI]:
    async with running(settings, schedulers) as app:
        yield app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A real server on a real port, for all tests of a module."""
    with LiveServer(Settings(port=0, data=str(tmp_path_factory.mktemp("live") / "data"))) as server:
        yield server
