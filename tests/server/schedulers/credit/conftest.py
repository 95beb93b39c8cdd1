"""A simulator for each test: `sim` runs fast, `still` never ticks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.server.schedulers.credit.simulators import STILL, Simulator, simulator


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[Simulator]:
    async with simulator(tmp_path / "data") as client:
        yield client


@pytest.fixture
async def still(tmp_path: Path) -> AsyncIterator[Simulator]:
    async with simulator(tmp_path / "data", STILL) as client:
        yield client
