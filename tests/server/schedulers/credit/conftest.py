"""A simulator for each test: `sim` runs fast, `still` lets no time pass by itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.server.schedulers.credit.simulators import STILL, Simulator, simulator


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[Simulator]:
    async with simulator(tmp_path / "data") as found:
        yield found


@pytest.fixture
async def still(tmp_path: Path) -> AsyncIterator[Simulator]:
    async with simulator(tmp_path / "data", STILL) as found:
        yield found
