"""A server of players for a test, and who calls it."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from pendula.server.settings import Settings
from tests.server.living import client_of, running
from tests.server.screens import STILL


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    async with running(settings, [STILL]) as app:
        yield app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client
